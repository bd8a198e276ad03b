"""The tracker: a session is the sum of its turns."""

import re

import pytest

from sessionlog.context import ContextSnapshot, RequestUsageSnapshot, UsageTracker, extract_context_snapshot
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from tests.context.talks import answer, ask, tool_loop, user


def test_a_new_tracker_knows_nothing():
    """No turn, no step, empty sums; and an id of its own."""
    tracker = UsageTracker()
    assert re.fullmatch(r"session_[0-9a-f]{8}", tracker.session_id)
    assert tracker.turn_count == 0
    assert tracker.get_turn_data() == {}
    assert tracker.get_turn_usage().requests == 0
    assert tracker.get_session_usage().turns == 0
    assert tracker.get_step_history() == ()


def test_the_session_is_the_sum_of_its_turns():
    """Whatever each turn was recorded with."""
    tracker = UsageTracker(session_id="s")
    tracker.record_turn({"input_tokens": 10, "output_tokens": 1, "requests": 1, "tool_calls": 2}, turn_duration=1.25)
    tracker.record_turn(TokenUsage(input=3, cache_read=7, output=2), turn_duration=0.5, tool_names=["read"])
    tracker.record_turn(None)
    session = tracker.get_session_usage()
    assert (session.input_tokens, session.output_tokens, session.requests) == (20, 3, 1)
    assert (session.tool_calls, session.turns, session.duration_seconds) == (3, 3, 1.75)
    assert session.cache_read_tokens == 7


def test_names_are_kept_with_their_turn():
    """One name a call; a count in the usage goes before theirs."""
    tracker = UsageTracker()
    tracker.record_turn({"tool_calls": 3}, tool_names=["read", "read"])
    turn = tracker.get_turn_usage()
    assert (turn.tool_names, turn.tool_calls) == (("read", "read"), 3)


def test_codemode_counts_are_cumulative():
    """A turn has what was added since the one before; a count that fell was begun anew."""
    tracker = UsageTracker(codemode=True)
    for so_far, expected in ((2, 2), (5, 3), (1, 1)):
        tracker.record_turn({}, {"codemode_tool_calls": so_far, "mcp_tool_calls": 2 * so_far})
        assert tracker.get_turn_usage().tool_calls == expected
        assert tracker.get_turn_data()["mcp_tool_calls"] == 2 * expected
    assert tracker.get_session_data()["codemode_tool_calls"] == 6


def test_a_codemode_count_that_is_not_told_is_what_it_was():
    """Nothing is added for it, and what is told later is compared with what was told last."""
    tracker = UsageTracker(codemode=True)
    told = [{"mcp_tool_calls": 5}, {}, {"mcp_tool_calls": None}, {"mcp_tool_calls": "x"}, {"mcp_tool_calls": -1}]
    for counts in (*told, {"mcp_tool_calls": 6}):
        tracker.record_turn({}, {"codemode_tool_calls": 3, **counts})
    session = tracker.get_session_data()
    assert (session["mcp_tool_calls"], session["codemode_tool_calls"]) == (6, 3)


def test_calls_of_an_mcp_server_are_among_all():
    """Where the usage names both, the greater number is that of all; what is told of the server stays."""
    tracker = UsageTracker()
    tracker.record_turn({"tool_calls": 4, "mcp_tool_calls": 2}, tool_names=["read"])
    tracker.record_turn({"tool_calls": 1, "mcp_tool_calls": 2})
    tracker.record_turn({}, tool_names=["read", "read"])
    assert tracker.get_session_usage().tool_calls == 4 + 2 + 2
    assert tracker.get_session_data()["mcp_tool_calls"] == 2 + 2 + 2


@pytest.mark.parametrize("wrong", ["3", -5.0, float("nan"), float("inf"), True, [1], 1e300])
def test_a_duration_that_is_none_does_not_count(wrong):
    """The clock tells then, as if nothing had been given, and later turns still add up."""
    tracker = UsageTracker(clock=iter([10.0, 12.5]).__next__)
    tracker.start_turn()
    tracker.record_turn({}, turn_duration=wrong)
    tracker.record_turn({}, turn_duration=wrong)
    tracker.record_turn({}, turn_duration=1)
    assert tracker.get_session_usage().duration_seconds == 3.5
    assert tracker.get_turn_data()["duration_ms"] == 1000


def test_what_is_returned_is_a_copy():
    """A caller's changes stay the caller's."""
    tracker = UsageTracker()
    tracker.record_turn({"input_tokens": 1})["input_tokens"] = 99
    assert tracker.get_turn_data()["input_tokens"] == 1


def test_steps_of_a_growing_history_are_kept_once():
    """A snapshot after each turn adds what is new; the same one again adds nothing."""
    tracker = UsageTracker(session_id="s")
    for end in (4, 8, 8):
        tracker.record_steps_from_snapshot(extract_context_snapshot(message_history=tool_loop()[:end]))
    steps = tracker.get_step_history()
    assert [(step.turn_id, step.step_number) for step in steps] == [(1, 1), (1, 2), (2, 3), (2, 4)]


def test_steps_of_runs_alone_follow_each_other():
    """Histories that do not begin as the known one are further turns."""
    tracker = UsageTracker(session_id="s")
    for tokens in ((1, 1), (2, 1)):
        talk = [ask(user("Hello")), answer("Hi", tokens=tokens)]
        tracker.record_steps_from_snapshot(extract_context_snapshot(message_history=talk))
    steps = tracker.get_step_history()
    assert [(step.turn_id, step.step_number, step.input_tokens) for step in steps] == [(1, 1, 1), (2, 2, 2)]


