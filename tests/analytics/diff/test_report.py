"""Two sessions compared: equal if the same was said, and each with the figures that other reports give it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.diff.align import align
from sessionlog.analytics.diff.report import SessionDiff, diff_sessions
from sessionlog.analytics.diff.side import Side
from sessionlog.analytics.diff.transcript import fold_transcript
from sessionlog.sources.find import log_at
from tests.analytics.diff.talks import CALM, as_events, tell
from tests.analytics.diff.test_transcript import TALKS
from tests.analytics.week import NOW
from tests.ledger.entries import PRICES
from tests.profiles import examples
from tests.sources.logs import start, write_log

DATA = Path(__file__).parents[3] / "testdata"
FIGURES = [
    "source", "session", "path", "parent", "start", "status", "models", "requests", "failed_requests", "input_tokens",
    "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "total_tokens", "known_cost_usd",
    "estimated_cost_usd", "cost_usd", "cost_is_partial", "duration_ms", "error", "turns", "messages", "inherited_messages", "taken_back_messages", "tool_calls",
    "failed_tool_calls",
]  # fmt: skip
CODEX = DATA / "sources" / "codex" / "fork-replay" / "home" / ".codex" / "sessions" / "2026" / "11" / "10"


def diff(left, right, **options):
    """Of two paths."""
    known = {"prices": PRICES, "now": NOW}
    return diff_sessions((log_at(str(left)), None), (log_at(str(right)), None), **(known | options))


def story(**options):
    """The story's two sessions."""
    return diff(DATA / "diff" / "importer.jsonl", DATA / "diff" / "importer-with-another-prompt.jsonl", **options)


def of_talks(left, right, sources=("native", "native")):
    """Of two talks told by logs that are never written."""
    sides = [
        Side(source=source, session=name, path=name, transcript=fold_transcript(as_events(talk)))
        for name, talk, source in zip("ab", (left, right), sources, strict=True)
    ]
    pairs = align(sides[0].transcript.messages, sides[1].transcript.messages)
    return SessionDiff(left=sides[0], right=sides[1], pairs=pairs)


@examples(50)
@given(TALKS, st.booleans())
def test_a_session_is_equal_to_itself_under_other_ids_and_times(talk, whole):
    """However its log spells it."""
    found = of_talks(tell(talk), tell(talk, whole=whole, ids="x", clock="11:11:11"))
    assert found.is_equal
    assert not found.rest
    assert found.to_dict()["divergence"] is None


@examples(50)
@given(TALKS, TALKS)
def test_the_sides_can_be_exchanged(left, right):
    """Whether they are equal, where they part, and what is common do not depend on the order."""
    one, other = of_talks(tell(left), tell(right)), of_talks(tell(right), tell(left))
    assert one.is_equal == other.is_equal
    assert one.is_equal or left != right
    assert one.common == other.common
    assert one.first("left") == other.first("right")


def test_the_story_parts_where_the_answers_do():
    """The system prompt is compared apart, so that it does not hide where the conversation parts."""
    found = story()
    assert not found.is_equal
    assert found.is_same_system is False
    assert found.to_dict()["divergence"] == {
        "common": 4, "left_message": 5, "right_message": 5, "left_turn": 1, "right_turn": 1,
    }  # fmt: skip
    assert found.counts == {"same": 5, "changed": 2, "left": 2, "right": 2, "dropped": 0}
    assert {"models", "status", "cost_usd", "system_prompt", "offered_tools", "tool_calls"} <= set(found.changed)
    assert found.offered == {"left_only": [], "right_only": ["edit"], "changed": []}


def test_cost_is_recorded_else_estimated_else_unknown():
    """As `sessionlog sessions` has it."""
    left, right = (side.figures() for side in (story().left, story().right))
    assert left["known_cost_usd"] == left["cost_usd"] == pytest.approx(4 * 0.052)
    assert (right["known_cost_usd"], right["estimated_cost_usd"]) == (None, right["cost_usd"])
    assert right["cost_usd"] > 0
    unknown = diff(DATA / "replay" / "only-what-is-new.jsonl", DATA / "replay" / "broken-stream.jsonl")
    assert unknown.right.figures()["cost_usd"] is None
    assert "cost_usd" not in unknown.changed


def test_the_document_has_the_promised_keys_in_order():
    """The JSON is the dataclass, documented there."""
    document = story().to_dict()
    assert list(document) == [
        "schema", "equal", "fork", "left", "right", "changed", "divergence", "counts", "system_prompt",
        "offered_tools", "messages", "tools", "gates", "problems",
    ]  # fmt: skip
    assert document["schema"] == "sessionlog.diff/1"
    assert list(document["left"]) == list(document["right"]) == FIGURES
    assert [pair["kind"] for pair in document["messages"]].count("changed") == document["counts"]["changed"]
    assert list(document["messages"][0]["left"]) == [
        "message", "turn", "role", "tool", "text", "left_out", "calls", "failed", "partial",
    ]  # fmt: skip
    assert document["tools"][-1] == {
        "tool": "read",
        "left": {"calls": 1, "errors": 0, "duration_ms": 12.0},
        "right": {"calls": 1, "errors": 0, "duration_ms": 12.0},
    }


def test_forks_are_known_by_their_parent():
    """Whichever side is the fork; two forks of one session are siblings."""
    parent, fork = sorted(CODEX.iterdir())
    assert (diff(parent, fork).fork, diff(fork, parent).fork, diff(fork, fork).fork) == ("right", "left", None)
    assert diff(parent, fork).right.to_dict()["parent"] == diff(parent, fork).left.session


def test_a_system_prompt_that_is_not_told_does_not_differ():
    """Our own logs tell it if there is one; of another agent's nobody knows."""
    with_one, without = tell(CALM, system_prompt="Be brief."), tell(CALM)
    assert of_talks(with_one, without).is_same_system is False
    assert not of_talks(with_one, without).is_equal
    assert of_talks(with_one, without, sources=("native", "codex")).is_same_system is None
    assert of_talks(with_one, without, sources=("native", "codex")).is_equal


def test_texts_are_whole_where_that_is_asked_for(tmp_path):
    """Else their beginnings, and how much is left out."""
    paths = [write_log(tmp_path / f"{end}.jsonl", *tell([("x" * 9_000 + end, ["ok"])])) for end in "ab"]
    [cut], [whole] = (diff(*paths, full=full).to_dict()["messages"] for full in (False, True))
    assert (len(cut["left"]["text"]), cut["left"]["left_out"]) == (4_000, 5_001)
    assert (len(whole["right"]["text"]), whole["right"]["left_out"]) == (9_001, 0)


def test_a_log_without_any_response_has_unknown_figures(tmp_path):
    """None, never 0; and it can be compared."""
    empty = write_log(tmp_path / "empty.jsonl", start())
    found = diff(empty, empty)
    assert found.is_equal
    assert found.left.figures()["messages"] == 0
    assert found.left.figures()["cost_usd"] is None
