"""Gather: a session's facts, row by row, and the same facts when a scan goes on later."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.sources.gather import Findings, Gather, first_words, server_of, text_size
from tests.ledger.entries import NOON, SECOND, record

MS = 1_000_000


def gather(state=None):
    return Gather("scribe", "s", "/logs/s.scroll", state=state)


def problem(**fields):
    return Problem(path="s", line=1, offset=0, kind="not_json", detail="?", **fields)


# --- findings


def test_all_damage_is_counted_and_the_first_hundred_named():
    """A log that is damaged throughout does not fill the memory."""
    findings = Findings()
    for _ in range(250):
        findings.note(problem())
    assert (findings.problems.count, len(findings.problems.first)) == (250, 100)


def test_news_are_no_findings():
    """A line in the writing is nothing that a report must say."""
    findings = Findings()
    findings.note(problem(severity="info"))
    assert findings.problems.count == 0


def test_numbers_that_are_none_are_findings_with_their_line():
    """One for each."""
    findings = Findings()
    findings.complain("s.scroll", 7, "in: a negative count", "out: 1.5 is no whole number")
    assert [str(one) for one in findings.problems.first] == [
        "s.scroll:7 bad_number in: a negative count",
        "s.scroll:7 bad_number out: 1.5 is no whole number",
    ]


# --- times


def test_the_span_is_from_the_earliest_to_the_latest():
    """Rows need not be in order, nor have a time."""
    session = gather()
    for time_ns in (NOON + 5, None, NOON, NOON + 3):
        session.touch(time_ns)
    found = session.session()
    assert (found.start_ns, found.last_ns) == (NOON, NOON + 5)


def test_active_time_goes_to_the_record_that_ends_it():
    """Pauses of more than five minutes are none of it; what follows the last record is nobody's until one comes."""
    session = gather()
    for seconds, has_record in [(0, False), (10, True), (10 + 300, True), (10 + 300 + 301, True), (620, False)]:
        session.touch(NOON + seconds * SECOND)
        if has_record:
            session.add(record())
    assert [one.active_ms for one in session.session().records] == [10_000, 300_000, 0]
    session.add(record())
    assert session.session().records[-1].active_ms == 9_000


def test_a_session_can_be_asked_for_twice():
    """Its numbers are the same."""
    session = gather()
    session.touch(NOON)
    session.touch(NOON + SECOND)
    session.add(record())
    session.touch(NOON + 3 * SECOND)
    assert session.session() == session.session()
    assert session.session().records[0].active_ms == 1000


# --- facts


def test_the_first_words_name_the_session():
    """Later ones do not, and words that are no text do not either."""
    session = gather()
    for text in (None, 7, [], "  ", [{"type": "image"}, {"text": "Write\n a"}, {"text": "tale"}], "and another"):
        session.ask(text)
    assert session.session().prompt == "Write a tale"


def test_first_words_are_cut():
    """On one line, however much there is of them."""
    assert len(first_words("word " * 10_000)) == 199
    assert len(first_words("x" * 10_000)) == 200
    assert first_words({"text": "x"}) == ""


def test_a_success_has_no_error():
    """What failed on the way was mended."""
    session = gather()
    session.error, session.status = "the pen broke", "error"
    assert session.session().error == "the pen broke"
    session.status = "success"
    assert session.session().error == ""


def test_fields_beyond_those_kept_here_are_given_at_the_end():
    """They win over what was gathered."""
    found = gather().session(place="/logs", part=True, status="cancelled")
    assert (found.place, found.part, found.status, found.source, found.session_id) == (
        "/logs", True, "cancelled", "scribe", "s",
    )  # fmt: skip


# --- tools


def test_a_result_finishes_its_call():
    """The duration is from the call to the result, unless the log tells it."""
    session = gather()
    session.call("a", NOON, "read", server="files", agent="helper")
    session.call("b", NOON, "bash")
    session.call("c", None, "bash")
    session.result("a", NOON + 5 * MS, failed=False, output_bytes=3)
    session.result("c", NOON, failed=True, output_bytes=0, duration_ms=8.0)
    one, two, three = session.session().tools
    assert (one.finished, one.duration_ms, one.output_bytes, one.server, one.agent) == (True, 5.0, 3, "files", "helper")
    assert (two.finished, two.duration_ms) == (False, None)
    assert (three.failed, three.duration_ms) == (True, 8.0)


