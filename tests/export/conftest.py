"""A collector, a state folder of the test's own, and logs to export."""

import json

import pytest

from sessionlog.export.otlp import export_otlp
from tests.export.collectors import collector


@pytest.fixture
def receiver():
    """A collector on the loopback."""
    with collector() as received:
        yield received


@pytest.fixture
def send(tmp_path, receiver):
    """Export a folder to the collector."""

    def send(folder, **options):
        env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
        return export_otlp(str(folder), **{"endpoint": receiver.url, "env": env} | options)

    return send


def event(seq, second, kind, **data):
    """A line of a native log."""
    ts = f"2026-11-20T10:00:{second:06.3f}Z"
    return json.dumps({"session_id": "s", "seq": seq, "type": kind, "ts": ts, "data": data}) + "\n"


USAGE = {"input": 40, "output": 20, "cache_read": 60, "cache_write": 7, "reasoning": 5}


@pytest.fixture
def log(tmp_path):
    """A native log: a request, a tool call that failed, a request that failed, and an end; returns its path."""
    path = tmp_path / "logs" / "s.jsonl"
    path.parent.mkdir()
    lines = [
        event(0, 0, "session.start", v=1, provider="anthropic", model="claude-opus-4-5", work_dir="/w/api"),
        event(1, 1, "llm.request", model="claude-opus-4-5", messages=[{"role": "user", "content": "secret words"}]),
        event(2, 3.5, "llm.response", model="claude-opus-4-5", content="more", usage=USAGE, latency_ms=2500.25),
        event(3, 5, "tool.call", tool="bash", input={"command": "ls"}, error="exit 1", duration_ms=750),
        event(4, 6, "llm.request", model="claude-opus-4-5", messages=[]),
        event(5, 7, "llm.response", error="529 overloaded", latency_ms=1000),
        event(6, 8, "session.end", status="error"),
    ]
    path.write_text("".join(lines))
    return path
