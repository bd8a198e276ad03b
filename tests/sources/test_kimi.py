"""Kimi CLI and Kimi Code: two dialects of `wire.jsonl`, sub-agents told twice, models that stand elsewhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.times import epoch_ns
from sessionlog.sources.kimi import SOURCE, Row, State, steps
from sessionlog.sources.steps import At, Session
from sessionlog.sources.typed import Typed
from tests.profiles import examples
from tests.sources.homes import build_home, environment


def logs_of(case, folder):
    """The logs of a case, as the agent left them."""
    home = build_home(case, folder)
    return [str(path) for place in SOURCE.locate(environment(case, home)) for path in SOURCE.list_logs(place)]


def existing_logs(case, folder):
    """The logs of a case that are there."""
    return [log for log in logs_of(case, folder) if log.endswith(".jsonl")]


def main_log(case, folder):
    """The log of a session itself."""
    return next(log for log in existing_logs(case, folder) if "subagents" not in log and "agent-0" not in log)


def events_of(log):
    """The events of a log, problems left out."""
    return [item for item in SOURCE.read(log, None) if isinstance(item, Event)]


def test_logs_are_where_the_variables_say():
    """Both generations have a place and a variable; the older one has two names for it."""
    assert list(SOURCE.locate({"HOME": "/h"})) == ["/h/.kimi/sessions", "/h/.kimi-code/sessions"]
    given_places = SOURCE.locate({"HOME": "/h", "KIMI_SHARE_DIR": "/s", "KIMI_CODE_HOME": "/c"})
    assert list(given_places) == ["/s/sessions", "/c/sessions"]
    assert next(iter(SOURCE.locate({"HOME": "/h", "KIMI_DATA_DIR": "/d"}))) == "/d/sessions"


def test_sub_agents_are_listed_and_other_files_are_not(tmp_path):
    """Only wires are logs, at every depth."""
    logs = existing_logs("kimi/sub-agent", tmp_path)
    assert [log.split("/s-3/")[1] for log in logs] == ["subagents/a1b2c3d4/wire.jsonl", "wire.jsonl"]


@pytest.mark.parametrize(
    ("row", "ours"),
    [
        ({"timestamp": 1.0, "message": {"type": "TurnBegin", "payload": {"user_input": "x"}}}, True),
        ({"type": "metadata", "protocol_version": "1.3"}, True),
        ({"type": "usage.record", "model": "m", "usage": {}}, True),
        ({"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": {}}, False),
        ({"type": "assistant", "message": {"role": "assistant"}, "timestamp": "t"}, False),
        ({"session_id": "s", "seq": 0, "type": "session.start", "ts": "t", "data": {}}, False),
    ],
)
def test_a_wire_is_recognised_by_its_rows(row, ours):
    """Rows of other agents look alike from afar."""
    assert SOURCE.recognises("/x/wire.jsonl", json.dumps(row).encode() + b"\n") is ours


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_scan_resumes_at_every_byte(tmp_path, step):
    """Wherever the agent was in its writing, the rest gives what was missing; in the quick tier at every seventh byte."""
    log = main_log("kimi/code-models", tmp_path)
    with open(log, "rb") as file:
        content = file.read()
    whole = SOURCE.scan(log, None).sessions[0]
    for cut in range(0, len(content), step):
        with open(log, "wb") as file:
            file.write(content[:cut])
        begun = SOURCE.scan(log, None)
        with open(log, "wb") as file:
            file.write(content)
        rest = SOURCE.scan(log, begun.resume)
        scans = (begun, rest) if begun.resume else (rest,)
        records = {r.key: r.usage for scan in scans for one in scan.sessions for r in one.records}
        assert records == {record.key: record.usage for record in whole.records}
        assert (rest.sessions[0].status, rest.sessions[0].prompt) == (whole.status, whole.prompt)


def test_the_model_and_the_folder_stand_in_the_configuration(tmp_path):
    """Kimi CLI writes neither into a session."""
    (session,) = SOURCE.scan(main_log("kimi/cli", tmp_path), None).sessions
    assert session.project == "/w/api"
    assert {(record.provider, record.model) for record in session.records} == {("moonshotai", "kimi-k2.5")}


def test_without_a_configuration_both_are_unknown(tmp_path):
    """The folder's name is a digest, which says nothing."""
    (session,) = SOURCE.scan(main_log("kimi/repeated-status", tmp_path), None).sessions
    assert session.project == "unknown"
    assert {record.model for record in session.records} == {"unknown"}


