"""Histories that change between requests: told in a line, and what is told again is not shown again."""

import pytest

from sessionlog.render.replay.blocks import NoteBlock, RewriteBlock
from tests.render.replay.test_fold import HELLO, START, SYSTEM, answer, event, fold, request, said


def notes(blocks):
    """The lines about the history among the blocks."""
    return [block.text for block in blocks if isinstance(block, NoteBlock) and block.kind == "history"]


def test_changes_of_the_history_are_told_in_a_line():
    """What a fork inherits is shown once, and not again by a later request that tells all of it."""
    parent = {"session": "s-9f2", "seq": 4}
    old = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "older"}]
    more = event("llm.request", {"messages": [HELLO], "earlier_messages": 2})
    blocks = fold(
        START,
        event("history.add", {"reason": "fork", "parent": parent, "messages": old}),
        more,
        answer("hi"),
        event("history.add", {"reason": "added", "messages": [HELLO]}),
        event("history.pop", {"count": 2}),
        event("history.add", {"reason": "added", "messages": [], "state": "cancelled"}),
        event("history.add", {"reason": "restored", "messages": old}),
        request(*old),
        event("history.clear", {}),
    )
    assert notes(blocks) == [
        "2 messages inherited from s-9f2",
        "2 messages taken back",
        "the turn was cancelled",
        "cleared: a new history begins",
    ]
    inherited = [("user", "old"), ("assistant", "older")]
    words = [("system", "be brief"), ("user", "hello"), *inherited, ("answer", "hi"), ("user", "hello")]
    assert said(blocks) == words


PROMPTS = [{"role": "user", "content": word} for word in ("one", "two", "three")]
FIRST, SECOND = ({"role": "assistant", "content": f"{word} it is"} for word in ("one", "two"))


def cut_short(*cut):
    """A fork of one turn that takes a second one; then its history is cut, and told again."""
    inherited = event("history.add", {"reason": "fork", "parent": {"session": "p"}, "messages": [PROMPTS[0], FIRST]})
    second = event("llm.request", {"messages": [PROMPTS[1]], "earlier_messages": 2})
    return [START, inherited, second, answer("two it is"), *cut]


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        (event("history.pop", {"count": 2}), [PROMPTS[0], FIRST]),
        (event("compaction.end", {"success": True, "dropped": [[0, 2]], "added": []}), [PROMPTS[1], SECOND]),
        (event("history.clear", {}), []),
    ],
    ids=["undo", "truncation", "clear"],
)
@pytest.mark.parametrize("ahead", [False, True], ids=["whole", "ahead"])
def test_what_is_left_of_a_history_is_told_again_in_silence(cut, left, ahead):
    """By a request that is whole, or ahead of it: it is inherited once, and nothing is missing that was told to go."""
    again = PROMPTS[1] if cut.type != "compaction.end" else PROMPTS[0]  # the same words as those that went are new
    told = [request(*left, again)]
    if ahead and left:
        more = event("llm.request", {"messages": [again], "earlier_messages": 2})
        told = [
            event("history.add", {"reason": why, "messages": [one]})
            for one, why in zip(left, ("fork", "long"), strict=True)
        ]
        told.append(more)
    blocks = fold(*cut_short(cut), *told, answer("fine"))
    assert [note for note in notes(blocks) if "inherited" in note] == ["2 messages inherited from p"]
    assert not [block for block in blocks if isinstance(block, RewriteBlock)]
    words = [("user", "one"), ("assistant", "one it is"), ("user", "two"), ("answer", "two it is")]
    later = [("user", again["content"]), ("answer", "fine")]
    assert said(blocks) == [("system", "be brief"), ("user", "hello"), *words, *later]


def test_what_is_told_ahead_of_a_request_is_shown():
    """A long history comes in several events; no request will say it."""
    long = event("history.add", {"reason": "long", "messages": [SYSTEM, {"role": "user", "content": "one"}]})
    blocks = fold(long, event("llm.request", {"messages": [HELLO], "earlier_messages": 2}))
    assert said(blocks) == [("system", "be brief"), ("user", "one"), ("user", "hello")]


def test_a_prompt_that_a_truncation_had_to_know_is_no_change():
    """It is shown once, when it is added."""
    added = event("history.add", {"reason": "added", "messages": [PROMPTS[1]]})
    cut = event("compaction.end", {"success": True, "dropped": [[0, 1]], "added": []})
    blocks = fold(
        request(PROMPTS[0]), answer("one it is"), added, cut, request(FIRST, PROMPTS[1]), answer("fine"), added
    )
    assert notes(blocks) == []
    words = [("user", "one"), ("answer", "one it is"), ("user", "two"), ("answer", "fine"), ("user", "two")]
    assert said(blocks) == words


def test_what_a_program_adds_in_the_name_of_others_is_told():
    """An answer that no model gave."""
    blocks = fold(event("history.add", {"reason": "added", "messages": [FIRST]}))
    assert notes(blocks) == ["1 message added"]
    assert said(blocks) == [("assistant", "one it is")]


@pytest.mark.parametrize("count", [-5, 10**30])
def test_a_count_that_cannot_be_is_not_repeated(count):
    """Whatever a log says was taken back."""
    assert notes(fold(START, event("history.pop", {"count": count}))) == ["some messages taken back"]
