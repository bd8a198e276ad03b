"""The face of a comparison: golden at two widths, readable without colour, and never harmed by what a log says."""

import os
import re
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from msgspec import structs
from rich.cells import cell_len

from sessionlog.analytics.diff.align import Pairs
from sessionlog.analytics.diff.message_list import MessageList
from sessionlog.render.diff import render_diff
from sessionlog.render.line import wrap_lines
from tests.analytics.diff.talks import CALM, make_said, tell
from tests.analytics.diff.test_report import CODEX, diff, of_talks, story
from tests.analytics.diff.test_retold import TIGHT, session

DATA = Path(__file__).parents[2] / "testdata" / "diff"
EVIL = "\x1b[31mred\x1b[0m\r\x9b2J\u202e[bold]x[/]"
ACTS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def shown(found, width=80, **options):
    """What a terminal of this width gets to see."""
    return "".join(f"{line.plain}\n" for line in wrap_lines(render_diff(found, width=width, **options), width))


def check_golden(name, text):
    """Compare with the file; `SESSIONLOG_UPDATE_GOLDEN=1` writes it."""
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        (DATA / name).write_text(text, "utf-8")
    assert text == (DATA / name).read_text("utf-8")


def talks(left, right):
    """Of two talks."""
    return of_talks(tell(left), tell(right))


@pytest.mark.parametrize("width", [80, 160])
def test_the_story_at_a_width(width):
    """Figures, tools, the system prompt, and messages from where they part."""
    text = shown(story(), width)
    check_golden(f"story-{width}.txt", text)
    assert max(map(cell_len, text.splitlines())) <= width


def test_all_of_the_story():
    """Every tool, and every text whole."""
    check_golden("story-full-80.txt", shown(story(full=True), full=True))


def test_equal_sessions_are_told_in_a_headline():
    """With their figures, and without any message."""
    text = shown(talks(CALM, CALM))
    assert text.startswith("No difference · 6 messages alike\n")
    assert "≠" not in text
    assert "PART" not in text


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (CALM, [], "THEY DIVERGE AT THE BEGINNING · turn 1\n"),
        (CALM, CALM[:1], "A CONTINUES AT MESSAGE 3 · turn 2 · the 2 messages before are alike\n"),
        (CALM[:1], CALM, "B CONTINUES AT MESSAGE 3 · turn 2 · the 2 messages before are alike\n"),
        ([("a", ["b"])], [("a", ["c"])], "THEY DIVERGE AT MESSAGE 2 · turn 1 · the message before is alike\n"),
    ],
)
def test_it_says_where_they_part(left, right, words):
    """And in which turn."""
    assert words in shown(talks(left, right))


def test_forks_are_called_so():
    """By whoever has the parent."""
    parent, fork = sorted(CODEX.iterdir())
    assert " · B is a fork of A" in shown(diff(parent, fork)).splitlines()[0]
    assert " · A is a fork of B" in shown(diff(fork, parent)).splitlines()[0]
    one = diff(parent, fork)
    siblings = replace(one, left=replace(one.right, session="other"))
    assert f" · both are forks of {one.left.session}" in " ".join(shown(siblings).split())


def test_what_is_far_from_a_difference_is_left_out():
    """Unless all is asked for: the difference is what a reader looks for."""
    before, after = ("same " * 100).strip(), ("more " * 100).strip()
    found = talks([(f"{before} left {after}", ["ok"])], [(f"{before} right {after}", ["ok"])])
    assert "… same" in shown(found)
    assert "[-left-]" in shown(found)
    assert "{+right+}" in shown(found)
    assert shown(found).count("more") < 40
    assert shown(found, full=True).count("more") == 200


def with_pairs(diff, pairs):
    """The comparison with other pairs."""
    left, right = (
        MessageList(filter(None, side)).finish() for side in zip(*((p.left, p.right) for p in pairs), strict=True)
    )
    places = count(), count()
    put = Pairs(left, right)
    for pair in pairs:
        put.append(*(-1 if one is None else next(n) for one, n in zip((pair.left, pair.right), places, strict=True)))
    return replace(diff, pairs=put)


