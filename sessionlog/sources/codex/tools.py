r"""Codex's tool calls: a call row, perhaps a row that says how the tool ended, and the row of what it gave back.

A shell command's exit code is in the text that the model sees: as `Exit code: 1`, as `Process exited with code 1`, or
in older logs as JSON text that ends in `"metadata":{"exit_code":1,…}`. It is looked for at both ends of the text as it
stands in the log, JSON escapes included; the size of an output is that of the same text (serde escapes little: a tenth
of a percent in prose, some percent in code), so that no output need be decoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from sessionlog.sources.codex.thread import Thread
from sessionlog.sources.gather import server_of, text_size
from sessionlog.sources.record import ToolUse, read_name

OUTPUT_TYPES = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})

CANONICAL_OUTPUT = re.compile(
    rb'\{"timestamp":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)","type":"response_item","payload":'
    rb'\{"type":"(?:function|custom_tool)_call_output","call_id":"([^"\\]{1,400})","output":"'
)
"""The head of an output row as Codex writes it; its text follows."""

_END = re.compile(rb'"\}\}\r?\n?\Z')
_FIRST_LINES = re.compile(
    rb"(?:Chunk ID: [^\\]{0,80}\\n)?(?:Wall time: [^\\]{0,40}\\n)?"
    rb"(?:Process exited with code|Exit code:) (-?\d{1,10})(?:\\n|\Z)"
)
FIRST_LETTERS = frozenset(b"CWPE{")
_METADATA = re.compile(rb'\\"metadata\\": ?\{(?:[^{}]{0,40}, ?)?\\"exit_code\\": ?(-?\d{1,10})[,}]')
_TAIL = 200
_new = object.__new__  # and all fields set: a quarter of the time that the class takes to be called
_CALLS = {
    "function_call": "", "custom_tool_call": "", "local_shell_call": "local_shell", "tool_search_call": "tool_search",
}  # fmt: skip


def read_call(item: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Read a call: its id, the tool's name and its MCP server; None for an item that is no call, or has no id."""
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _CALLS:
        return None
    call_id = read_name(item.get("call_id"))
    tool, server = server_of(read_name(item.get("name")) or _CALLS[kind] or "unknown")
    if not server:
        space = read_name(item.get("namespace")) or ""
        server = space[5:].rstrip("_") if space.startswith("mcp__") else ""
    return (call_id, tool, server) if call_id else None


def logged_text(line: bytes) -> tuple[bytes, int] | None:
    """Find an output's text in a line as Codex writes it: its ends (both, of a long one) and its length."""
    head = CANONICAL_OUTPUT.match(line)
    if head is None or line.find(b'"timestamp"', head.end()) >= 0:
        return None
    end = _END.search(line, max(head.end(), len(line) - 5))
    if end is None:
        return None
    return ends_of(line, head.end(), end.start()), end.start() - head.end()


def ends_of(text: bytes, start: int, end: int) -> bytes:
    """Return what may tell an exit code: both ends of a text, joined."""
    if end <= start or text[start] not in FIRST_LETTERS:
        return b""
    return text[start:end] if end - start <= 2 * _TAIL else text[start : start + _TAIL] + text[end - _TAIL : end]


def has_failed(ends: bytes) -> bool | None:
    """Tell whether a command failed by the ends of its escaped text; None when they hold no exit code."""
    if not ends:
        return None
    if ends[0] == 0x7B:  # a brace
        codes = _METADATA.findall(ends, max(0, len(ends) - _TAIL))
        return int(codes[-1]) != 0 if codes else None
    match = _FIRST_LINES.match(ends)
    return None if match is None else int(match.group(1)) != 0


def tells_failure(data: bytes, start: int, end: int) -> bool | None:
    """Tell the same of the text that stands in data[start:end]."""
    first = data[start]
    if first not in FIRST_LETTERS or start == end:
        return None
    if first == 0x7B:
        codes = _METADATA.findall(data, max(start, end - _TAIL), end)
        return int(codes[-1]) != 0 if codes else None
    match = _FIRST_LINES.match(data, start, min(end, start + 2 * _TAIL))
    return None if match is None else int(match.group(1)) != 0