def test_latency_ends_where_the_tools_begin(tmp_path):
    """In Kimi Code a step's usage may be told after its tools have run."""
    (session,) = SOURCE.scan(main_log("kimi/code", tmp_path), None).sessions
    assert [record.latency_ms for record in session.records] == [589, 250]


def test_tool_calls_with_one_id_are_two_calls(tmp_path):
    """Ids such as Shell_0 come again; durations are from call to result."""
    (session,) = SOURCE.scan(main_log("kimi/cli", tmp_path), None).sessions
    calls = [(tool.tool, tool.failed, round(tool.duration_ms or 0), tool.output_bytes) for tool in session.tools]
    assert calls == [("Shell", False, 1000, 5), ("Shell", True, 100, 4)]


def test_a_sub_agent_has_the_model_that_it_was_launched_with(tmp_path):
    """Its file is part of the parent's session."""
    log = next(log for log in existing_logs("kimi/sub-agent", tmp_path) if "subagents" in log)
    (session,) = SOURCE.scan(log, None).sessions
    assert (session.session_id, session.part) == ("s-3", True)
    assert {(record.agent, record.model) for record in session.records} == {("explore", "kimi-k2-thinking")}


def test_a_session_reads_as_a_conversation(tmp_path):
    """Arguments that came in pieces are whole, and a result comes after the answer that asked for it."""
    events = events_of(main_log("kimi/cli", tmp_path))
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "tool.call",
        "session.end",
    ]  # fmt: skip
    assert events[1].data["messages"] == [{"role": "user", "content": "List the files"}]
    assert events[2].data["reasoning"] == "Use ls."
    assert events[3].data["input"] == {"command": "ls"}
    assert events[5].data["content"] == "There is a.py."
    assert events[6].data["error"] == "boom"
    assert events[7].data["status"] == "success"


def test_the_greatest_status_of_a_message_is_told_once(tmp_path):
    """Repeats are no responses."""
    events = events_of(main_log("kimi/repeated-status", tmp_path))
    outputs = [event.data["usage"]["output"] for event in events if event.type == "llm.response"]
    assert outputs == [9, 1, 2]


def test_a_sub_agent_answers_beside_the_conversation(tmp_path):
    """No request of the main agent sends what its sub-agents said."""
    events = events_of(main_log("kimi/sub-agent", tmp_path))
    assert [event.data.get("agent") for event in events if event.type == "llm.response"] == [
        None, "explore", "explore", None,
    ]  # fmt: skip
    assert sum(event.type == "llm.request" for event in events) == 2


def test_a_step_that_was_cut_off_has_words_and_no_tokens(tmp_path):
    """It is no response, for nothing is known of its use."""
    path = tmp_path / "p" / "s" / "wire.jsonl"
    path.parent.mkdir(parents=True)
    rows = (("StepBegin", {"n": 1}), ("ContentPart", {"type": "text", "text": "I am about"}), ("StepInterrupted", {}))
    path.write_text(
        "".join(
            json.dumps({"timestamp": 1770983400 + at, "message": {"type": kind, "payload": data}}) + "\n"
            for at, (kind, data) in enumerate(rows)
        )
    )
    events = events_of(str(path))
    assert [event.type for event in events] == ["session.start", "llm.delta"]
    assert events[1].data["content"] == "I am about"


