"""OpenTelemetry's spans: every spelling of them is one span, and every call counts once, whoever tells of it."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.events.times import parse_time
from sessionlog.render.replay.fold import fold_replay
from sessionlog.sources.otel import SOURCE
from sessionlog.sources.otel.exported import read_attributes, read_instant, spans_of
from sessionlog.sources.record import CopyRank
from tests.profiles import examples
from tests.sources.homes import CASES, LONG_AGO, build_home

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TEN = parse_time("2026-11-20T10:00:00Z")


@pytest.fixture
def home(tmp_path):
    """Build a case's home and return its path."""
    return lambda case: build_home(f"otel/{case}", tmp_path)


def span(span_id, parent="", at=0, **attributes):
    """One span of a call, on a line of its own; `gen_ai__x` stands for `gen_ai.x`."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    call = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5"}
    return {
        "traceId": TRACE,
        "spanId": f"{span_id:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": "chat gpt-5",
        "startTimeUnixNano": str(TEN + at * 10**9),
        "endTimeUnixNano": str(TEN + (at + 1) * 10**9),
        "attributes": call | named,
    }


def write(folder, *rows):
    """Write rows to a file; returns its path."""
    path = Path(folder) / "spans.jsonl"
    path.write_bytes(b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows))
    return str(path)


def scan_one(path):
    """The only session of a file."""
    [session] = SOURCE.scan(path, None).sessions
    return session


def read(path, session_id=None):
    """The events of a session."""
    return [item for item in SOURCE.read(str(path), session_id) if not isinstance(item, Problem)]


def test_a_place_is_only_where_the_user_says():
    """There is no convention for files of spans."""
    assert list(SOURCE.locate({"HOME": "/h"})) == []
    assert list(SOURCE.locate({"SESSIONLOG_OTEL_PATH": "/a:/b.jsonl:"})) == ["/a", "/b.jsonl"]


def test_files_are_recognised_by_their_content(home):
    """OTLP by its first key, single spans by what they are about; quoted attributes in another log are not."""
    for path in (home("other-spellings")).iterdir():
        assert SOURCE.recognises(str(path), path.read_bytes()[:65536])
    assert SOURCE.recognises("x", b'\xef\xbb\xbf { "resourceSpans" : [' + b" " * 100)
    assert not SOURCE.recognises("x", b'{"resourceLogs":[]}\n')
    assert not SOURCE.recognises("x", b'{"type":"user","text":"{\\"gen_ai.system\\":1}"}\n')
    http = {"traceId": TRACE, "spanId": "01" * 8, "name": "GET", "attributes": {"http.method": "GET"}}
    assert not SOURCE.recognises("x", json.dumps(http).encode() + b"\n")
    for other in CASES.glob("claude-code/*/home/**/*.jsonl"):
        assert not SOURCE.recognises(str(other), other.read_bytes()[:65536])


@pytest.mark.parametrize(
    "value",
    [
        "1795168800000000000",
        1795168800000000000,
        1795168800000000,
        1795168800000,
        1795168800,
        "2026-11-20T10:00:00Z",
        [1795168800, 0],
    ],
)
def test_an_instant_may_be_written_in_many_ways(value):
    """Nanoseconds in text, numbers by their magnitude, RFC 3339, seconds and nanoseconds."""
    assert read_instant(value) == TEN


@pytest.mark.parametrize(
    "value",
    [
        None, True, "soon", [], [1], ["1", 2], {}, -1, 0, float("nan"), float("inf"), "9" * 30, 10**400, 9.9e10,
        [9_999_999_999, 0], [1795168800, -1], [1795168800, 10**9], [0, 0, 0], [10**30, 0],
    ],
)  # fmt: skip
def test_what_is_no_instant_is_none(value):
    """Nothing odd becomes a time."""
    assert read_instant(value) is None


def test_attributes_are_untyped():
    """Scalars, lists and tables of OTLP, and Go's pairs, read as plain values."""
    typed = [
        {"key": "a", "value": {"intValue": "5"}},
        {"key": "b", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"boolValue": True}]}}},
        {"key": "c", "value": {"kvlistValue": {"values": [{"key": "d", "value": {"doubleValue": 0.5}}]}}},
        {"Key": "e", "Value": {"Type": "INT64", "Value": 7}},
        {"key": "f", "value": {}},
        None,
    ]
    assert read_attributes(typed) == {"a": "5", "b": ["x", True], "c": {"d": 0.5}, "e": 7, "f": None}


