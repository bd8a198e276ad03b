"""Response ids: the provider's own id of a response, which logs of different programs agree on; and logs from the wire."""

import json
from pathlib import Path

import pytest

from sessionlog.sources.native import SOURCE as NATIVE
from sessionlog.sources.registry import load_source
from tests.sources.logs import answered, as_line, ended, start

DATA = Path(__file__).parents[2] / "testdata/sources"
CASES = {
    "codex": "codex/usage-records",
    "pi": "pi/plain-turn",
    "openclaw": "openclaw/reasoning",
    "otel": "otel/sdk-and-gateway",
    "claude-code": "claude-code/endings",
}


def ids_of(source, case):
    """The ids of the records of a case, and all texts in its logs."""
    found, texts = set(), ""
    for log in load_source(source).list_logs(str(DATA / case / "home")):
        texts += Path(log).read_text()
        for session in load_source(source).scan(log, None).sessions:
            found |= {record.response_id for record in session.records if record.requests and not record.failed}
    return found, texts


@pytest.mark.parametrize("source", CASES)
def test_a_record_has_the_id_that_its_log_has(source):
    """As the provider gave it, nothing added."""
    found, texts = ids_of(source, CASES[source])
    assert found - {""}
    assert all(f'"{name}"' in texts for name in found - {""})


def test_telemetry_names_the_response_that_follows(tmp_path):
    """Qwen Code logs the id with the duration, before the answer of the same counts."""
    path = tmp_path / ".qwen/projects/-w/chats/11111111-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    counts = {
        "input_token_count": 10,
        "output_token_count": 5,
        "total_token_count": 15,
        "cached_content_token_count": 0,
    }
    event = {"event.name": "qwen-code.api_response", "duration_ms": 70, "response_id": "chatcmpl-1"} | counts
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    head = {"sessionId": path.stem, "cwd": "/w", "version": "0.24.0"}
    rows = [
        head | {"uuid": "a", "timestamp": "2026-11-20T10:00:01Z", "type": "user",
                "message": {"role": "user", "parts": [{"text": "go"}]}},
        head | {"uuid": "b", "timestamp": "2026-11-20T10:00:02Z", "type": "system", "subtype": "ui_telemetry",
                "systemPayload": {"uiEvent": event}},
        head | {"uuid": "c", "timestamp": "2026-11-20T10:00:02Z", "type": "assistant", "model": "qwen3-coder",
                "message": {"role": "model", "parts": [{"text": "so"}]}, "usageMetadata": usage},
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    [session] = load_source("qwen-code").scan(str(path), None).sessions
    assert [(record.response_id, record.latency_ms) for record in session.records] == [("chatcmpl-1", 70)]


@pytest.mark.parametrize(("wire", "found"), [("codex", "codex"), ("", ""), (None, None), (7, None)])
def test_a_log_from_the_wire_says_so(tmp_path, wire, found):
    """Its start names the source whose log may have the same requests, or "" for any; others are no such log."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(map(as_line, [start(wire=wire), answered(response_id="a", usage={"input": 1})])))
    [session] = NATIVE.scan(str(path), None).sessions
    assert (session.on_wire_of, session.records[0].response_id) == (found, "a")


def test_a_scan_that_goes_on_knows_it_too(tmp_path):
    """As it knows everything of the start."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(map(as_line, [start(wire="codex"), answered(response_id="a", usage={"input": 1})])))
    first = NATIVE.scan(str(path), None)
    with path.open("ab") as file:
        file.write(as_line(answered("10:00:09", response_id="b", usage={"input": 2})))
    [session] = NATIVE.scan(str(path), first.resume).sessions
    assert (session.on_wire_of, [record.response_id for record in session.records]) == ("codex", ["a", "b"])


def test_what_an_end_adds_is_a_sum(tmp_path):
    """No response has it, so it is paired with none."""
    path = tmp_path / "s.jsonl"
    total = {"input": 9, "output": 3}
    path.write_bytes(b"".join(map(as_line, [start(), answered(usage={"input": 1}), ended(tokens=total)])))
    [session] = NATIVE.scan(str(path), None).sessions
    assert [(record.summed, record.usage.input) for record in session.records] == [(False, 1), (True, 8)]
