"""Sessions told by several logs: the facts of the whole, in whatever order the logs were read."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.sessions import facts_of, facts_text, merge_sessions
from sessionlog.sources.record import ScannedSession
from tests.ledger.entries import NOON, book_of, record, session
from tests.profiles import examples

LAW = examples(100)
TIMES = st.sampled_from([None, NOON, NOON + 1, NOON + 2])
TOLD = st.fixed_dictionaries(
    {
        "start_ns": TIMES,
        "last_ns": TIMES,
        "part": st.booleans(),
        "status": st.sampled_from([None, "success", "error"]),
        "prompt": st.sampled_from(["", "one", "two"]),
        "error": st.sampled_from(["", "why"]),
        "project": st.sampled_from([UNKNOWN, "/a", "/b"]),
        "harness": st.sampled_from([UNKNOWN, "h"]),
        "parent": st.sampled_from(["", "p", "q"]),
        "duration_ms": st.sampled_from([None, 1, 2]),
        "metadata": st.dictionaries(st.sampled_from("xy"), st.integers(0, 2), max_size=2),
        "counted": st.booleans(),
        "turns": st.sampled_from([None, 0, 1, 2]),
        "last_turn_ns": TIMES,
    }
)


def logs_of(told):
    """One session, told by as many logs."""
    return [session("s", path=f"{n}.jsonl", **fields) for n, fields in enumerate(told)]


def whole(*told):
    """The facts that are the same in every order."""
    found = [merge_sessions(order) for order in permutations(logs_of(told))]
    assert all(one == found[0] for one in found)
    return found[0]


@LAW
@given(st.data())
def test_no_order_changes_the_whole(data):
    """Main logs and sub-agents' logs, with and without times."""
    logs = logs_of(data.draw(st.lists(TOLD, min_size=1, max_size=5)))
    assert merge_sessions(data.draw(st.permutations(logs))) == merge_sessions(logs)


@LAW
@given(st.data())
def test_no_order_changes_the_row_of_the_book(data):
    """What a report reads is the whole."""
    logs = logs_of(data.draw(st.lists(TOLD, min_size=1, max_size=4)))
    sql = """SELECT path, part, start_ns, last_ns, end_status, project, harness, prompt, error, parent, duration_ms,
        counted, turns, last_turn_ns FROM sessions"""
    assert book_of(*data.draw(st.permutations(logs))).query(sql, {}) == book_of(*logs).query(sql, {})


def test_the_span_is_of_all_logs_and_the_facts_of_the_main_ones():
    """A sub-agent that went on longest does not end the session."""
    main = {"start_ns": NOON, "last_ns": NOON + 5, "status": "success", "prompt": "do"}
    part = {"part": True, "start_ns": NOON - 3, "last_ns": NOON + 9, "status": "error", "prompt": "sub", "error": "no"}
    found = whole(main, part)
    assert (found.start_ns, found.last_ns, found.status, found.prompt, found.part) == (
        NOON - 3,
        NOON + 9,
        "success",
        "do",
        False,
    )


def test_a_sub_agents_time_does_not_decide_between_two_main_logs():
    """Which of them began, and which ended, is a question of their own times."""
    one = {"start_ns": NOON + 2, "last_ns": NOON + 3, "prompt": "second", "status": "error"}
    two = {"start_ns": NOON + 1, "last_ns": NOON + 9, "prompt": "first", "status": "success"}
    part = {"part": True, "start_ns": NOON, "last_ns": NOON + 20, "status": None}
    found = whole(one, two, part)
    assert (found.prompt, found.status) == ("first", "success")


def test_the_earliest_tells_how_it_began_and_the_latest_how_it_ended():
    """What the earliest does not tell, the next one may."""
    found = whole(
        {"start_ns": NOON, "last_ns": NOON + 1, "prompt": "", "status": "error", "error": "e", "metadata": {"a": 1}},
        {"start_ns": NOON + 2, "last_ns": NOON + 3, "prompt": "b", "project": "/b"},
        {
            "start_ns": NOON + 4,
            "last_ns": NOON + 9,
            "prompt": "c",
            "status": None,
            "metadata": {"a": 2, "b": 3},
            "duration_ms": 7,
        },
    )
    assert (found.prompt, found.project, found.status, found.error) == ("b", "/b", None, "")
    assert (found.duration_ms, found.metadata, found.path) == (7, {"a": 1, "b": 3}, "0.jsonl")


def test_logs_without_times_are_ordered_by_their_paths():
    """So that one of them is always the first."""
    assert whole({"start_ns": None, "last_ns": None}, {"start_ns": None, "last_ns": None}).path == "0.jsonl"


def test_a_later_scan_of_one_log_knows_more():
    """Its facts are those of now; what it does not repeat is not lost."""
    begun = session("s", prompt="do", status=None, project="/a")
    found = merge_sessions([begun, session("s", prompt="", status="success", last_ns=NOON + 5, project=UNKNOWN)])
    assert (found.prompt, found.status, found.last_ns, found.project) == ("do", "success", NOON + 5, "/a")


def test_turns_are_those_of_the_log_that_has_most():
    """Copies repeat them, and what sub-agents are asked is no turn."""
    found = whole(
        {"turns": 2, "last_turn_ns": NOON + 1},
        {"turns": 1, "last_turn_ns": NOON + 2},
        {"turns": None, "last_turn_ns": None},
        {"turns": 9, "last_turn_ns": NOON + 9, "part": True},
    )
    assert (found.turns, found.last_turn_ns) == (2, NOON + 2)


def test_records_are_no_facts():
    """The whole does not keep them a second time."""
    found = merge_sessions([session("s", record())])
    assert (found.records, found.tools) == ((), ())


@pytest.mark.parametrize("value", [2**63, -(10**30)])
def test_facts_come_back_as_they_were(value):
    """Also numbers and names that few formats hold."""
    whole = ScannedSession(
        source="x",
        session_id="s \udcff",
        path="/a/\udcff",
        start_ns=value,
        prompt="☃",
        metadata={"a": "\udcff", "n": 1},
    )
    assert facts_of(facts_text(whole)).start_ns == value
    assert facts_of(facts_text(replace(whole, start_ns=1))).session_id == "s \udcff"
    assert facts_of(facts_text(replace(whole, session_id="s", path="/☃"))).prompt == "☃"