def test_a_log_record_is_no_span():
    """The same call may be logged beside its span."""
    record = span(1) | {"body": {"stringValue": "x"}, "severityNumber": 9}
    assert list(spans_of(record)) == []
    assert len(list(spans_of(span(1)))) == 1


def test_input_leaves_out_what_the_cache_served_and_took(tmp_path):
    """The convention's input includes both; where it cannot, it is taken as it is."""
    usage = {"gen_ai__usage__cache_read__input_tokens": 60, "gen_ai__usage__cache_creation__input_tokens": 10}
    path = write(
        tmp_path,
        span(1, gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=5, **usage),
        span(2, gen_ai__usage__input_tokens=3, gen_ai__usage__output_tokens=5, **usage),
    )
    assert [r.usage.input for r in scan_one(path).records] == [30, 3]
    assert {(r.usage.cache_read, r.usage.cache_write) for r in scan_one(path).records} == {(60, 10)}


def test_a_call_lasts_from_its_start_to_its_end(tmp_path):
    """Time is that of the answer."""
    [record] = scan_one(write(tmp_path, span(1, at=5, gen_ai__usage__input_tokens=1))).records
    assert (record.time_ns, record.latency_ms, record.quality) == (TEN + 6 * 10**9, 1000.0, "exact")
    assert (record.key, record.family) == (f"{TRACE}:0000000000000001", TRACE)


def test_a_call_without_tokens_is_partial_and_a_failed_one_is_not(tmp_path):
    """Nobody knows what the one used; the other used nothing."""
    path = write(tmp_path, span(1), span(2, error__type="429"))
    assert [(r.quality, r.failed) for r in scan_one(path).records] == [("partial", False), ("exact", True)]


def test_a_wrapper_of_a_call_is_not_another_call(tmp_path):
    """A framework's span around the client's, whichever is exported first."""
    inner, outer = span(2, parent=1, gen_ai__usage__input_tokens=9), span(1, gen_ai__usage__input_tokens=9)
    for rows in ((inner, outer), (outer, inner)):
        assert [r.key[-1] for r in scan_one(write(tmp_path, *rows)).records] == ["2"]


def test_an_agents_sum_stands_aside_for_calls(home):
    """It counts once, as the session's, only where nothing else was traced."""
    session = scan_one(str(home("agents-only") / "traces.jsonl"))
    [record] = session.records
    assert (record.granularity, record.usage.input, record.copy_rank) == ("session", 1000, CopyRank.SIDECHAIN)
    assert (session.status, session.error) == ("error", "gave up")
    [*_, answer, end] = read(session.path)
    assert (answer.data["usage"]["input"], end.type, end.data["status"]) == (1000, "session.end", "error")


def test_a_trace_belongs_to_the_conversation_that_its_agent_names(home):
    """Children come before the span that names it."""
    scan = SOURCE.scan(str(home("several-sessions") / "traces.jsonl"), None)
    found = {s.session_id: [r.usage.input for r in s.records] for s in scan.sessions}
    assert found == {"alpha": [10, 30], "beta": [20], "7e" * 16: [40]}
    assert scan.resume is None


def test_a_conversation_is_told_once_though_each_span_repeats_it(home):
    """System words, user, tool and answer in their order; tools from their own spans."""
    events = read(home("otlp-lines") / "traces.jsonl")
    assert [e.type for e in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    sent = [(m["role"], m["content"]) for e in events if e.type == "llm.request" for m in e.data["messages"]]
    assert sent[:2] == [("system", "You are brief."), ("user", "Weather in Paris?")]
    assert [role for role, _ in sent].count("user") == 1
    answers = [e.data for e in events if e.type == "llm.response"]
    assert (answers[0]["reasoning"], answers[0]["finish_reason"]) == ("I need the weather.", "tool_calls")
    assert answers[1]["content"] == "It is rainy in Paris, 14 C."
    tool = next(e.data for e in events if e.type == "tool.call")
    assert (tool["tool"], tool["input"], tool["output"], tool["duration_ms"]) == (
        "get_weather", {"location": "Paris"}, "rainy, 14 C", 500.0,
    )  # fmt: skip
    assert list(fold_replay(iter(events), session_id="conv-1"))


def test_tool_results_without_spans_are_taken_from_the_history(tmp_path):
    """A program may trace only its calls."""
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}],
    }
    back = {"role": "tool", "tool_call_id": "c", "content": "a.txt"}
    ask = {"role": "user", "content": "Which files?"}
    path = write(
        tmp_path,
        span(1, gen_ai__input__messages=json.dumps([ask]), gen_ai__output__messages=json.dumps([call])),
        span(2, at=3, gen_ai__input__messages=json.dumps([ask, call, back])),
    )
    tools = [e.data for e in read(path) if e.type == "tool.call"]
    assert [(t["tool"], t["input"], t["output"]) for t in tools] == [("ls", {}, "a.txt")]


