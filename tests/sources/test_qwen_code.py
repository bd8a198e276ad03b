"""qwen-code: where its chats are found, what is inside what, what of copies counts, and how a chat reads as events."""

import json
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.qwen_code import SOURCE, Row, State, steps
from sessionlog.sources.record import CopyRank
from sessionlog.sources.steps import At, Response, Session
from sessionlog.sources.typed import Typed
from tests.profiles import examples

CASES = os.path.join(os.path.dirname(__file__), "..", "..", "testdata", "sources", "qwen-code")
SESSION = "11111111-0000-4000-8000-000000000001"
locate, list_logs, recognises = SOURCE.locate, SOURCE.list_logs, SOURCE.recognises
name_sessions, scan, read = SOURCE.name_sessions, SOURCE.scan, SOURCE.read
MAIN = f"home/.qwen/projects/-w-api/chats/{SESSION}.jsonl"
SUB = f"home/.qwen/projects/-w-api/subagents/{SESSION}/agent-explore-7f3c.jsonl"


def case(name, path=MAIN):
    return os.path.join(CASES, name, path)


def all_logs():
    for folder, _, names in sorted(os.walk(CASES)):
        if "/chats" in folder or "/subagents" in folder:
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".jsonl"))


LOGS = pytest.mark.parametrize("path", tuple(all_logs()), ids=lambda path: os.path.relpath(path, CASES))


def steps_of(row):
    return list(steps(Typed(Row).fit(row), State("s", "", "")))


def response_of(counts):
    [response] = [step for step in steps_of({"type": "assistant", "usageMetadata": counts}) if type(step) is Response]
    return response


def responses(events):
    return [event.data for event in events if not isinstance(event, Problem) and event.type == "llm.response"]


def one(path):
    [session] = scan(path, None).sessions
    return session


def test_places():
    """Chats are under the projects (earlier tmp) of ~/.qwen, QWEN_HOME, QWEN_RUNTIME_DIR, or those of QWEN_DATA_DIR."""
    assert list(locate({"HOME": "/h"})) == ["/h/.qwen/projects", "/h/.qwen/tmp"]
    assert list(locate({"HOME": "/h", "QWEN_RUNTIME_DIR": "/r"})) == ["/r/projects", "/r/tmp"]
    assert list(locate({"HOME": "/h", "QWEN_HOME": "/q"})) == ["/q/projects", "/q/tmp"]
    assert next(iter(locate({"HOME": "/h", "QWEN_DATA_DIR": "/h/.qwen/projects/"}))) == "/h/.qwen/projects"
    given_two = list(locate({"QWEN_DATA_DIR": "/a,/b", "QWEN_RUNTIME_DIR": "/r"}))
    assert given_two == ["/a/projects", "/a/tmp", "/b/projects", "/b/tmp"]


def test_lists_chats_and_transcripts():
    """A sub-agent's transcript comes after the chats; other files of a project are none."""
    listed = [os.path.basename(path) for path in list_logs(case("sub-agent", "home/.qwen/projects"))]
    assert listed == [f"{SESSION}.jsonl", "agent-explore-7f3c.jsonl"]
    elsewhere = list(list_logs(case("runtime-dir", "home/elsewhere/projects")))
    assert [os.path.basename(path) for path in elsewhere] == [f"{SESSION}.jsonl"]


@LOGS
def test_recognises_its_logs(path):
    """Every fixture is known by its content, and its session by the rows."""
    with open(path, "rb") as file:
        assert recognises(path, file.read(1 << 16))
    [named] = name_sessions(path)
    assert named.partition("/")[0] == one(path).session_id
    assert ("/" in named) == one(path).part


@pytest.mark.parametrize(
    "head",
    [
        b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-05-17T11:07:00Z","data":{"v":1}}',
        b'{"parentUuid":null,"sessionId":"s","type":"assistant","message":{"usage":{"input_tokens":3}},"uuid":"u"}',
        b'{"sessionId":"s","projectHash":"h","startTime":"2026-05-17T11:07:00Z"}',
    ],
)
def test_recognises_no_others(head):
    """Native logs, Claude Code's and Gemini CLI's are not taken for its own."""
    assert not recognises("x.jsonl", head)