def _snapshot(*steps):
    """A snapshot of requests, given as (prompt tokens, second or None, turn)."""
    return ContextSnapshot(
        agent_id="a",
        per_request_usage=tuple(
            RequestUsageSnapshot(
                request_num=number,
                input_tokens=tokens,
                output_tokens=1,
                timestamp=None if second is None else f"2026-11-21T10:00:{second:02}Z",
                turn_id=turn,
            )
            for number, (tokens, second, turn) in enumerate(steps, start=1)
        ),
    )


def _kept(*snapshots):
    """(step, turn, prompt tokens) of what a tracker keeps of snapshots."""
    tracker = UsageTracker(session_id="s")
    for snapshot in snapshots:
        tracker.record_steps_from_snapshot(snapshot)
    return [(step.step_number, step.turn_id, step.input_tokens) for step in tracker.get_step_history()]


def test_steps_of_a_sliding_history_are_kept_once():
    """What was cut off its beginning is remembered, and its turns are counted on."""
    first = _snapshot((10, 1, 1), (20, 2, 1), (30, 3, 2))
    second = _snapshot((20, 2, 1), (30, 3, 2), (40, 4, 2), (50, 5, 3))
    third = _snapshot((50, 5, 1))
    assert _kept(first, second, third) == [(1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40), (5, 3, 50)]


def test_a_snapshot_from_before_adds_nothing():
    """All its steps are known, in their order."""
    steps = (10, 1, 1), (20, 2, 1), (30, 3, 2)
    assert _kept(_snapshot(*steps), _snapshot(*steps[:2]), _snapshot(steps[1])) == [(1, 1, 10), (2, 1, 20), (3, 2, 30)]


def test_equal_steps_of_no_known_time_are_two():
    """Runs of which nobody says when they were are the same only where a longer history begins with them."""
    once = _snapshot((10, None, 1))
    assert _kept(once, once) == [(1, 1, 10), (2, 2, 10)]
    assert _kept(once, _snapshot((10, None, 1), (20, None, 1))) == [(1, 1, 10), (2, 1, 20)]


def test_a_run_alone_may_be_repeated():
    """A snapshot of a later run, taken again as it grows, adds only what is new of it."""
    runs = _snapshot((10, 1, 1)), _snapshot((20, 2, 1)), _snapshot((20, 2, 1), (30, 3, 1), (40, 4, 2))
    assert _kept(*runs) == [(1, 1, 10), (2, 2, 20), (3, 2, 30), (4, 3, 40)]


def test_a_snapshot_without_steps_adds_nothing():
    """Before the first request as after the last."""
    assert _kept(_snapshot(), _snapshot((10, 1, None)), _snapshot()) == [(1, 1, 10)]


def test_the_csv_is_that_of_the_steps(tmp_path):
    """As text and as a file, with and without durations."""
    tracker = UsageTracker(session_id="s")
    tracker.record_steps_from_snapshot(extract_context_snapshot(message_history=tool_loop()))
    tracker.save_csv(tmp_path / "steps.csv", durations=False)
    assert (tmp_path / "steps.csv").read_text() == tracker.to_csv(durations=False)
    assert tracker.to_csv().startswith(
        "Session_ID,Turn_ID,Step_Number,Tool_Name,Input_Tokens,Output_Tokens,Duration_ms,"
    )


def test_a_tracker_can_be_rebuilt():
    """From events as from a file: turns with their usage and time, and the steps."""

    def event(seq, type_, second, data):
        return Event(session_id="s", seq=seq, type=type_, ts=f"2026-11-21T10:00:{second:02}Z", data=data)

    prompt = {"role": "user", "content": "Go"}
    events = [
        event(0, "session.start", 0, {"v": 1}),
        event(1, "llm.request", 1, {"messages": [prompt]}),
        event(2, "llm.response", 3, {"content": "Yes", "usage": {"input": 4, "cache_write": 6, "output": 1}}),
        event(3, "llm.request", 10, {"messages": [prompt, {"role": "assistant", "content": "Yes"}, prompt]}),
        event(4, "llm.response", 11, {"content": "No", "usage": {"input": 20, "output": 2}}),
    ]
    tracker = UsageTracker.from_log(events)
    assert (tracker.session_id, tracker.turn_count) == ("s", 2)
    session = tracker.get_session_usage()
    assert (session.input_tokens, session.output_tokens, session.duration_seconds) == (30, 3, 3.0)
    assert session.cache_write_tokens == 6
    assert [(step.turn_id, step.duration_ms) for step in tracker.get_step_history()] == [(1, 2000), (2, 1000)]


def test_recording_goes_on_after_a_rebuild():
    """A rebuilt tracker is one like any other."""
    tracker = UsageTracker.from_log([])
    tracker.record_turn({"input_tokens": 1})
    assert tracker.get_session_usage().turns == 1


def test_a_step_is_a_value():
    """Nothing changes one once it is made."""
    step = RequestUsageSnapshot(request_num=1, input_tokens=1, output_tokens=1)
    with pytest.raises(AttributeError):
        step.input_tokens = 2
