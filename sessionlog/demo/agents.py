"""Write sample logs of Claude Code, Codex and Gemini CLI below a home folder.

The rows have the fields that the sources read, in the agents' own formats; texts and counts are invented.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sessionlog import files

_SHOP, _SITE = "/home/you/src/shop", "/home/you/src/site"
_Row = Mapping[str, Any]


class _Times:
    """Ascending timestamps of a session."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def after(self, seconds: float) -> str:
        """Advance by so many seconds and return the time in RFC 3339."""
        self.now += timedelta(seconds=seconds)
        return self.text

    @property
    def text(self) -> str:
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_agents(home: str, *, now_ns: int) -> list[str]:
    """Write the logs of three agents below a home folder; return the agents' folders.

    Raises:
        OSError: The folder cannot be written to.
    """
    now = datetime.fromtimestamp(now_ns / 1e9, UTC)
    for path, rows in (*_claude_code(now), *_codex(now), *_gemini(now)):
        full_path = os.path.join(home, *path)
        files.make_directories(os.path.dirname(full_path))
        lines = (row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)
        files.replace_file(full_path, [b"".join(lines)])
    return [os.path.join(home, name) for name in (".claude", ".codex", ".gemini")]


class _Work(NamedTuple):
    """A session of Claude Code; each of its requests is (input, cache writes, cache reads, output) tokens."""

    session: str
    ago: timedelta
    model: str
    prompt: str
    edited: str
    answer: str
    requests: tuple[tuple[int, int, int, int], ...]


_WORK = (
    _Work(
        "7c1d9a52-31fe-4c0b-9a6e-5b2d84f0c3a1", timedelta(days=1, hours=2), "claude-sonnet-4-5-20250929",
        "add discount codes to the basket", "basket.py", "Discount codes work; three tests cover them.",
        ((12, 9_800, 0, 410), (9, 640, 9_800, 230), (14, 900, 10_440, 96)),
    ),
    _Work(
        "e84b60f3-92a7-4d18-8c55-1f7a09d6b2e4", timedelta(hours=2), "claude-opus-4-5-20251101",
        "checkout takes four seconds, find out why", "checkout.py", "It asked for each price; now it asks once.",
        ((10, 14_200, 0, 820), (11, 1_900, 14_200, 1_240), (8, 700, 16_100, 180)),
    ),
)  # fmt: skip


def _claude_code(now: datetime) -> Iterator[tuple[tuple[str, ...], Iterable[_Row]]]:
    for work in _WORK:
        folder = (".claude", "projects", _SHOP.replace("/", "-"))
        yield (*folder, f"{work.session}.jsonl"), _claude_rows(work, _Times(now - work.ago))


def _claude_rows(work: _Work, times: _Times) -> Iterator[_Row]:
    contents: tuple[dict[str, Any], ...] = (
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q"}},
        {"type": "tool_use", "id": "t2", "name": "Edit",
         "input": {"file_path": f"{_SHOP}/{work.edited}", "old_string": "price(item)", "new_string": "prices[item]"}},
        {"type": "text", "text": work.answer},
    )  # fmt: skip
    results = ("2 failed, 31 passed", "The file has been updated.")
    before: str | None = None

    def row(kind: str, message: _Row, time: str, **more: Any) -> _Row:
        nonlocal before
        parent, before = before, f"{work.session[:-3]}{0 if before is None else int(before[-3:]) + 1:03}"
        return {
            "parentUuid": parent, "uuid": before, "isSidechain": False, "userType": "external", "cwd": _SHOP,
            "sessionId": work.session, "version": "2.1.31", "gitBranch": "main", "type": kind, "message": message,
            "timestamp": time, **more,
        }  # fmt: skip

    yield row("user", {"role": "user", "content": work.prompt}, times.text)
    for number, (content, sizes) in enumerate(zip(contents, work.requests, strict=True)):
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        is_last = number == len(contents) - 1
        message = {
            "model": work.model, "id": f"msg_{work.session[:4]}{number}", "type": "message", "role": "assistant",
            "content": [content], "stop_reason": "end_turn" if is_last else "tool_use",
            "usage": dict(zip(names, sizes, strict=True)),
        }  # fmt: skip
        request = f"req_{work.session[:4]}{number}"
        yield row("assistant", message, times.after(6 + sizes[-1] / 60), requestId=request)
        if not is_last:
            result = {"type": "tool_result", "tool_use_id": content["id"], "content": results[number],
                      "is_error": number == 0}  # fmt: skip
            yield row("user", {"role": "user", "content": [result]}, times.after(3))