def test_cached_is_inside_the_prompt():
    """Cached tokens are taken out of the prompt, thoughts are a part of the candidates."""
    first = one(case("cached-inside-prompt")).records[0]
    assert first.usage == TokenUsage(input=100, output=50, cache_read=900, reasoning=10)
    assert (first.provider, first.branch, first.version) == ("qwen", "main", "0.8.1")


@pytest.mark.parametrize(
    ("thoughts", "total", "output"),
    [(10, 150, 50), (10, 160, 60), (10, None, 50), (10, 999, 50), (60, None, 110), (0, 150, 50)],
)
def test_total_tells_where_thoughts_are(thoughts, total, output):
    """Thoughts are added where the total has them besides, or where they cannot be inside."""
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 50, "thoughtsTokenCount": thoughts}
    response = response_of({**counts, "totalTokenCount": total})
    assert (response.tokens.usage.output, response.tokens.usage.reasoning) == (output, thoughts)
    assert (response.quality, response.tokens.issues) == ("exact", ())


@examples(100)
@given(prompt=st.integers(0, 999), cached=st.integers(0, 999), answer=st.integers(1, 999), thoughts=st.integers(0, 999))
def test_classes_sum_to_the_total(prompt, cached, answer, thoughts):
    """Wherever the thoughts were counted, the classes sum to the total that was reported."""
    cached = min(cached, prompt)
    counts = {"promptTokenCount": prompt, "cachedContentTokenCount": cached, "thoughtsTokenCount": thoughts}
    inside = {**counts, "candidatesTokenCount": answer + thoughts, "totalTokenCount": prompt + answer + thoughts}
    beside = {**counts, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer + thoughts}
    assert response_of(inside).tokens == response_of(beside).tokens
    assert response_of(inside).tokens.usage.total == prompt + answer + thoughts


def test_latency_from_telemetry():
    """The call's own time goes before the time since the question."""
    assert [record.latency_ms for record in one(case("cached-inside-prompt")).records] == [1200, 3000]


def test_tool_call():
    """A call has the duration that its result names, and the size of what it gave."""
    [tool] = one(case("cached-inside-prompt")).tools
    assert (tool.tool, tool.finished, tool.duration_ms, tool.output_bytes) == ("run_shell_command", True, 250, 4)


def test_branch_copies_stand_back():
    """A copied row keeps its key and counts less than the original."""
    original = one(case("branch"))
    copy = one(case("branch", MAIN.replace(SESSION, "22222222-0000-4000-8000-000000000002")))
    assert copy.parent == SESSION
    assert [record.key for record in original.records] == ["a2", "a4"]
    assert [(record.key, record.copy_rank) for record in copy.records] == [
        ("a2", CopyRank.SIDECHAIN),
        ("b4", CopyRank.ORIGINAL),
    ]
    assert [tool.key for tool in original.tools] == [tool.key for tool in copy.tools]


def test_sub_agent_telemetry_is_an_echo():
    """What telemetry tells of a sub-agent's call is of one family with the transcript's response of the same counts."""
    [real] = one(case("sub-agent", SUB)).records
    echoes = [record for record in one(case("sub-agent")).records if record.copy_rank == CopyRank.EMBEDDED]
    assert [echo.family == real.family for echo in echoes] == [True, False]
    assert {real.agent, *(echo.agent for echo in echoes)} == {"Explore"}


def test_sub_agent_is_a_part():
    """A transcript is a part of the session that it names."""
    session = one(case("sub-agent", SUB))
    assert (session.part, session.session_id) == (True, SESSION)


