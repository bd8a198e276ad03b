"""Record a few sample sessions of a scripted agent through the public logger.

Each thing that reports can show happens once: cache hits, a failed tool, a rate limit, a failover, a pinned model, a
rejected pin, a free local model, and a writer that is killed at work (a real SIGKILL of a subprocess).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from time import time_ns
from typing import Any

from sessionlog.logger.session_logger import SessionLogger

_MINUTE = 60 * 1_000_000_000
_SYSTEM = "You are a careful coding agent. Read before you write; run the tests before you report success."
_TOOLS = [
    {"name": "read", "description": "Read a file", "parameters": {"path": "string"}},
    {"name": "bash", "description": "Run a command", "parameters": {"command": "string"}},
]
_IMPORTER = """\
def load(path):
    offset = read_offset(path)
    write_offset(path, offset + 1)
    return rows(path, offset)
"""
_FAILURE = "FAILED tests/test_importer.py::test_resume - AssertionError: row 41 is missing\n1 failed, 12 passed in 2.9s"

_KILLED = """
import itertools, os, sys
from sessionlog.logger.session_logger import SessionLogger
with SessionLogger(sys.argv[1], sys.argv[2], provider="vllm", model="qwen3.6-27b", prompt="rename the settings module",
                   work_dir="/home/you/src/site",
                   clock=itertools.count(int(sys.argv[3]), 2_600_000_000).__next__) as log:
    log.llm_request([{"role": "user", "content": "rename the settings module"}], model="qwen3.6-27b")
    log.llm_response("I will look for its importers first.", model="qwen3.6-27b", latency_ms=5100,
                     usage={"input": 2210, "output": 61})
    os.kill(os.getpid(), getattr(__import__("signal"), "SIGKILL", 15))
"""


class _Clock:
    """A clock that moves only by `wait`, and by 3 ms with each reading."""

    def __init__(self, start_ns: int) -> None:
        self.now_ns = start_ns
        self._start_ns = start_ns

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the start of the script."""
        return (self.now_ns - self._start_ns) // 1_000_000

    def __call__(self) -> int:
        self.now_ns += 3_000_000
        return self.now_ns

    def wait(self, milliseconds: float) -> None:
        self.now_ns += int(milliseconds * 1_000_000)


def record_demo(directory: str, *, now_ns: int | None = None) -> str:
    """Record the demo's sessions into a folder; return the id of the one worth replaying.

    Raises:
        NotRecorded: The folder cannot be written to.
    """
    now = time_ns() if now_ns is None else now_ns
    scenes: list[tuple[Callable[[str, _Clock], str], int]] = [
        (_site, 26 * 60), (_rate_limited, 25 * 60), (_rejected_pin, 180), (_pinned, 150), (_importer, 45),
    ]  # fmt: skip
    shown = ""
    for scene, minutes_ago in scenes:
        shown = scene(directory, _Clock(now - minutes_ago * _MINUTE))
    _kill_one(directory, now - 20 * _MINUTE)
    return shown


def _session(directory: str, clock: _Clock, **start: Any) -> SessionLogger:
    return SessionLogger(directory, clock=clock, on_error="raise", **start)


def _importer(directory: str, clock: _Clock) -> str:
    prompt = "make the importer resume after a crash"
    model = "claude-opus-4-5"
    messages: list[dict[str, Any]] = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": prompt}]
    work_dir, metadata = "/home/you/src/api", {"task": "bugfix", "branch": "importer"}
    log = _session(
        directory, clock, provider="anthropic", model=model, prompt=prompt, work_dir=work_dir, metadata=metadata
    )
    log.emit("session.start", _routed("opus", model, attempted=["bedrock", "anthropic"]))
    with log:
        log.emit("routing_decision", {"provider": "anthropic", "model": model, "reason": "cache affinity"})
        read = {"id": "t1", "name": "read", "arguments": {"path": "src/importer.py"}}
        _call(log, clock, messages, model, "I'll look at how the importer stores its position first.", [read],
              {"input": 812, "cache_write": 14_100, "output": 96}, 4200, cost_usd=0.094585)  # fmt: skip
        log.tool_call("read", {"path": "src/importer.py"}, output=_IMPORTER, duration_ms=12, id="t1")
        messages.append({"role": "tool", "tool_call_id": "t1", "content": _IMPORTER})
        test = {"id": "t2", "name": "bash", "arguments": {"command": "pytest -q tests/test_importer.py"}}
        _call(log, clock, messages, model, "The offset is written before the row is committed. A test first.", [test],
              {"input": 240, "cache_read": 14_912, "output": 310, "reasoning": 128}, 6900,
              cost_usd=0.016406)  # fmt: skip
        log.tool_call("bash", test["arguments"], output=_FAILURE, duration_ms=3100, error="exit 1", id="t2")
        messages.append({"role": "tool", "tool_call_id": "t2", "content": _FAILURE})
        _call(log, clock, messages, model, "Swapped the two; the test passes, and a crash now repeats at most one row.",
              [], {"input": 421, "cache_read": 15_152, "output": 640, "reasoning": 210}, 9800,
              cost_usd=0.025681)  # fmt: skip
        log.end(output="The importer resumes after a crash.", duration_ms=clock.elapsed_ms)
    return log.session_id