def test_who_tells_a_call_better_is_kept_until_its_result():
    """Also where another scan meets the result."""
    session = gather()
    session.call("a", NOON, "read", superseded_by="codex:t")
    later = gather(json.loads(json.dumps(session.state())))
    later.result("a", NOON, failed=False, output_bytes=1)
    assert [use.superseded_by for use in (*session.session().tools, *later.session().tools)] == ["codex:t", "codex:t"]


def test_a_result_before_its_call_took_no_time_that_is_known():
    """A clock went back."""
    session = gather()
    session.call("a", NOON, "read")
    session.result("a", NOON - 1, failed=False, output_bytes=0)
    assert session.session().tools[0].duration_ms is None


def test_a_result_without_a_call_is_left_out():
    """Nobody knows what it is of; a second result of one call changes nothing."""
    session = gather()
    session.result("x", NOON, failed=True, output_bytes=1)
    session.call("a", NOON, "read")
    session.result("a", NOON, failed=False, output_bytes=1)
    session.result("a", NOON, failed=True, output_bytes=9)
    assert [(use.key, use.failed) for use in session.session().tools] == [("a", False)]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("mcp__files__read", ("read", "files")),
        ("mcp__files__read__all", ("read__all", "files")),
        ("mcp__files", ("mcp__files", "")),
        ("mcp____read", ("mcp____read", "")),
        ("mcp__files__", ("mcp__files__", "")),
        ("read", ("read", "")),
    ],
)
def test_a_servers_tool_is_told_from_the_agents(name, found):
    """What is no whole name of a server's tool is the agent's own."""
    assert server_of(name) == found


def test_the_size_of_an_output_is_in_bytes():
    """Of a text, or of the texts in its parts; half a character pair counts, other things do not."""
    assert text_size("é") == 2
    assert text_size("\ud800") == 1
    assert text_size([{"text": "ab"}, {"content": [{"text": "c"}]}, "d", 3, {"image": "x"}, {"text": None}]) == 3
    assert text_size({"text": "x"}) == text_size(None) == text_size(7) == 0


def test_deeply_nested_outputs_are_measured():
    """A hostile log nests as deep as JSON is read."""
    value = "abc"
    for _ in range(2000):
        value = [{"content": value}]
    assert text_size(value) == 3


# --- going on

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("touch"), st.integers(0, 400)),
        st.tuples(st.just("add"), st.just(0)),
        st.tuples(st.just("call"), st.integers(0, 2)),
        st.tuples(st.just("result"), st.integers(0, 2)),
        st.tuples(st.just("ask"), st.integers(0, 2)),
        st.tuples(st.just("turn"), st.integers(0, 2)),
    ),
    max_size=14,
)


def act(session, actions):
    for name, number in actions:
        match name:
            case "touch":
                session.touch(NOON + number * SECOND)
            case "add":
                session.add(record())
            case "call":
                session.call(str(number), NOON, "bash")
            case "result":
                session.result(str(number), NOON + SECOND, failed=False, output_bytes=1)
            case "turn":
                session.turn("again" * number, NOON + number * SECOND)
            case _:
                session.ask(f"word {number}")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ACTIONS, ACTIONS)
def test_two_scans_give_what_one_gives(before, after):
    """Facts as of now, and the same records with the same times of activity; the state is JSON."""
    one = gather()
    act(one, before)
    act(one, after)
    whole = one.session()
    first = gather()
    act(first, before)
    begun, state = first.session(), json.loads(json.dumps(first.state()))
    second = gather(state)
    act(second, after)
    rest = second.session()
    assert (rest.start_ns, rest.last_ns, rest.prompt) == (whole.start_ns, whole.last_ns, whole.prompt)
    assert (rest.turns, rest.last_turn_ns) == (whole.turns, whole.last_turn_ns)
    assert (*begun.records, *rest.records) == whole.records
    uses = {use.key: use for use in (*begun.tools, *rest.tools)}
    assert uses == {use.key: use for use in whole.tools}