def test_reads_as_a_conversation():
    """Start, prompt, answer with its reasoning, tool call and result, answer, end."""
    events = list(read(case("cached-inside-prompt"), None))
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    assert events[1].data["messages"] == [{"role": "user", "content": "list the files"}]
    assert (events[2].data["content"], events[2].data["reasoning"]) == ("Looking.", "I must look.")
    assert events[2].data["latency_ms"] == 1200
    assert (events[3].data["tool"], events[3].data["output"], events[3].data["duration_ms"]) == (
        "run_shell_command", "a.py", 250,
    )  # fmt: skip


def test_transcript_calls_are_no_responses():
    """In a transcript a call's own row is no response, but its result is told."""
    events = list(read(case("sub-agent", SUB), None))
    assert len(responses(events)) == 1
    assert [event.data["input"] for event in events if event.type == "tool.call"] == [{"path": "x"}]


def test_compression_is_told():
    """A compression says how much there was and how much is left."""
    [event] = [event for event in read(case("mcp-and-compression"), None) if event.type == "compaction.end"]
    assert (event.data["tokens_before"], event.data["tokens_after"]) == (9000, 800)


@LOGS
def test_events_sum_to_the_records(path):
    """The responses that are read use what the scan counts, and no more."""
    used = [data["usage"] for data in responses(read(path, None)) if "usage" in data]
    for name in ("input", "output", "cache_read", "reasoning"):
        assert sum(usage.get(name, 0) for usage in used) == sum(getattr(r.usage, name) for r in one(path).records)


def entered(*scans):
    """What a book would keep of scans of one log, one after the other."""
    records, tools, facts = {}, {}, None
    for found in scans:
        for session in found.sessions:
            facts = (session.session_id, session.part, session.start_ns, session.last_ns, session.status,
                     session.project, session.prompt, session.error, session.parent)  # fmt: skip
            for record in session.records:
                told = (record.usage, record.model, record.agent, record.provider, record.latency_ms, record.time_ns)
                records[record.key] = told
            for tool in session.tools:
                if tool.finished or tool.key not in tools:
                    tools[tool.key] = tool
    return records, tools, facts


@pytest.mark.parametrize("stride", [67, pytest.param(29, marks=pytest.mark.slow)])
@LOGS
def test_going_on_gives_the_same(path, stride, tmp_path):
    """A scan of the first bytes and one of the rest, entered together, are a scan of the whole: wherever it was cut."""
    with open(path, "rb") as file:
        whole = file.read()
    log = tmp_path / os.path.basename(path)
    log.write_bytes(whole)
    at_once = entered(scan(str(log), None))
    step = stride // 29 if "damaged-bytes" in path or "subagents" in path else stride
    for cut in range(0, len(whole) + 1, step):
        log.write_bytes(whole[:cut])
        first = scan(str(log), None)
        log.write_bytes(whole)
        if first.resume is None:  # nothing has been answered yet: it is read from its start
            continue
        assert first.resume.offset <= cut
        assert entered(first, scan(str(log), first.resume)) == at_once


@LOGS
def test_damage_never_raises(path, tmp_path):
    """Bytes that are flipped, cut out or repeated are findings."""
    with open(path, "rb") as file:
        whole = file.read()
    dice = random.Random(7)
    damaged = tmp_path / os.path.basename(path)
    for _ in range(15):
        data = bytearray(whole)
        for _ in range(4):
            at = dice.randrange(len(data))
            data[at : at + dice.randrange(3)] = dice.choice(
                [b"", b"null", b"{", b'"', b"\xff", b"[1]", data[at - 40 : at]]
            )
        damaged.write_bytes(data)
        scan(str(damaged), None)
        assert all(event is not None for event in read(str(damaged), None))