def test_events_of_older_conventions_are_messages(home):
    """Before messages were attributes they were events of the span."""
    events = read(home("console-pretty") / "spans.json")
    assert [m["role"] for m in events[1].data["messages"]] == ["system", "user"]
    assert events[2].data["content"] == "hi"
    assert events[-1].data["error"] == "rate limited"


def test_an_object_that_is_cut_off_loses_only_itself(home, tmp_path):
    """Whether printed on one line or on many, the next one is read."""
    text = (home("console-pretty") / "spans.json").read_bytes()
    first, rest = text.split(b"\n}\n", 1)
    path = tmp_path / "cut.json"
    path.write_bytes(first[:300] + b"\n" + first + b"\n}\n" + rest[:-3])
    scan = SOURCE.scan(str(path), None)
    assert [p.kind for p in scan.problems.first] == ["not_json"]  # the end is young: it may still be in the writing
    assert sum(len(s.records) for s in scan.sessions) == 1
    os.utime(path, (LONG_AGO, LONG_AGO))
    assert [p.kind for p in SOURCE.scan(str(path), None).problems.first] == ["not_json", "torn_tail"]


def test_an_object_without_an_end_is_named_where_it_begins(tmp_path):
    """The place is that of its first line, whether another object follows it or the file ends."""
    begun = b'{\n  "traceId": "1",\n'
    path = write(tmp_path, span(1), begun, span(2), begun)
    content = Path(path).read_bytes()
    os.utime(path, (LONG_AGO, LONG_AGO))
    first, last = SOURCE.scan(path, None).problems.first
    assert (first.kind, first.line, content[first.offset :][: first.length]) == ("not_json", 2, begun)
    assert (last.kind, last.line, content[last.offset :][: last.length]) == ("torn_tail", 5, begun)


def test_a_call_has_its_responses_id_for_a_key(tmp_path):
    """An SDK's file and a gateway's name one response; a short id is a local server's counter."""
    [long, short] = (
        span(at, at=at, gen_ai__usage__input_tokens=1, gen_ai__response__id=name)
        for at, name in enumerate(("resp_0123456789ab", "chatcmpl-7"), 1)
    )
    keys = [record.key for record in scan_one(write(tmp_path, long, short)).records]
    assert keys == [f"{TRACE}:resp_0123456789ab", f"{TRACE}:0000000000000002"]


def test_the_outermost_span_with_counts_counts(tmp_path):
    """What the client was told counts, unless it was told nothing; the key is the innermost span's, as in its copies."""
    counts = {"gen_ai__usage__input_tokens": 9}
    inner, outer = span(2, parent=1, at=1, **counts), span(1, **dict.fromkeys(counts, 10))
    outer["endTimeUnixNano"] = str(TEN + 5 * 10**9)
    [record] = scan_one(write(tmp_path, inner, outer)).records
    assert (record.usage.input, record.latency_ms, record.key[-1]) == (10, 5000.0, "2")
    del outer["attributes"]["gen_ai.usage.input_tokens"]
    [record] = scan_one(write(tmp_path, inner, outer)).records
    assert (record.usage.input, record.quality) == (9, "exact")


def test_spans_around_each_other_in_a_circle_end(tmp_path):
    """A hostile file names parents in a circle."""
    scan = SOURCE.scan(write(tmp_path, span(1, parent=2), span(2, parent=1), span(3, parent=3)), None)
    assert sum(len(session.records) for session in scan.sessions) == 1


def test_what_claude_code_logs_is_replayed(home):
    """The question, the answers and what the tools gave back, as far as it was recorded."""
    path = str(home("claude-code-logs") / "logs.jsonl")
    first = SOURCE.scan(path, None).sessions[0]
    assert {record.superseded_by for record in first.records} == {f"claude-code:{first.session_id}"}
    assert {tool.superseded_by for tool in first.tools} == {f"claude-code:{first.session_id}"}
    assert [record.cost_nano for record in first.records] == [3_700_000, 200_000, 3_700_000, None]
    assert [record.latency_ms for record in first.records] == [1500, 400, 1500, 100]
    assert [(tool.tool, tool.duration_ms, tool.output_bytes) for tool in first.tools] == [
        ("Bash", 800, 77), ("find", 20, 5),
    ]  # fmt: skip
    events = read(path)
    assert [event.data["content"] for event in events if event.type == "llm.response"][:1] == ["I look."]
    assert [event.data["tool"] for event in events if event.type == "tool.call"] == ["Bash", "atlas/find"]