def _site(directory: str, clock: _Clock) -> str:
    prompt = "why does test_window fail on the last Sunday of October?"
    model = "claude-sonnet-4-5"
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    with _session(
        directory, clock, provider="anthropic", model=model, prompt=prompt, work_dir="/home/you/src/api"
    ) as log:
        _call(log, clock, messages, model, "That day has 25 hours there. The window adds 24 of them to midnight.", [],
              {"input": 1480, "cache_read": 9_600, "output": 212}, 3300)  # fmt: skip
        log.end(duration_ms=clock.elapsed_ms)
    return log.session_id


def _rate_limited(directory: str, clock: _Clock) -> str:
    prompt, model = "update the changelog", "gpt-5.3-codex"
    log = _session(directory, clock, provider="openai", model=model, prompt=prompt, work_dir="/home/you/src/site")
    with log:
        log.llm_request([{"role": "user", "content": prompt}], model=model)
        clock.wait(900)
        log.llm_response(error="429 Too Many Requests: rate limited, retry after 20 s", latency_ms=900)
        log.end("error", error="rate limited (429)", duration_ms=clock.elapsed_ms)
    return log.session_id


def _pinned(directory: str, clock: _Clock) -> str:
    prompt, model = "explain what main.go does", "qwen/qwen3.6-27b"
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    log = _session(directory, clock, provider="openrouter", model=model, prompt=prompt, work_dir="/home/you/src/site")
    with log:
        _call(log, clock, messages, model, "It starts an HTTP server on port 8080 and greets whoever asks.", [],
              {"input": 2249, "output": 53}, 1670, cost_usd=0.00088928)  # fmt: skip
        log.emit("override", _pin(model))
        log.end(duration_ms=clock.elapsed_ms)
    return log.session_id


def _rejected_pin(directory: str, clock: _Clock) -> str:
    log = _session(directory, clock, prompt="summarise the release", work_dir="/home/you/src/site")
    pin = _pin("gpt-9") | {"rejection_error": 'unknown model "gpt-9"'}
    log.emit("rejected_override", pin)
    log.close()
    return log.session_id


def _kill_one(directory: str, at_ns: int) -> None:
    """Record a session in a subprocess that kills itself halfway."""
    name = _session(directory, _Clock(at_ns)).session_id
    subprocess.run([sys.executable, "-c", _KILLED, directory, name, str(at_ns)], check=False)  # noqa: S603 - our own script


def _call(
    log: SessionLogger,
    clock: _Clock,
    messages: list[dict[str, Any]],
    model: str,
    answer: str,
    tool_calls: list[dict[str, Any]],
    usage: dict[str, int],
    latency_ms: int,
    *,
    cost_usd: float | None = None,
) -> None:
    log.llm_request(messages, model=model, tools=_TOOLS)
    clock.wait(latency_ms)
    log.llm_response(
        answer, model=model, usage=usage, latency_ms=latency_ms, tool_calls=tool_calls or None, cost_usd=cost_usd
    )
    messages.append({"role": "assistant", "content": answer, "tool_calls": tool_calls})


def _routed(requested: str, resolved: str, *, attempted: list[str]) -> dict[str, Any]:
    return {
        "requested_model": requested,
        "resolved_model": resolved,
        "selected_provider": attempted[-1],
        "selected_route": "coding",
        "attempted_providers": attempted,
        "failover_count": len(attempted) - 1,
        "sticky": {"key_present": True, "assignment": "reused", "reason": "cache affinity"},
    }


def _pin(model: str) -> dict[str, Any]:
    return {
        "user_pin": {"model": model},
        "auto_decision": {"model": "claude-sonnet-4-5"},
        "axes_overridden": ["model"],
        "match_per_axis": {"model": False},
        "prompt_features": {"estimated_tokens": 2200, "requires_tools": False},
    }
