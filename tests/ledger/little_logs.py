"""Little logs of three agents: a row for a word, so that machines can write any story and meet every kind of copy.

A row is drawn as (kind, identity, amount): identities are few, so that the same response, call or turn comes again in
other rows, other files and other sessions. One log was recorded on the wire: it has requests of the agents' logs. Rows stay below 700 bytes: a log of ten is known to its last byte by its
first and last 4 KiB.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

BEGIN = datetime(2026, 11, 10, 10, tzinfo=UTC)
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
"""A present in which no session of these logs is running."""

PARENT = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
THREADS = ("019a0000-0001-7000-8000-000000000001", "019a0000-0002-7000-8000-000000000002")
_ROLLOUT = "x/sessions/2026/11/10/rollout-2026-11-10T10-00-00-"

PATHS = {
    "native": ("s/n1.jsonl", "s/deep/n2.jsonl", "s/wire.jsonl"),
    "claude": (
        f"c/projects/-w-a/{PARENT}.jsonl",
        f"c/projects/-w-a/{PARENT}/subagents/agent-a1.jsonl",
        f"c/projects/-w-a/{OTHER}.jsonl",
        f"c/projects/-w-b/{OTHER}.jsonl",
    ),
    "codex": (
        *(f"{_ROLLOUT}{thread}.jsonl" for thread in THREADS),
        f"x/archived_sessions/rollout-2026-11-10T10-00-00-{THREADS[0]}.jsonl",
    ),
}
"""Agent → where its logs may be, inside a home."""

SIDE_FILE = f"c/projects/-w-a/{PARENT}/subagents/agent-a1.meta.json"

KINDS = {
    "native": ("asked", "answer", "cheap", "tool", "end", "paid", "noise"),
    "claude": ("prompt", "answer", "begins", "calls", "result", "echo", "aside", "error", "noise"),
    "codex": ("turn", "count", "recount", "call", "output", "done", "error", "limits"),
}


def agent_of(path):
    """Whose log a path is."""
    return next(agent for agent, paths in PATHS.items() if path.removesuffix(".gz") in paths)


@dataclass
class Pen:
    """What writes rows: a clock of seconds that may stand still, and numbers that never come again."""

    second: int = 0
    numbers: count = field(default_factory=count)

    def time(self, step):
        self.second += step
        return (BEGIN + timedelta(seconds=self.second)).strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def row(self, path, kind, identity, amount, *, total=0):
        """One row as bytes; `total` is what a Codex thread has used before."""
        ts = self.time(amount % 4 * 11)
        stem = path.removesuffix(".gz").removesuffix(".jsonl").rsplit("/", 1)[1]
        agent = agent_of(path)
        if agent == "native":
            meaning = (_on_wire if stem == "wire" else _native)(kind, identity, amount)
            row = meaning | {"ts": ts, "session_id": stem, "seq": next(self.numbers)}
        elif agent == "claude":
            row = self._claude(path, stem, kind, identity, amount, ts)
        else:
            row = {"timestamp": ts} | _codex(kind, identity, amount, total)
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"

    def first(self, path):
        """The row with which a log of this agent begins, if there is one."""
        stem = path.removesuffix(".gz").removesuffix(".jsonl").rsplit("/", 1)[1]
        ts = self.time(1)
        if agent_of(path) == "native":
            data = {"v": 1, "provider": "acme", "model": "m", "work_dir": "/w/n", "prompt": f"number {stem}"}
            data |= {"wire": ""} if stem == "wire" else {}
            row = {"session_id": stem, "seq": next(self.numbers), "type": "session.start", "ts": ts, "data": data}
        elif agent_of(path) == "codex":
            payload = {"id": stem[28:], "timestamp": ts, "cwd": "/w/x", "source": "cli", "model_provider": "acme"}
            row = {"timestamp": ts, "type": "session_meta", "payload": payload}
        else:
            return b""
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"

    def _claude(self, path, stem, kind, identity, amount, ts):
        part = "subagents" in path
        head = {"parentUuid": None, "isSidechain": part or kind == "aside", "cwd": f"/w/{'ab'['-w-b' in path]}"}
        head |= {"sessionId": PARENT if part else stem, "version": "2.1.31", "gitBranch": "main"}
        if part:
            head["agentId"] = "a1"
        request = f"req_{identity}x" if kind == "aside" else f"req_{identity}"
        if kind in ("answer", "begins", "calls", "aside", "error", "echo"):
            body = {"message": _answer(kind, identity, amount), "requestId": request, "type": "assistant"}
            body |= {"isApiErrorMessage": True} if kind == "error" else {}
        elif kind == "result":
            told = {"tool_use_id": f"toolu_{identity}", "type": "tool_result", "content": "x" * amount}
            body = {"type": "user", "message": {"role": "user", "content": [told]}}
        elif kind == "prompt":
            body = {"type": "user", "message": {"role": "user", "content": f"do {identity}"}}
        else:
            body = {"type": "system", "subtype": "turn_duration", "durationMs": amount}
        if kind == "echo":
            body = {"type": "progress", "data": {"type": "agent_progress", "message": body | {"timestamp": ts}}}
            body["data"] |= {"prompt": "go", "agentId": "a1"}
        return head | body | {"uuid": f"u{next(self.numbers)}", "timestamp": ts}


def _native(kind, identity, amount):
    if kind == "asked":
        return {"type": "llm.request", "data": {"model": f"m{identity % 2}"}}
    if kind in ("answer", "cheap"):
        usage = {"input": amount * 10, "output": amount, "cache_read": identity}
        cost = {"cost_usd": 0.001 * amount} if kind == "cheap" else {}
        return {"type": "llm.response", "data": {"usage": usage, "latency_ms": amount * 7, **cost}}
    if kind == "tool":
        return {
            "type": "tool.call",
            "data": {"tool": f"t{identity % 2}", "output": "x" * amount, "duration_ms": amount},
        }
    if kind == "end":
        return {"type": "session.end", "data": {"status": "success", "usage": {"input": 500, "output": 20 + amount}}}
    if kind == "paid":
        tokens = {"input": 40 * identity, "output": 20 + amount}
        return {"type": "session.end", "data": {"status": "success", "tokens": tokens, "cost_usd": 0.01 * amount}}
    return {"type": "progress", "data": {"n": amount}}


def _on_wire(kind, identity, amount):
    """What Claude Code logs as an answer, or Codex as a count, as it was seen on the wire."""
    if kind == "answer":
        usage, name = {"input": identity, "cache_read": 50, "output": amount * 3}, {"response_id": f"msg_{identity}"}
    elif kind == "cheap":
        usage, name = {"input": 0, "output": amount}, {}
    else:
        return _native(kind, identity, amount)
    return {"type": "llm.response", "data": {"usage": usage, "latency_ms": amount * 700, **name}}


def _answer(kind, identity, amount):
    usage = {"input_tokens": identity, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 50}
    usage |= {"output_tokens": 1 if kind == "begins" else amount * 3, "service_tier": "standard"}
    content = [{"type": "text", "text": "so"}]
    if kind == "calls":
        name = "Bash" if identity % 2 else "mcp__docs__find"
        content = [{"type": "tool_use", "id": f"toolu_{identity}", "name": name, "input": {}}]
    stop = {"begins": None, "calls": "tool_use"}.get(kind, "end_turn")
    model = "<synthetic>" if kind == "error" else "claude-sonnet-4-5-20250929"
    return {
        "model": model, "id": f"msg_{identity}", "type": "message", "role": "assistant", "content": content,
        "stop_reason": stop, "usage": usage,
    }  # fmt: skip


def _codex(kind, identity, amount, total):
    if kind == "turn":
        return {"type": "turn_context", "payload": {"cwd": f"/w/{'xy'[identity % 2]}", "model": f"m{identity % 2}"}}
    if kind in ("count", "recount", "limits"):
        last = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": amount, "total_tokens": amount}
        whole = last | {"output_tokens": total, "total_tokens": total}
        info = {"total_token_usage": whole, "last_token_usage": last, "model_context_window": 272000}
        limit = {"used_percent": 1.5 * amount, "window_minutes": 300, "resets_at": 1_795_000_000 + identity}
        limits = {"primary": limit} if kind == "limits" else None
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info, "rate_limits": limits}}
    if kind == "call":
        payload = {"type": "function_call", "name": f"t{identity % 2}", "arguments": "{}", "call_id": f"c{identity}"}
        return {"type": "response_item", "payload": payload}
    if kind == "output":
        payload = {"type": "function_call_output", "call_id": f"c{identity}", "output": "x" * amount}
        return {"type": "response_item", "payload": payload}
    if kind == "error":
        return {"type": "event_msg", "payload": {"type": "error", "message": "no more"}}
    return {"type": "event_msg", "payload": {"type": "task_complete", "last_agent_message": "Done."}}