def test_what_codex_logs_is_replayed(home):
    """A completed response once; its tools with their results."""
    path = str(home("codex-logs") / "logs.jsonl")
    session = scan_one(path)
    assert {record.superseded_by for record in session.records} == {f"codex:{session.session_id}"}
    assert [record.failed for record in session.records] == [False, True, False, True]
    assert [event.data["output"] for event in read(path) if event.type == "tool.call"] == ["a.py", "denied"]


def test_log_records_are_recognised_by_the_agent_that_they_name(home):
    """Even where their line goes on beyond what is looked at; those of other programs are not."""
    content = (home("claude-code-logs") / "logs.jsonl").read_bytes()
    assert SOURCE.recognises("x", content)
    assert SOURCE.recognises("x", content[: content.index(b"\n") - 200])
    other = content.replace(b"claude_code.", b"other.")
    assert not SOURCE.recognises("x", other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "status",
    "events",
)
ATTRIBUTES = (
    "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.conversation.id", "gen_ai.response.finish_reasons",
    "gen_ai.tool.call.result", "gen_ai.system_instructions", "gen_ai.response.id", "gen_ai.tool.name", "event.name",
    "session.id",
)  # fmt: skip
LOGGED = (
    "session.id", "conversation.id", "event.timestamp", "event.kind", "model", "input_tokens", "output_tokens",
    "cost_usd", "duration_ms", "request_id", "speed", "error", "error.message", "agent.name", "prompt", "response",
    "tool_name", "tool_use_id", "tool_input", "tool_parameters", "tool_result_size_bytes", "success", "arguments",
    "output", "mcp_server", "input_token_count", "cached_token_count", "provider_name", "app.version",
)  # fmt: skip


@given(
    fields=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3),
    odd=st.dictionaries(st.sampled_from(ATTRIBUTES), JSON),
)
@examples(150)
def test_odd_shapes_never_raise(tmp_path_factory, fields, odd):
    """Any JSON in the place of any field."""
    row = span(1, gen_ai__usage__input_tokens=1)
    row["attributes"] |= odd
    path = write(
        tmp_path_factory.getbasetemp(), row | fields, {"resourceSpans": [{"scopeSpans": [{"spans": [row | fields]}]}]}
    )
    for session_id in SOURCE.name_sessions(path):
        assert list(SOURCE.read(path, session_id))
    SOURCE.scan(path, None)


@given(
    event=st.sampled_from(["claude_code.api_request", "claude_code.tool_result", "claude_code.user_prompt",
                           "claude_code.assistant_response", "codex.sse_event", "codex.tool_result",
                           "codex.conversation_starts", "codex.api_request"]),
    odd=st.dictionaries(st.sampled_from(LOGGED), JSON | st.sampled_from(["1", "x", "response.completed"])),
)  # fmt: skip
@examples(150)
def test_odd_log_records_never_raise(tmp_path_factory, event, odd):
    """Any JSON in the place of any attribute."""
    record = {"body": event, "attributes": odd}
    batch = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    path = write(tmp_path_factory.getbasetemp(), record, batch)
    for session_id in SOURCE.name_sessions(path):
        list(SOURCE.read(path, session_id))
    SOURCE.scan(path, None)


def test_a_duration_ends_no_span_after_the_last_instant():
    """A start and a duration that do not fit 64 bits together end at what does."""
    odd = {"traceId": TRACE, "spanId": "1", "attributes": {}, "startTime": 2**63 - 2, "duration": 9e14}
    [one] = spans_of(odd)
    assert one.end == 2**63 - 1


def test_a_status_nested_beyond_measure_is_no_error():
    """Only the codes of an error are one."""
    deep = []
    for _ in range(1100):
        deep = [deep]
    [one] = spans_of({"traceId": TRACE, "spanId": "1", "attributes": {}, "status": {"code": deep}})
    assert not one.error


def test_a_result_nested_beyond_measure_has_the_size_of_its_text(tmp_path):
    """What can be read but not written again counts as it was recorded."""
    deep = "[" * 600 + "]" * 600
    path = write(
        tmp_path,
        span(1, gen_ai__usage__input_tokens=1),
        span(2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="t", gen_ai__tool__call__result=deep),
    )
    assert [tool.output_bytes for tool in scan_one(path).tools] == [1200]
