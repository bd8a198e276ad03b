"""The weaknesses of the API's first author, by number: each is shown not to be here.

1 to 4 are of windows and token counts and are tested there. 5 to 16 follow.
"""

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from rich.console import Console

from sessionlog.context import (
    ContextSnapshot,
    RequestUsageSnapshot,
    TurnUsage,
    UsageTracker,
    extract_context_snapshot,
    extract_full_context_snapshot,
    get_agent_context_snapshot,
    get_step_history,
    record_steps_from_snapshot,
    register_agent,
    to_csv,
    unregister_agent,
)
from sessionlog.logger.session_logger import SessionLogger
from tests.context.talks import answer, ask, call, result, tool_loop, user


def test_05_a_stored_history_is_not_lost():
    """Messages as JSON give what the same messages give as objects."""
    talk = tool_loop()
    stored = json.loads(json.dumps(talk, default=vars))
    assert extract_context_snapshot(message_history=stored) == extract_context_snapshot(message_history=talk)
    assert len(extract_context_snapshot(message_history=stored).per_request_usage) == 4


def test_06_durations_are_kept_to_the_end():
    """What was recorded as 1234.5 ms is 1234.5 ms in the step, the turn, the JSON, the table and the CSV."""
    recorder = register_agent("timed", None)
    try:
        recorder.record_request({"input_tokens": 1, "output_tokens": 1}, duration_ms=1234.5)
        snapshot = get_agent_context_snapshot("timed")
    finally:
        unregister_agent("timed")
    assert snapshot.turn_usage.duration_seconds == 1.2345
    assert snapshot.to_dict()["perRequestUsage"][0]["durationMs"] == 1234.5
    assert "(1.23 s)" in _text(snapshot)
    assert ",1234," in to_csv(record_steps_from_snapshot(snapshot))


def test_06_steps_are_timed_from_their_request():
    """From the time a request was sent to the time its answer came."""
    start = datetime(2026, 11, 21, 10, tzinfo=UTC)
    talk = [
        ask(user("Hello"), ts=start),
        answer("Hi", tokens=(5, 1), ts=start + timedelta(milliseconds=750)),
    ]
    (step,) = extract_context_snapshot(message_history=talk).per_request_usage
    assert step.duration_ms == 750


def test_07_turns_are_prompts_and_tool_calls_are_calls():
    """One prompt with three calls in two steps is one turn with three tool calls, each by its name."""
    talk = [
        ask(user("Go")),
        answer(call("read", "c1"), call("read", "c2"), tokens=(1, 1)),
        ask(SimpleNamespace(part_kind="tool-return", content="a", tool_call_id="c1")),
        answer(call("grep", "c3"), tokens=(1, 1)),
        ask(SimpleNamespace(part_kind="tool-return", content="b", tool_call_id="c3")),
        answer("Done", tokens=(1, 1)),
    ]
    snapshot = extract_context_snapshot(message_history=talk)
    assert snapshot.session_usage.turns == 1
    assert (snapshot.turn_usage.tool_calls, snapshot.turn_usage.requests) == (3, 3)
    assert snapshot.turn_usage.tool_names == ("read", "read", "grep")


def test_07_a_structured_answer_ends_its_turn():
    """The next prompt opens a turn also where it is sent beside the answer to the output tool, which is no tool call."""
    talk = [ask(user("One")), answer(call("final_result", "c1"), tokens=(1, 1))]
    done = SimpleNamespace(part_kind="tool-return", content="Final result processed.", tool_call_id="c1")
    talk += [ask(done, user("Two")), answer(call("read", "c1"), tokens=(2, 1))]
    talk += [
        ask(result("c1", "body")),
        answer(call("final_result", "c2"), tokens=(3, 1)),
        ask(vars(done) | {"tool_call_id": "c2"}),
    ]
    snapshot = extract_context_snapshot(message_history=talk)
    assert [step.turn_id for step in snapshot.per_request_usage] == [1, 2, 2]
    assert (snapshot.session_usage.turns, snapshot.session_usage.tool_calls) == (2, 1)
    assert (snapshot.turn_usage.requests, snapshot.turn_usage.tool_names) == (2, ("read",))


def test_08_cached_tokens_of_an_object_are_seen():
    """Under pydantic-ai's names; they are a part of the input, and billable is what they are not."""
    tracker = UsageTracker()
    usage = SimpleNamespace(input_tokens=100, output_tokens=10, cache_read_tokens=60, cache_write_tokens=30)
    tracker.record_turn(usage)
    session = tracker.get_session_data()
    assert (session["total_tokens"], session["cached_tokens"], session["billable_tokens"]) == (110, 60, 50)
    assert tracker.get_turn_usage().cache_write_tokens == 30


def test_09_the_csv_tells_the_turn_and_utc():
    """Steps of the second turn are of the second turn; a time of any zone is told in UTC."""
    ts = datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    talk = [ask(user("One")), answer("1", tokens=(1, 1)), ask(user("Two")), answer("2", tokens=(2, 1), ts=ts)]
    rows = list(
        csv.reader(io.StringIO(to_csv(record_steps_from_snapshot(extract_context_snapshot(message_history=talk)))))
    )
    assert [row[1] for row in rows[1:]] == ["turn_01", "turn_02"]
    assert rows[2][-1] == "2026-11-21T10:00:00.000000Z"