def test_long_messages_are_cut_and_say_so():
    """After six lines, with how many more there are."""
    lines = "\n".join(f"line {n}" for n in range(20))
    found = talks([("go", [lines])], [("go", ["no"])])
    assert "  … +14 lines (--full)\n" in shown(found)
    assert "line 19" in shown(found, full=True)
    end = of_talks(tell([("x" * 9_000 + "a", ["ok"])]), tell([("x" * 9_000 + "b", ["ok"])]))
    cut = with_pairs(end, [replace(p, left=structs.replace(p.left, text="x", left_out=9_000)) for p in end.pairs[:1]])
    assert "(--full)" in shown(cut)


def test_many_messages_are_cut_and_say_so():
    """So that the figures above are not lost."""
    found = talks([(f"a{n}", [f"b{n}"]) for n in range(50)], [])
    assert "… 60 messages more that differ (--full)" in shown(found)
    assert "--full" not in shown(found, full=True)


def test_messages_that_are_alike_are_counted_between_others():
    """With their places on both sides."""
    left = [("a", ["b"]), ("same", ["same"]), ("e", ["f"])]
    right = [("a", ["c"]), ("x", ["y"]), ("same", ["same"]), ("e", ["g"])]
    assert "= 3 messages alike (A 3–5, B 5–7)" in shown(talks(left, right))


def test_marks_of_what_went_wrong_are_signs():
    """Without colour nothing is lost."""
    found = talks([("go", [("look", [("read", {}, "x")])])], [("go", ["other words"])])
    pairs = [
        replace(pair, left=pair.left and structs.replace(pair.left, failed=pair.left.role == "tool", partial=pair.left.role == "assistant"))
        for pair in found.pairs
    ]  # fmt: skip
    text = shown(with_pairs(found, pairs))
    assert "⚙ read ✘ failed" in text
    assert "model ◌ broke off" in text


@pytest.mark.parametrize("width", [1, 20, 80, 119, 120, 300])
def test_hostile_words_do_nothing(width):
    """In messages, tools, arguments and names; no line is wider than the messages may be."""
    left, right = ([(EVIL + end, [(EVIL, [(EVIL, {EVIL: EVIL}, f"{EVIL}\t{end}")])])] for end in "ab")
    text = shown(of_talks(tell(left, system_prompt=EVIL), tell(right, system_prompt=EVIL + "x")), width, full=True)
    assert not ACTS.search(text)
    assert r"\x1b[31m" in "".join(text.split())


def test_wide_characters_keep_the_columns():
    """The line between the sides stands where it stands."""
    text = shown(talks([("日本語", ["é"])], [("日本", ["e"])]), 120)
    assert {cell_len(line.partition("│")[0]) for line in text.splitlines() if "│" in line} == {59}


def test_a_cost_that_is_not_known_has_no_difference():
    """A dash, and no sum of what is not there."""
    found = talks(CALM, CALM)
    [line] = [line for line in shown(found).splitlines() if line.split()[:1] == ["cost"]]
    assert line.split() == ["cost", "–", "–"]


def test_an_answer_with_a_call_shows_it():
    """With its arguments, and those that differ marked."""
    found = talks([("go", [("", [("read", {"path": "src/a.py", "limit": 5}, "x")])])],
                  [("go", [("", [("read", {"path": "src/b.py", "limit": 5}, "x")])])])  # fmt: skip
    assert '⚙ read {"limit": 5, "path": "src/[-a-].py"}' in shown(found)
    called = make_said("assistant", "", calls=[("read", "{broken", "")])
    assert "{broken" in shown(with_pairs(found, [replace(found.pairs[1], left=called)]))


def test_a_fork_of_a_parent_that_had_dropped_much(tmp_path):
    """Where they part is told in both sessions' own numbers, and what was dropped in a line; no time is less than 0."""
    parent = session(tmp_path, "parent", TIGHT)
    for n in range(8):
        parent.run(f"question {n}, long enough to be dropped some day")
    fork = parent.fork("fork")
    kept = len(fork.messages)
    for one in (parent, fork):
        one.run(f"in the {one.session_id}")
        one.close()
    text = [line.plain for line in render_diff(diff(tmp_path / "parent.jsonl", tmp_path / "fork.jsonl"), width=100)]
    [parting] = [line for line in text if line.startswith("THEY DIVERGE")]
    assert parting.startswith(f"THEY DIVERGE AT MESSAGE 17 OF A, {kept + 1} OF B · ")
    assert f"{16 - kept} messages that A had dropped before the fork are not compared" in text
    assert [line.split()[:3] for line in text if " inherited " in line] == [["≠", "inherited", "0"]]
    assert not [line for line in text if " time " in line and " 0 ms" in line]
