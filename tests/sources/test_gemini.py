"""gemini: where its chats are found, what of them counts, and how they read as events."""

import json
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.sources.gemini import SOURCE
from sessionlog.sources.values import read_time
from tests.profiles import examples

CASES = os.path.join(os.path.dirname(__file__), "..", "..", "testdata", "sources", "gemini")
MAIN = "home/.gemini/tmp/api/chats/session-2026-05-17T11-07-8f0c2e1a.jsonl"
SESSION = "8f0c2e1a-0000-4000-8000-000000000001"
locate, list_logs, recognises = SOURCE.locate, SOURCE.list_logs, SOURCE.recognises
name_sessions, scan, read = SOURCE.name_sessions, SOURCE.scan, SOURCE.read


def case(name, path=MAIN):
    return os.path.join(CASES, name, path)


def all_logs():
    for folder, _, names in sorted(os.walk(CASES)):
        for name in sorted(names):
            if name.startswith("session-") or "/chats/" in folder:
                yield os.path.join(folder, name)


def responses(events):
    return [event.data for event in events if not isinstance(event, Problem) and event.type == "llm.response"]


def counts(usage):
    return usage.input, usage.output, usage.cache_read, usage.reasoning


def one(path):
    [session] = scan(path, None).sessions
    return session


def chat(folder, *rows):
    """Write a chat of one user's message and these rows."""
    head = {"sessionId": "s", "projectHash": "h", "startTime": "2026-05-17T11:07:00Z"}
    path = folder / "session-x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (head, *rows)))
    return str(path)


def test_default_place():
    """Without variables the chats are under ~/.gemini/tmp."""
    assert list(locate({"HOME": "/h"})) == ["/h/.gemini/tmp"]


def test_given_places():
    """GEMINI_CLI_HOME stands for the home folder, and GEMINI_DATA_DIR is a list of folders that goes before all."""
    assert list(locate({"HOME": "/h", "GEMINI_CLI_HOME": "/g"})) == ["/g/.gemini/tmp", "/g/tmp"]
    assert list(locate({"GEMINI_DATA_DIR": "/a, /b", "GEMINI_CLI_HOME": "/g"})) == ["/a", "/b"]


def test_lists_chats_only():
    """Prompts, checkpoints and request logs are no chats; a sub-agent's chat is one."""
    listed = [
        [os.path.basename(path) for path in list_logs(case(name, place))]
        for name, place in (("json-of-2025", "home"), ("sub-agent", "home"), ("cli-home", "home/elsewhere"))
    ]
    assert listed == [
        ["session-2025-09-01T11-07-aaaaaaaa.json"],
        ["b1b1b1b1-0000-4000-8000-00000000000a.jsonl", os.path.basename(MAIN)],
        ["session-x.jsonl"],
    ]


def test_lists_a_file_given_by_name():
    """A finished run's output counts whatever its name, when it is given."""
    path = case("headless-sums", "truth.json")
    assert list(list_logs(path)) == [path]


@pytest.mark.parametrize("path", tuple(all_logs()), ids=lambda path: os.path.relpath(path, CASES))
def test_recognises_its_logs(path):
    """Every form of its logs is known by its content."""
    with open(path, "rb") as file:
        assert recognises(path, file.read(1 << 16))


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("x.jsonl", b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-05-17T11:07:00Z","data":{"v":1}}'),
        ("x.jsonl", b'{"parentUuid":null,"sessionId":"s","type":"assistant","message":{"usage":{"input_tokens":3}}}'),
        ("x.jsonl", b'{"type":"assistant","sessionId":"s","usageMetadata":{"promptTokenCount":1}}'),
        ("x.json", b'{"messages":[]}'),
    ],
)
def test_recognises_no_others(name, head):
    """Native logs and those of other agents are not taken for its own."""
    assert not recognises(name, head)


def test_last_row_with_tokens_counts():
    """A message written again with less counts as it was written last, and a row without tokens changes nothing."""
    [record] = one(case("smaller-rewrite")).records
    assert counts(record.usage) == (90, 10, 10, 0)