@pytest.mark.parametrize("odd", ["many", "", "-3", "1.5", -3, float("nan"), float("inf"), True, [1], {"a": 1}, b"7"])
def test_10_what_is_no_number_never_raises(odd):
    """It counts 0, and the rest of the usage stays."""
    tracker = UsageTracker()
    tracker.record_turn({"input_tokens": odd, "output_tokens": 7, "requests": odd, "tool_calls": odd})
    turn = tracker.get_turn_usage()
    assert (turn.input_tokens, turn.output_tokens, turn.requests, turn.tool_calls) == (0, 7, 0, 0)


def test_10_no_request_is_no_request():
    """A turn that used nothing made no request, and neither did its session."""
    tracker = UsageTracker()
    tracker.record_turn({"requests": 0})
    assert tracker.get_turn_usage().requests == tracker.get_session_usage().requests == 0


def test_11_a_turn_takes_its_own_time():
    """By a clock that only grows; a turn that nobody started took no time."""
    seconds = iter([100.0, 103.5])
    tracker = UsageTracker(clock=lambda: next(seconds))
    tracker.start_turn()
    tracker.record_turn({})
    assert tracker.get_turn_usage().duration_seconds == 3.5
    tracker.record_turn({})
    assert tracker.get_turn_usage().duration_seconds == 0
    assert tracker.get_session_usage().duration_seconds == 3.5


def test_12_a_tool_call_is_counted_once():
    """Under both keys it is still one call."""
    tracker = UsageTracker()
    tracker.record_turn({"tool_calls": 2, "mcp_tool_calls": 2})
    tracker.record_turn({"tool_calls": 1})
    assert tracker.get_session_usage().tool_calls == tracker.get_session_data()["mcp_tool_calls"] == 3


def test_13_what_is_in_the_window_is_a_suffix():
    """Behind a message that does not fit nothing older is in, however small."""
    talk = [ask(user("x")), answer("y" * 400), ask(user("z"))]
    full = extract_full_context_snapshot(message_history=talk, context_window=50, count=len)
    assert [message.in_context for message in full.messages] == [False, False, True]
    assert (full.current_tokens, full.history_tokens) == (1, 401)


def test_13_everything_takes_its_room():
    """Thinking and refused calls are listed and counted, a call on its arguments."""
    talk = [
        ask(user("Go")),
        answer(SimpleNamespace(part_kind="thinking", content="hmm"), call("read", "c1", {"a": 1})),
        ask(SimpleNamespace(part_kind="retry-prompt", content="no", tool_call_id="c1", tool_name="read")),
    ]
    full = extract_full_context_snapshot(message_history=talk, count=len)
    assert [(m.role, m.content, m.estimated_tokens) for m in full.messages] == [
        ("user", "Go", 2), ("assistant", "hmm", 3), ("assistant", '{"a": 1}', 8), ("tool", "no", 2),
    ]  # fmt: skip


def test_14_a_name_is_no_markup_and_a_million_is_1m():
    """A tool's name is shown as it is; a window of 1,000,000 is `1M`."""
    step = RequestUsageSnapshot(request_num=1, input_tokens=1, output_tokens=1, tool_names=("[red]x[/red]",), turn_id=1)
    turn = TurnUsage(requests=1, tool_calls=1, tool_names=("[red]x[/red]",))
    text = _text(ContextSnapshot(agent_id="a", per_request_usage=(step,), turn_usage=turn, context_window=1_000_000))
    assert text.count("[red]x[/red]") == 2
    assert "of 1M" in text


def test_15_the_percentage_is_that_of_everything():
    """The current turn's answer and tool traffic fill the window as well; no part is overwritten by a report."""
    talk = [ask(user("Go")), answer("Here it is.", call("read", "c1", {"path": "x"}), tokens=(4000, 50))]
    snapshot = extract_context_snapshot(message_history=talk, context_window=1000, count=len)
    parts = snapshot.current_user_tokens + snapshot.current_assistant_tokens + snapshot.current_tool_call_tokens
    assert snapshot.get_context_total() == snapshot.total_tokens == parts
    assert snapshot.get_context_percentage() == parts / 10
    assert snapshot.user_message_tokens == snapshot.current_user_tokens != 4000


def test_16_a_session_can_be_rebuilt_from_its_log(tmp_path):
    """After the process is gone: the tracker, the steps and the snapshot."""
    with SessionLogger(tmp_path, "kept", model="test") as log:
        log.llm_request("Read it.", tools=[{"name": "read", "description": "", "parameters": {}}])
        calls = [{"id": "c1", "name": "read", "arguments": {"path": "a"}}]
        log.llm_response("", tool_calls=calls, usage={"input": 10, "output": 2, "cache_read": 5}, latency_ms=70)
    tracker = UsageTracker.from_log(log.path)
    assert tracker.session_id == "kept"
    assert tracker.get_session_usage().input_tokens == 15
    assert tracker.get_step_history() == get_step_history(log.path)
    snapshot = extract_context_snapshot(log=log.path)
    assert (snapshot.agent_id, [tool.name for tool in snapshot.tools]) == ("kept", ["read"])
    assert snapshot.per_request_usage[0].duration_ms == 70


def _text(snapshot):
    out = io.StringIO()
    Console(file=out, width=110, color_system=None).print(snapshot.to_table())
    return out.getvalue()