@pytest.mark.parametrize("odd", [{"a": 1}, [1], True, 1e300, ""])
def test_odd_values_are_no_facts(odd, tmp_path):
    """Values of any other kind, wherever they stand, are passed over."""
    names = (
        "uuid",
        "timestamp",
        "model",
        "message",
        "cwd",
        "version",
        "gitBranch",
        "forkedFrom",
        "agentId",
        "agentName",
    )
    row = {**dict.fromkeys(names, odd), "sessionId": "s", "type": "assistant", "usageMetadata": {"promptTokenCount": 3}}
    result = {"functionResponse": {"id": odd, "name": odd, "response": odd}}
    told = {"type": "tool_result", "toolCallResult": {"status": odd, "durationMs": odd}, "message": {"parts": [result]}}
    state = {"subtype": "turn_result", "systemPayload": {"state": odd, "endedAt": 1, "authType": odd, "uiEvent": odd}}
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (row, told, state)))
    assert [record.usage.input for record in one(str(path)).records] == [3]
    assert len(responses(read(str(path), None))) == 1


def test_names_nested_beyond_measure_are_none():
    """An event whose name is no text is no call."""
    deep = []
    for _ in range(1100):
        deep = [deep]
    found = steps_of({"systemPayload": {"uiEvent": {"event.name": deep}}})
    assert [type(step) for step in found] == [Session, At]


def test_sub_agents_of_older_versions():
    """Their calls are in the telemetry alone, where the prompt's id names them; a main agent's prompt has another one."""
    session = one(case("sub-agent-by-prompt-id"))
    found = [(record.agent, record.usage.output, record.copy_rank) for record in session.records]
    assert found == [
        ("main", 5, CopyRank.ORIGINAL),
        ("general-purpose", 40, CopyRank.EMBEDDED),
        ("general-purpose", 30, CopyRank.EMBEDDED),
        ("main", 7, CopyRank.ORIGINAL),
    ]
    told = [
        (data.get("agent"), data["usage"]["output"]) for data in responses(read(case("sub-agent-by-prompt-id"), None))
    ]
    assert sorted(told, key=str) == [("general-purpose", 30), ("general-purpose", 40), (None, 5), (None, 7)]


def test_a_transcript_without_models():
    """The file beside it has the model and the kind of the sub-agent; the telemetry adds nothing to the replay."""
    [record] = one(case("sub-agent-without-model", SUB)).records
    assert (record.model, record.agent) == ("qwen3-max", "Explore")
    told = responses(read(case("sub-agent-without-model"), None))
    assert [(data["content"], data.get("agent")) for data in told] == [("", None), ("I read.", "Explore")]


def test_an_answer_that_was_cut_off(tmp_path):
    """An answer without counts is no request and no success, but it can be read."""
    rows = (
        {"type": "user", "uuid": "u", "sessionId": "s", "message": {"parts": [{"text": "hi"}]}},
        {"type": "assistant", "uuid": "a", "sessionId": "s", "message": {"parts": [{"text": "Answe"}]}},
    )
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    session = one(str(path))
    assert (session.status, session.counted, session.prompt) == (None, False, "hi")
    assert [data["content"] for data in responses(read(str(path), None))] == ["Answe"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.sampled_from(
    ("uuid", "subtype", "message", "usageMetadata", "toolCallResult", "systemPayload", "forkedFrom", "isSidechain")
)
_NAMES = st.sampled_from(("qwen-code.api_response", "qwen-code.api_error", "qwen-code.tool_call", "", None))


@given(
    kind=st.sampled_from(("user", "assistant", "tool_result", "system", None)),
    name=_NAMES,
    fields=st.dictionaries(_FIELDS, _JSON),
    event=st.dictionaries(st.sampled_from(("prompt_id", "duration_ms", "error", "input_token_count")), _JSON),
)
@examples(150)
def test_rows_of_any_shape_never_raise(kind, name, fields, event):
    """Null, lists and texts where objects belong give steps, or none."""
    steps_of({**fields, "type": kind})
    for prompt_id in ("s#explore-1#0", event.get("prompt_id")):
        told = {**event, "event.name": name, "prompt_id": prompt_id}
        steps_of({"uuid": "u", "systemPayload": {"uiEvent": told}, **fields})