def test_a_grown_log_is_read_from_its_start():
    """There is nowhere to go on, since what was given may be replaced by less."""
    assert scan(case("smaller-rewrite"), None).resume is None


def test_thoughts_and_tool_tokens():
    """Thoughts are output, tool tokens input, and cached ones are taken out of the input."""
    first = one(case("rewritten-messages")).records[0]
    assert counts(first.usage) == (67, 30, 40, 10)
    assert first.latency_ms == 3000


def test_latency_after_a_tool():
    """A request that follows tool results begins with the last of them."""
    assert one(case("rewritten-messages")).records[1].latency_ms == 3000


def test_tool_call():
    """A tool call has the time from the message to its result, and the size of what it gave."""
    [tool] = one(case("rewritten-messages")).tools
    assert (tool.tool, tool.finished, tool.failed, tool.duration_ms, tool.output_bytes) == (
        "run_shell_command", True, False, 5000, 9,
    )  # fmt: skip


def test_sub_agent_belongs_to_its_parent():
    """A sub-agent's chat is a part of the session that its folder names, and the parent's call tells its kind."""
    path = next(path for path in all_logs() if "b1b1b1b1" in path)
    session = one(path)
    assert (session.session_id, session.part, session.records[0].agent) == (SESSION, True, "codebase_investigator")
    assert list(name_sessions(path)) == [f"{SESSION}/b1b1b1b1-0000-4000-8000-00000000000a"]


def test_sub_agent_of_an_unknown_kind(tmp_path):
    """Without the parent's log a sub-agent is just that."""
    folder = tmp_path / "chats" / "parent"
    folder.mkdir(parents=True)
    path = chat(folder, {"id": "m", "type": "gemini", "tokens": {"input": 1, "output": 1}})
    assert (one(path).session_id, one(path).records[0].agent) == ("parent", "sub-agent")


def test_project_by_marker_slug_and_hash():
    """The path is told by the marker in the folder, by the registry's slug, or by the hash of a registered path."""
    paths = (case("sub-agent"), case("rewritten-messages"), next(p for p in all_logs() if "json-of-2025" in p))
    assert [one(path).project for path in paths] == ["/w/api", "/w/api", "/w/web"]


def test_damaged_registry(tmp_path):
    """A registry that is no JSON leaves the project unknown."""
    chats = tmp_path / "tmp" / "api" / "chats"
    chats.mkdir(parents=True)
    (tmp_path / "projects.json").write_text("{")
    path = chat(chats, {"id": "u", "type": "user", "content": "hi"})
    assert one(path).project == "unknown"


def test_a_run_yields_to_its_chat():
    """A finished run's sums are told better by the session's own chat."""
    session = one(case("headless-with-its-chat", "home/data/session-sum.json"))
    assert {record.superseded_by for record in session.records} == {f"gemini:{SESSION}"}
    assert {record.granularity for record in session.records} == {"session"}


def test_a_failed_run(tmp_path):
    """A run that failed says why, and has used nothing."""
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"error": {"type": "FatalError", "message": "no key"}, "stats": {"models": {}}}))
    session = one(str(path))
    assert (session.session_id, session.status, session.error, session.records) == ("out", "error", "no key", ())


def test_file_without_a_session(tmp_path):
    """JSON that is no chat gives no session."""
    path = tmp_path / "session-x.json"
    path.write_text("[1, 2]")
    assert scan(str(path), None).sessions == ()
    assert list(read(str(path), None)) == []


def test_failed_request_is_an_event():
    """A failed request reads as a response with an error, and the session ends with it."""
    events = list(read(case("api-error"), None))
    assert "quota" in responses(events)[1]["error"]
    assert (events[-1].type, events[-1].data["status"]) == ("session.end", "error")