def read_output(item: Mapping[str, Any], line: bytes = b"") -> tuple[bool | None, int]:
    """Read an output: whether it tells of a failure, and its size."""
    output = item.get("output", item.get("content"))
    if isinstance(output, str):
        found = logged_text(line) if line else None
        if found is None:
            text = orjson.dumps(output)[1:-1]
            found = ends_of(text, 0, len(text)), len(text)
        return has_failed(found[0]), found[1]
    if isinstance(output, Mapping):
        success = output.get("success")
        return (not success if isinstance(success, bool) else None), text_size(output.get("content"))
    return None, text_size(output)


class Tools:
    """The tool calls of one thread: those that are done, and those that wait for their results."""

    def __init__(self, thread: Thread, waiting: Mapping[str, list[Any]] | None = None) -> None:
        self._thread = thread
        self._open = {call_id: list(call) for call_id, call in (waiting or {}).items()}
        self._done: list[ToolUse] = []

    def state(self) -> dict[str, list[Any]]:
        """The calls that wait, as JSON."""
        return self._open

    def call(self, call_id: str, name: str, server: str, time_ns: int | None) -> None:
        """Take a call."""
        self._open[call_id] = [time_ns, name, server, None, None]

    def ended(self, event: Mapping[str, Any]) -> None:
        """Take what an event tells of a call that waits: its server, how it went, how long it took."""
        known = self._open.get(read_name(event.get("call_id")) or "")
        if known is None:
            return
        invocation = event.get("invocation")
        if isinstance(invocation, Mapping):
            known[1] = read_name(invocation.get("tool")) or known[1]
            known[2] = read_name(invocation.get("server")) or known[2]
        failed, duration_ms = _outcome(event), _milliseconds(event.get("duration"))
        known[3] = known[3] if failed is None else failed
        known[4] = known[4] if duration_ms is None else duration_ms

    def result(self, call_id: str, time_ns: int | None, failed: bool | None, size: int) -> None:
        """Take what a tool gave back; one whose call was never seen is left out."""
        known = self._open.pop(call_id, None)
        if known is None:
            return
        called_ns, name, server, went_wrong, duration_ms = known
        if duration_ms is None and called_ns is not None and time_ns is not None and time_ns >= called_ns:
            duration_ms = (time_ns - called_ns) / 1_000_000
        thread = self._thread
        use = _new(ToolUse)
        use.key = f"{thread.id}:{call_id}"
        use.time_ns = called_ns
        use.tool = name
        use.server = server
        use.agent = thread.agent
        use.project = thread.cwd
        use.finished = True
        use.failed = bool(failed if went_wrong is None else went_wrong)
        use.duration_ms = duration_ms
        use.output_bytes = size
        use.superseded_by = ""
        self._done.append(use)

    def uses(self) -> tuple[ToolUse, ...]:
        """All calls since the scan began, and those that wait."""
        thread = self._thread
        waiting = (
            ToolUse(
                key=f"{thread.id}:{call_id}", time_ns=call[0], tool=call[1], server=call[2], agent=thread.agent,
                project=thread.cwd,
            )
            for call_id, call in self._open.items()
        )  # fmt: skip
        return (*self._done, *waiting)


def _outcome(event: Mapping[str, Any]) -> bool | None:
    """Whether a tool failed, as its event tells it: an exit code, a flag, or a Result as Rust spells it."""
    code = event.get("exit_code")
    if isinstance(code, int):
        return code != 0
    if isinstance(event.get("success"), bool):
        return not event["success"]
    result = event.get("result")
    if not isinstance(result, Mapping):
        return None
    if "Err" in result:
        return True
    content = result.get("Ok", result)
    if not isinstance(content, Mapping):
        return None
    return any(content.get(name) is True for name in ("is_error", "isError"))


def _milliseconds(duration: Any) -> float | None:
    """A duration as Rust spells it, `{"secs", "nanos"}`."""
    if not isinstance(duration, Mapping):
        return None
    secs, nanos = duration.get("secs"), duration.get("nanos")
    if isinstance(secs, bool) or not isinstance(secs, int) or not 0 <= secs < 10**9:
        return None
    return secs * 1000 + (nanos / 1_000_000 if isinstance(nanos, int) and 0 <= nanos < 10**9 else 0)