@pytest.mark.parametrize(
    ("case", "session", "agent"),
    [("kimi/sub-agent", "s-3", "a1b2c3d4"), ("kimi/code-sub-agent", "session-1", "agent-0")],
)
def test_a_sub_agents_log_does_not_claim_its_session(case, session, agent, tmp_path):
    """It is named by both ids, and read by that name, by its session's, or by none."""
    main = main_log(case, tmp_path)
    part = next(log for log in existing_logs(case, tmp_path / "again") if agent in log)
    assert list(SOURCE.name_sessions(main)) == [session]
    assert list(SOURCE.name_sessions(part)) == [f"{session}/{agent}"]
    whole = list(SOURCE.read(part, None))
    assert whole
    assert list(SOURCE.read(part, f"{session}/{agent}")) == list(SOURCE.read(part, session)) == whole
    assert list(SOURCE.read(part, f"{session}/other")) == []


def test_another_session_of_a_log_is_empty(tmp_path):
    """A log is one session."""
    assert list(SOURCE.read(main_log("kimi/cli", tmp_path), "somebody-else")) == []


def test_wrong_numbers_are_named_by_line(tmp_path):
    """They count 0, and the rest of the record stays."""
    scan = SOURCE.scan(main_log("kimi/hostile", tmp_path), None)
    bad = [problem for problem in scan.problems.first if problem.kind == "bad_number"]
    assert [(problem.line, problem.detail) for problem in bad] == [
        (9, "input_other: a negative count"), (9, "output: True is not a number"),
        (9, "input_cache_read: 1.5 is not a whole number"), (10, "usage is a list"),
    ]  # fmt: skip
    assert all(isinstance(problem, Problem) for problem in bad)


@pytest.mark.parametrize(
    ("value", "time_ns"),
    [
        (1770983400, 1_770_983_400_000_000_000),
        (1770983400.5, 1_770_983_400_500_000_000),
        (1770983400123, 1_770_983_400_123_000_000),
        (1770983400123456, 1_770_983_400_123_456_000),
        (1770983400123456789, 1_770_983_400_123_456_789),
        (0, None), (-1, None), (True, None), (float("nan"), None), ("1770983400", None), (1e300, None),
        (10**400, None), (1e-12, None), (9.9e10, None), (2**63 - 1, 2**63 - 1), (2**63, None),
    ],
)  # fmt: skip
def test_times_are_told_apart_by_their_size(value, time_ns):
    """Seconds, milli-, micro- and nanoseconds are each too big or too small to be another."""
    assert epoch_ns(value) == time_ns


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_TYPES = st.sampled_from(
    [
        "TurnBegin", "ContentPart", "ToolCall", "ToolResult", "StatusUpdate", "SubagentEvent", "usage.record",
        "turn.prompt", "context.append_loop_event", "llm.request", "config.update",
    ]
)  # fmt: skip
_KEYS = ("user_input", "type", "function", "return_value", "token_usage", "event", "usage", "input", "model", "payload")


@given(kind=_TYPES, fields=st.dictionaries(st.sampled_from(_KEYS), _JSON))
@examples(150)
def test_rows_of_any_shape_never_raise(kind, fields):
    """Null, lists and texts where objects belong give steps, or none."""
    for row in ({**fields, "type": kind}, {"timestamp": 1.5, "message": {"type": kind, "payload": fields}}):
        list(steps(Typed(Row).fit(row), State("wire.jsonl", "s", "")))


@pytest.mark.parametrize("odd", [[], {}, ["stop"]])
def test_a_list_where_a_word_should_be_is_no_word(odd):
    """Neither a type nor the reason of an end needs to be a text."""
    rows = [
        {"timestamp": 1.0, "message": {"type": odd, "payload": {}}},
        {"type": odd},
        {"type": "context.append_loop_event", "time": 1, "event": {"type": "step.end", "finishReason": odd}},
    ]
    for line in rows[:2]:
        assert not SOURCE.recognises("wire.jsonl", json.dumps(line).encode())
    [session, moment] = steps(Typed(Row).fit(rows[2]), State("wire.jsonl", "s", ""))
    assert (type(session), type(moment)) == (Session, At)