def test_reads_as_a_conversation():
    """Start, prompt, answer with its reasoning, tool call and result, answer, end: each once, with final counts."""
    events = list(read(case("rewritten-messages"), None))
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    assert events[0].data["work_dir"] == "/w/api"
    assert events[1].data["messages"] == [{"role": "user", "content": "list the files"}]
    assert events[2].data["reasoning"] == "Plan: List the files first."
    assert events[2].data["tool_calls"] == [{"id": "c1", "name": "run_shell_command", "arguments": {"command": "ls"}}]
    assert (events[3].data["output"], events[3].data["duration_ms"]) == ("a.py\nb.py", 5000)
    assert events[5].data["content"] == "Two files."


def test_rewritten_history_is_read_once():
    """What stands in the history again is no second answer, and a summary in its place is a compaction."""
    events = list(read(case("history-rewritten"), None))
    assert [data["content"] for data in responses(events)] == ["", "It is long.", "It is short."]
    assert [event.data["output"] for event in events if event.type == "tool.call"] == ["long text"]
    assert [event.data["summary"] for event in events if event.type == "compaction.end"] == ["<state_snapshot>"]


def test_late_tool_result(tmp_path):
    """A result that comes when another message has begun belongs to the message that called the tool."""
    asked = {"id": "m1", "type": "gemini", "content": "x", "tokens": {"input": 1, "output": 1}}
    call = {"id": "c", "name": "t", "status": "executing"}
    done = {**call, "status": "success", "result": [{"functionResponse": {"id": "c", "response": {"output": "late"}}}]}
    other = {"id": "u2", "type": "user", "content": "and?"}
    path = chat(tmp_path, {**asked, "toolCalls": [call]}, other, {**asked, "toolCalls": [done]})
    events = list(read(path, None))
    assert [event.data["output"] for event in events if event.type == "tool.call"] == ["late"]
    assert len(responses(events)) == 1


@pytest.mark.parametrize(
    "path", tuple(path for path in all_logs() if "sub-agent" not in path), ids=lambda path: os.path.relpath(path, CASES)
)
def test_events_sum_to_the_records(path):
    """The responses that are read use what the scan counts, and no more."""
    events = [event for event in read(path, None) if not isinstance(event, Problem)]
    used = [data["usage"] for data in responses(events) if "usage" in data]
    used += [event.data["tokens"] for event in events if event.type == "session.end" and "tokens" in event.data]
    records = {record.key or str(index): record for index, record in enumerate(one(path).records)}
    for name in ("input", "output", "cache_read", "reasoning"):
        assert sum(usage.get(name, 0) for usage in used) == sum(getattr(r.usage, name) for r in records.values())


@pytest.mark.parametrize("path", tuple(all_logs()), ids=lambda path: os.path.relpath(path, CASES))
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


def test_retention_is_known():
    """Chats are deleted after thirty days."""
    kept = SOURCE.retention({})
    assert kept is not None
    assert kept.days == 30


@pytest.mark.parametrize("odd", [{"a": 1}, [1], True, 1e300, ""])
def test_odd_values_are_no_facts(odd, tmp_path):
    """Values of any other kind, wherever they stand, are passed over."""
    call = {"id": odd, "name": odd, "args": odd, "status": odd, "timestamp": odd, "result": odd, "agentId": odd}
    message = {"id": odd, "timestamp": odd, "type": "gemini", "model": odd, "content": odd, "toolCalls": [call]}
    path = chat(
        tmp_path, {"$set": {"projectHash": odd, "messages": odd}}, {**message, "tokens": {"input": 3, "output": 1}}
    )
    assert [record.usage.input for record in one(path).records] == [3]
    assert len(responses(read(path, None))) == 1


@pytest.mark.parametrize("odd", [9.9e10, 2**63, 10**400, [], True])
def test_what_does_not_fit_64_bits_is_no_time(odd):
    """A number that gives no instant of 64 bits is no time."""
    assert read_time(odd) is None


def test_a_sub_agents_name_need_not_be_unicode(tmp_path):
    """Half a character in an id finds nothing, and breaks nothing."""
    folder = tmp_path / "chats" / "12345678-parent"
    folder.mkdir(parents=True)
    (tmp_path / "chats" / "session-x-12345678.jsonl").write_text('{"toolCalls": [{"agentId": "a"}]}\n')
    log = folder / "a.jsonl"
    log.write_text('{"sessionId": "a\\ud800"}\n{"id": "m", "type": "gemini", "tokens": {"input": 1}}\n')
    assert [record.agent for record in one(str(log)).records] == ["sub-agent"]