def _codex(now: datetime) -> Iterator[tuple[tuple[str, ...], Iterable[_Row]]]:
    times = _Times(now - timedelta(hours=5))
    session = "019ab3f1-7c02-7e41-b8d9-3e5f60a1c7d2"
    folder = (".codex", "sessions", *f"{times.now:%Y/%m/%d}".split("/"))
    yield (*folder, f"rollout-{times.now:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"), _codex_rows(session, times)


def _codex_rows(session: str, times: _Times) -> Iterator[_Row]:
    def row(kind: str, payload: _Row, after: float = 0.1) -> _Row:
        return {"timestamp": times.after(after), "type": kind, "payload": payload}

    def counted(total: tuple[int, int, int, int], last: tuple[int, int, int, int]) -> _Row:
        names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
        sums = [dict(zip(names, one, strict=True)) | {"total_tokens": one[0] + one[2]} for one in (total, last)]
        info = {"total_token_usage": sums[0], "last_token_usage": sums[1], "model_context_window": 272_000}
        return row("event_msg", {"type": "token_count", "info": info, "rate_limits": None}, 0.2)

    prompt, answer = "write the release notes from the git log", "The notes are in NOTES.md."
    yield row("session_meta", {
        "id": session, "timestamp": times.text, "cwd": _SITE, "originator": "codex_cli_rs", "cli_version": "0.98.0",
        "source": "cli", "model_provider": "openai",
    })  # fmt: skip
    yield row("event_msg", {"type": "task_started"})
    yield row("turn_context", {"cwd": _SITE, "model": "gpt-5.3-codex", "effort": "medium"})
    text = [{"type": "input_text", "text": prompt}]
    yield row("response_item", {"type": "message", "role": "user", "content": text})
    yield row("event_msg", {"type": "user_message", "message": prompt, "images": []})
    call = {"cmd": "git log --oneline v1.4..HEAD"}
    yield row("response_item", {
        "type": "function_call", "name": "exec_command", "arguments": json.dumps(call), "call_id": "c1",
    }, 4)  # fmt: skip
    yield counted((6_400, 0, 320, 128), (6_400, 0, 320, 128))
    output = "Process exited with code 0\nOutput:\n4f2a one query for all prices\n91bc discount codes\n"
    yield row("response_item", {"type": "function_call_output", "call_id": "c1", "output": output}, 0.4)
    yield row("event_msg", {"type": "agent_message", "message": answer}, 7)
    spoken = [{"type": "output_text", "text": answer}]
    yield row("response_item", {"type": "message", "role": "assistant", "content": spoken})
    yield counted((13_900, 6_300, 790, 192), (7_500, 6_300, 470, 64))
    yield row("event_msg", {"type": "task_complete", "last_agent_message": answer})


def _gemini(now: datetime) -> Iterator[tuple[tuple[str, ...], Iterable[_Row | bytes]]]:
    times = _Times(now - timedelta(days=2, hours=4))
    session, folder = "8f0c2e1a-5d47-4b0e-a6f2-9c3b7e10d845", (".gemini", "tmp", "site")
    begun = times.text
    tokens = {"input": 8_200, "output": 510, "cached": 3_100, "thoughts": 220, "tool": 0, "total": 8_930}
    rows = (
        {"sessionId": session, "projectHash": "demo", "startTime": begun, "lastUpdated": begun, "kind": "main"},
        {"id": "u1", "timestamp": times.after(1), "type": "user", "content": [{"text": "which pages have no title?"}]},
        {"id": "m1", "timestamp": times.after(9), "type": "gemini", "content": "Two: about.html and terms.html.",
         "thoughts": [], "tokens": tokens, "model": "gemini-2.5-pro"},
    )  # fmt: skip
    yield (*folder, ".project_root"), [_SITE.encode()]
    yield (*folder, "chats", f"session-{times.now:%Y-%m-%dT%H-%M}-{session[:8]}.jsonl"), rows
