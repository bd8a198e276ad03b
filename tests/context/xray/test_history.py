"""The fold to a window: what requests repeat or continue, what compactions take away, and what providers reported."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context.xray import history
from sessionlog.context.xray.history import fold_history
from sessionlog.context.xray.pieces import total
from sessionlog.errors import Problem
from tests.context.xray.sized import _letters, answer, ask, event, ran, result, said, start, system, user  # noqa: F401
from tests.profiles import examples

pytestmark = pytest.mark.usefixtures("_letters")
READ = ("c1", "read", {"path": "a.py"})


def shown(window):
    """What a window holds, in short."""
    return [(piece.role, piece.kind, piece.tokens) for piece in window.pieces]


def test_a_whole_prompt_is_the_window():
    """A request of our own holds everything; nothing of earlier ones is added."""
    first, second = [system("sys"), user("go")], [system("sys"), user("go"), said("yes"), user("on")]
    found = fold_history([start(), ask(*first), answer(), ask(*second, tools=[{"name": "t"}])])
    assert (found.requests, found.window.number, found.window.is_whole) == (2, 2, True)
    assert shown(found.window) == [
        ("system", "text", 3), ("user", "text", 2), ("assistant", "text", 3), ("user", "text", 2)
    ]  # fmt: skip
    assert [tool.name for tool in found.window.tools][:1] == ["t"]


def test_an_earlier_request_is_seen_as_it_was():
    """Also where later ones continue it."""
    items = [start(), ask(user("go")), answer("yes"), ask(said("yes"), user("on"), earlier_messages=1)]
    assert shown(fold_history(items, request=1).window) == [("user", "text", 2)]
    assert fold_history(items, request=1).requests == 2


@pytest.mark.parametrize("number", [0, 2, -1])
def test_there_is_no_window_beyond_the_requests(number):
    """The caller says which there are."""
    found = fold_history([start(), ask(user("go"))], request=number)
    assert (found.requests, found.window) == (1, None)


def test_what_continues_is_added_up():
    """Requests made from other agents' logs hold only what is new; the first may hold nothing."""
    items = [start(), ask(), answer("yes"), ask(said("yes")), answer("no"), ask(said("no"), earlier_messages=1)]
    window = fold_history(items, own=False).window
    assert shown(window) == [("assistant", "text", 3), ("assistant", "text", 2)]
    assert not window.is_whole


def test_results_bear_the_names_of_their_tools():
    """From the call in the prompt, else from the call as it was run."""
    items = [start(), ran("c2", "x", tool="bash"), ask(said("", READ), result("c1", "abc"), result("c2", "de"))]
    named = [(p.name, p.target, p.is_read) for p in fold_history(items).window.pieces if p.kind == "result"]
    assert named == [("read", "a.py", True), ("bash", "", False)]


def test_a_compaction_leaves_its_summary():
    """Answers and results from before it, which no request has told yet, are not heard again."""
    items = [
        start(), ask(user("go")), answer("yes"), ran("c1", "abc"),
        event("compaction.end", success=True, summary="short"),
        ask(said("yes"), result("c1", "abc"), user("on"), earlier_messages=1),
    ]  # fmt: skip
    found = fold_history(items, own=False)
    assert shown(found.window) == [("summary", "text", 5), ("user", "text", 2)]
    assert found.compactions == (2,)


def test_a_summary_that_is_told_later_is_known_as_one():
    """Claude Code says that it compacted, and then what is left."""
    items = [start(), ask(user("go")), answer("yes"), event("compaction.end", success=True),
             ask(said("yes"), system("left"), system("note"), user("on"), earlier_messages=1)]  # fmt: skip
    assert shown(fold_history(items, own=False).window) == [
        ("summary", "text", 4), ("system", "text", 4), ("user", "text", 2)
    ]  # fmt: skip