def test_failed_requests_of_a_run_are_all_counted(tmp_path):
    """Beyond a bound for memory's sake, what is left out is said."""
    tokens = {"prompt": 1, "candidates": 1}
    for name, failed, told in (("a", 300, 0), ("b", 20_000, 1)):
        api = {"totalRequests": failed + 1, "totalErrors": failed}
        path = tmp_path / f"session-{name}.json"
        path.write_text(json.dumps({"session_id": name, "stats": {"models": {"m": {"api": api, "tokens": tokens}}}}))
        found = scan(str(path), None)
        [session] = found.sessions
        assert sum(record.failed for record in session.records) == min(failed, 10_000)
        assert found.problems.count == told


def test_a_sub_agents_answers_are_read_with_its_session():
    """They come beside the conversation, with the name of the agent."""
    told = [(data.get("agent"), data["usage"]["output"]) for data in responses(read(case("sub-agent"), None))]
    assert sorted(told, key=str) == [("codebase_investigator", 60), (None, 2)]


def test_a_session_that_nothing_has_answered(tmp_path):
    """A prompt alone is a session, with a request and without an answer."""
    path = chat(tmp_path, {"id": "u", "timestamp": "2026-05-17T11:07:01Z", "type": "user", "content": "hi"})
    session = one(path)
    assert (session.turns, session.prompt, session.counted) == (1, "hi", False)
    assert [event.type for event in read(path, None)] == ["session.start", "llm.request"]


def test_of_two_answers_in_a_row_the_second_has_no_latency(tmp_path):
    """Older versions do not log what was sent in between."""
    answers = [
        {"id": f"m{n}", "timestamp": f"2026-05-17T11:07:0{n}Z", "type": "gemini", "tokens": {"input": n}}
        for n in (3, 5)
    ]
    path = chat(tmp_path, {"id": "u", "timestamp": "2026-05-17T11:07:01Z", "type": "user", "content": "hi"}, *answers)
    assert [record.latency_ms for record in one(path).records] == [2000, None]


def test_runs_of_one_name_are_two_sessions(tmp_path):
    """A run is named by its file, and files of one name are in two folders."""
    stats = {"models": {"m": {"tokens": {"prompt": 1, "candidates": 1}}}}
    found = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "session-run.json"
        path.write_text(json.dumps({"stats": stats}))
        found.append(one(str(path)))
    assert len({(session.session_id, session.place) for session in found}) == 2
    assert len({record.key for session in found for record in session.records}) == 2
    assert [session.turns for session in found] == [None, None]


@pytest.mark.parametrize(("before", "problems"), [(b"\xef\xbb\xbf", 0), (b"\x00", 1)])
def test_what_stands_before_a_document(tmp_path, before, problems):
    """A byte order mark is none of its damage, other bytes are."""
    path = tmp_path / "session-x.json"
    path.write_bytes(
        before + b'{"sessionId": "s", "messages": [{"id": "m", "type": "gemini", "tokens": {"input": 3}}]}'
    )
    found = scan(str(path), None)
    assert [record.usage.input for record in found.sessions[0].records] == [3]
    assert found.problems.count == problems


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.sampled_from(
    ("id", "timestamp", "content", "displayContent", "model", "thoughts", "tokens", "toolCalls", "sessionId", "stats")
)


@given(kind=st.sampled_from(("user", "gemini", "error", "info", None)), fields=st.dictionaries(_FIELDS, _JSON))
@examples(150)
def test_rows_of_any_shape_never_raise(growing, kind, fields):
    """Null, lists and texts where objects belong are read, or passed over."""
    path = chat(growing, {**fields, "type": kind}, {"$set": {"messages": [{**fields, "type": kind}]}})
    assert len(scan(path, None).sessions) == 1
    list(read(path, None))
