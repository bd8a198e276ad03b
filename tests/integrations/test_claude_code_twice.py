"""A run of Claude Code that an integration records is in Claude Code's own log, too: it counts once."""

import json

import pytest

from sessionlog import SessionLogger, aggregate_tools, aggregate_usage
from sessionlog.events.tokens import TokenUsage


def claude_log(folder, session):
    """A home of Claude Code with one session: an answer with a call, and its result."""
    usage = {"input_tokens": 40, "output_tokens": 20}
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1 line"}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [call],
        "usage": usage,
    }
    both = {"sessionId": session, "cwd": "/w", "version": "2.1.0", "timestamp": "2026-11-20T10:00:00.000Z"}
    rows = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "What?"}, **both},
        {"type": "assistant", "uuid": "u2", "requestId": "req_1", "message": message, **both},
        {"type": "user", "uuid": "u3", "message": {"role": "user", "content": [result]}, **both},
    ]
    place = folder / "projects" / "w" / f"{session}.jsonl"
    place.parent.mkdir(parents=True)
    place.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture
def both(tmp_path, monkeypatch):
    """The folders of both logs, which reports find by themselves; our own has the turns already."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("SESSIONLOG_DIR", str(tmp_path / "own"))
    with SessionLogger() as log:
        log.llm_response(
            "", usage={"input": 40, "output": 20}, model="claude-haiku-4-5", superseded_by="claude-code:abc"
        )
        log.tool_call("Read", {"file_path": "a.py"}, output="1 line", superseded_by="claude-code:abc")
    assert log.health().warnings == {}
    return tmp_path / "CLAUDE_CONFIG_DIR"


def figures():
    """(requests, output tokens, tool calls)."""
    totals = aggregate_usage(ledger=None).totals
    return totals.requests, totals.output_tokens, aggregate_tools(ledger=None).totals.calls


def test_turns_that_claude_code_has_count_once(both):
    """As Claude Code has them."""
    claude_log(both, "abc")
    assert figures() == (1, 20, 1)


def test_turns_that_only_the_integration_has_count(both):
    """The agent's log is gone, or is of another session."""
    assert figures() == (1, 20, 1)
    claude_log(both, "another")
    assert figures() == (2, 40, 2)


def test_what_an_end_reports_beyond_its_turns_counts_once_too(both):
    """Also where the end itself does not name the agent's session, and where there is nothing but an end."""
    with SessionLogger() as log:
        log.llm_response("", usage={"input": 40, "output": 1}, superseded_by="claude-code:abc")
        log.totals.usage += TokenUsage(output=19)
    with SessionLogger() as log:
        log.emit("session.end", {"tokens": {"input": 40, "output": 20}, "superseded_by": "claude-code:abc"})
        log.close()
    claude_log(both, "abc")
    assert figures() == (1, 20, 1)