def test_a_compaction_that_failed_cuts_nothing():
    """It says so."""
    items = [start(), ask(user("go")), answer("yes"), event("compaction.end", success=False, no_compaction=True),
             ask(said("yes"), earlier_messages=1)]  # fmt: skip
    found = fold_history(items, own=False)
    assert (shown(found.window), found.compactions) == ([("user", "text", 2), ("assistant", "text", 3)], ())


def test_requests_without_messages_are_pieced_together():
    """The oldest logs count messages: what was asked, answered and returned stands for them."""
    items = [
        start(system_prompt="sys", prompt="go"), event("llm.request", messages_count=2), answer("yes", tool_calls=1),
        ran("", "abc"), event("llm.request", messages_count=4),
    ]  # fmt: skip
    window = fold_history(items).window
    assert shown(window) == [
        ("system", "text", 3), ("user", "text", 2), ("assistant", "text", 3), ("tool", "result", 3)
    ]  # fmt: skip
    assert (window.is_whole, window.has_prompt, window.pieces[-1].name) == (False, True, "read")


def test_a_system_prompt_beside_the_messages_counts_once():
    """It stands in session.start; where the request has one, that is it."""
    told = start(system_prompt="sys")
    assert shown(fold_history([told, ask(user("go"))]).window)[0] == ("system", "text", 3)
    assert len(fold_history([told, ask(system("sys"), user("go"))]).window.pieces) == 2
    assert len(fold_history([told, ask(system("aside"), user("go"))], own=False).window.pieces) == 3


def test_reasoning_is_there_until_the_next_prompt():
    """Providers drop it then."""
    items = [start(), ask(user("go")), answer("yes", reasoning="hmmm"), ask(said("yes"), earlier_messages=1)]
    assert ("assistant", "reasoning", 4) in shown(fold_history(items, own=False).window)
    items += [answer("no", reasoning="hm"), ask(said("no"), user("on"), earlier_messages=2)]
    assert [kind for _, kind, _ in shown(fold_history(items, own=False).window)] == ["text"] * 4


def test_what_is_beside_the_conversation_answers_no_request():
    """A sub-agent's response has an agent; one without a request has none to answer."""
    items = [start(), ask(user("go")), answer(prompt=7, agent="scout"), answer(prompt=20), answer(prompt=30)]
    assert [sample.reported for sample in fold_history(items).samples] == [20]
    assert fold_history([start(), ask(user("go")), answer(prompt=7, quality="estimated")]).samples[0].reported is None


def test_inclusive_counts_are_made_disjoint():
    """The Go dialect's input holds what was cached, unless a provider's other answers show that it does not."""
    usage = {"input": 100, "output": 1, "cache_read": 40}
    items = [start(v=None), ask(user("go")), event("llm.response", content="a", usage=usage)]
    assert fold_history(items).samples[0].reported == 100
    items += [ask(user("go")), event("llm.response", content="a", usage=usage | {"input": 10})]
    assert [sample.reported for sample in fold_history(items).samples] == [140, 50]
    items[0] = start()
    assert fold_history(items).samples[0].reported == 140


def test_who_was_asked_and_who_answered():
    """The request's model, else the session's, else the answer's."""
    asked = fold_history([start(model=None), ask(user("a"), model="opus"), answer(model="o-4", provider="q")]).window
    assert (asked.model, asked.served, asked.provider) == ("opus", "o-4", "q")
    assert fold_history([start(model=None), ask(user("a")), answer(model="o-4")]).window.model == "o-4"
    assert fold_history([start(model="m"), ask(user("a"))]).window.model == "m"
    unanswered = [start(model=None), ask(user("a")), answer(model="o-4"), ask(user("b"))]
    assert fold_history(unanswered).window.model == "o-4"


def test_other_requests_are_sized_at_the_rate_of_the_one_looked_at():
    """Their texts are not counted; in the same words they have the same size."""
    items = [start(), ask(user("a" * 400)), answer(), ask(user("a" * 400)), answer(), ask(user("a" * 200))]
    sizes = [sample.estimate for sample in fold_history(items).samples]
    assert sizes[0] == sizes[1]
    assert sizes[2] == 200
    assert sizes[0] == pytest.approx(400, rel=0.1)


def test_the_words_about_tools_are_of_one_size_in_every_request():
    """They are in none of the bytes, so a short request has as many of them as a long one."""
    tools = [{"name": "ls", "description": "List"}]
    short, long = ask(user("a" * 400), tools=tools), ask(user("a" * 4_000), tools=tools)
    alone = fold_history([start(), short]).samples[0].estimate
    assert fold_history([start(), short, answer(), long]).samples[0].estimate == pytest.approx(alone, rel=0.1)


def test_texts_are_let_go(monkeypatch):
    """Counted early or late, the window is the same; of what is very old only sums are left."""
    items = [start(), ask(user("go"))]
    for number in range(20):
        call = (f"c{number}", "read", {"path": "a.py"})
        ended = ran(f"c{number}", "abcd")
        items += [answer("yes"), ended, ask(said("yes", call), result(f"c{number}", "abcd"), earlier_messages=1)]
    late = fold_history(items, own=False).window
    monkeypatch.setattr(history, "_MAX_TEXT_BYTES", 10)
    assert fold_history(items, own=False).window == late
    monkeypatch.setattr(history, "_MAX_MESSAGES", 5)
    few = fold_history(items, own=False).window
    assert len(few.pieces) < 30 < len(late.pieces)
    assert total(few.pieces) == total(late.pieces)
    assert sum(p.count for p in few.pieces if p.name == "read") == sum(p.count for p in late.pieces if p.name == "read")


def peak_of(items, **options):
    """The most bytes that a fold of generated events held."""
    tracemalloc.start()
    try:
        fold_history(items, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_that_of_one_request():
    """Whole prompts replace each other: 60 MB of them are seen in some times the size of one."""
    assert (
        peak_of(ask(user("a" * 200_000 + str(number))) for number in range(300)) < 4_000_000
    )  # 800,000 and other threads' objects


def test_memory_is_bounded_where_requests_continue(monkeypatch):
    """20 MB of results leave sizes and names."""
    monkeypatch.setattr(history, "_MAX_TEXT_BYTES", 1 << 18)
    told = ({"earlier_messages": 1} if number else {} for number in range(200))
    items = (ask(result(f"c{number}", f"{number:05}" * 20_000), **more) for number, more in enumerate(told))
    assert peak_of(items, own=False) < 1_500_000


def test_damage_is_counted():
    """The first of it is named; what lost nothing is not damage."""
    bad = [Problem(path="s", line=n, offset=0, kind="not_json", detail="") for n in range(30)]
    found = fold_history([*bad, Problem(path="s", line=1, offset=0, kind="x", detail="", severity="info"), ask()])
    assert (found.problem_count, len(found.problems)) == (30, 20)


KEYS = st.sampled_from(
    ["role", "content", "type", "text", "tool_calls", "id", "name", "arguments", "source", "data", "messages", "tools",
     "usage", "summary", "earlier_messages", "model", "reasoning", "system_prompt", "prompt", "success", "attempt"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["session.start", "llm.request", "llm.response", "tool.call", "compaction.end", "odd"])


@examples(100)
@given(st.lists(st.tuples(TYPES, st.dictionaries(KEYS, JSON, max_size=6)), max_size=8), st.booleans())
def test_odd_data_never_raises(events, own):
    """Whatever stands in a log, there is a window or there is none."""
    found = fold_history([event(type_, **data) for type_, data in events], own=own)
    assert (found.window is None) == (found.requests == 0)
    assert len(found.samples) == found.requests


def test_a_request_that_another_follows_without_an_answer_is_none():
    """It was never sent, or its answer is a part of the next one; only the last may still wait."""
    asked = [ask(), ask(said("", READ)), ask(result("c1", "abc"), earlier_messages=1)]
    found = fold_history([start(), *asked, answer(prompt=20), ask(user("on"), earlier_messages=2)], own=False)
    assert (found.requests, found.is_waiting, found.window.number) == (2, True, 2)
    assert [sample.reported for sample in found.samples] == [20, None]
    first = fold_history([start(), *asked, answer(prompt=20)], own=False, request=1)
    assert (first.requests, first.is_waiting) == (1, False)
    assert [piece.kind for piece in first.window.pieces] == ["call", "result"]


def test_answers_without_requests_stand_for_them():
    """The oldest logs have no other events: what the provider counted is known, and what was said so far."""
    items = [start(system_prompt="sys", prompt="go"), answer("yes", prompt=20), answer("no", prompt=30)]
    found = fold_history(items)
    assert [sample.reported for sample in found.samples] == [20, 30]
    assert shown(found.window) == [("system", "text", 3), ("user", "text", 2), ("assistant", "text", 3)]
    assert not found.window.is_whole


def test_a_cut_while_a_request_waits_is_before_it():
    """The request that follows takes its number."""
    items = [start(), ask(user("go")), event("compaction.end", success=True, summary="short"), ask(user("go"))]
    assert fold_history(items).compactions == (1,)


def test_an_earlier_request_keeps_its_reasoning():
    """What a later prompt drops was there before; sizes are those of what is left."""
    items = [start(), ask(user("go")), answer("yes", reasoning="hmmm"), ask(said("yes"), earlier_messages=1), answer()]
    later = [*items, ask(user("on"), earlier_messages=2)]
    kinds = [kind for _, kind, _ in shown(fold_history(later, own=False, request=2).window)]
    assert kinds == ["text", "text", "reasoning"]
    last = fold_history(later, own=False)
    assert [kind for _, kind, _ in shown(last.window)] == ["text"] * 3
    without = [items[0], items[1], answer("yes"), *items[3:], later[-1]]
    assert last.samples[-1].estimate == fold_history(without, own=False).samples[-1].estimate


@pytest.mark.parametrize("key", ["system", "instructions"])
def test_a_system_prompt_beside_the_messages_of_a_request_counts(key):
    """Some providers take it there."""
    found = fold_history([start(), ask(user("go"), **{key: "be brief"})]).window
    assert shown(found) == [("system", "text", 8), ("user", "text", 2)]


def test_what_a_fork_inherits_is_in_its_window():
    """The first request leans on it; what was merely added is said by the request itself."""
    items = [
        start(), event("history.add", reason="fork", messages=[user("go"), said("yes")]),
        event("history.add", reason="added", messages=[user("on")]), ask(user("on"), earlier_messages=2),
    ]  # fmt: skip
    assert shown(fold_history(items).window) == [
        ("user", "text", 2), ("assistant", "text", 3), ("user", "text", 2)
    ]  # fmt: skip


def test_a_history_that_was_cleared_is_out_of_the_window():
    """What is told ahead of the next request is all of it."""
    items = [
        start(), ask(user("go")), answer("yes"), event("history.clear"),
        event("history.add", reason="long", messages=[user("on")]), ask(user("go"), earlier_messages=1),
    ]  # fmt: skip
    assert shown(fold_history(items).window) == [("user", "text", 2), ("user", "text", 2)]


def test_a_request_whose_prompt_is_not_logged_is_not_the_one_before():
    """Some logs hold only some of the prompts."""
    sent = {"keep": 0, "messages": [user("x" * 400)], "system": ["be brief"], "tools": None}
    items = [start(), ask(user("a"), sent=sent), answer("b"), ask(said("b"), user("c"), earlier_messages=1), answer()]
    first, second = (fold_history(items, own=False, request=number).window for number in (1, 2))
    assert (first.is_whole, second.is_whole) == (True, False)
    assert [kind for _, kind, _ in shown(second)][-1] == "text"
    assert len(second.pieces) > len(first.pieces)
