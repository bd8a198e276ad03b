"""What the rows of a saved stream of `codex exec --json` mean: completed items, and a counter for each turn.

The stream has no times: its records have the time of the file's last change, and it is always read whole. The counter
is that of the whole thread (the CLI hands on its running total, though it is documented as the turn's), so a turn's use
is the difference to the turn before; a counter that falls is taken as it is. A stream that resumes a thread starts with
what the streams before it held. Every thread that is not ephemeral has a rollout, which has the same use response by
response, so these records are superseded by it, and their session is another: `exec-` and the thread's id. The model is
not in the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.sources.codex.rows import PROVIDER, Row, Vector, advance, read_vector, thread_of, tokens_of
from sessionlog.sources.kit import (
    UNKNOWN,
    BadNumber,
    Request,
    Response,
    Session,
    Status,
    Step,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    first_words,
    is_failure,
    mapping,
    name,
    text,
)

ROWS = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
PREFIX = "exec-"

_FAILED = frozenset({"failed", "declined"})


class Thread(Struct):
    """One thread of a stream.

    Attributes:
        id: The thread.
        counter: Its total.
        turns: How many of its turns have ended.
    """

    id: str
    counter: Vector | None = None
    turns: int = 0


class Stream(Struct):
    """What is known of a stream from row to row; for a rollout's it has never begun."""

    first: str
    time: int | None
    threads: dict[str, Thread] = {}
    thread: Thread | None = None
    is_begun: bool = False


def begin(path: str) -> Stream:
    """Return the state at a stream's beginning."""
    status = files.stat_path(path)
    return Stream(thread_of(path), None if status is None else status.st_mtime_ns)


def read_stream(row: Row, stream: Stream) -> Iterable[Step]:
    """What a row means."""
    kind = row.type
    started = name(row.thread_id) if kind == "thread.started" else ""
    thread = stream.thread
    if started or thread is None:
        id_ = started or stream.first
        thread = stream.thread = stream.threads.setdefault(id_, Thread(id_))
        yield Session(id=PREFIX + id_, provider=PROVIDER, time=stream.time)
    if kind == "turn.started":
        yield Request(None)
    elif kind == "turn.completed":
        yield from _completed(row, thread, stream.time)
        yield Status(None, "success")
    elif kind == "turn.failed":
        error = first_words(mapping(row.error).get("message", row.error))
        yield _response(None, "failed", thread, stream.time, error=error)
    elif kind == "item.completed":
        yield from _item(mapping(row.item), thread, stream.time)


def _completed(row: Row, thread: Thread, time: int | None) -> Iterable[Step]:
    total, issues = read_vector(row.usage, thread.counter)
    if total is None:
        yield from map(BadNumber, issues)
        return
    before, thread.counter = thread.counter, total
    _, used = advance(before, total, None)
    if used is None and before != total:
        used = total  # not a running total
    if used is not None:
        yield _response(tokens_of(used, issues), ".".join(map(str, total)), thread, time)


def _response(
    tokens: Tokens | None, place: str, thread: Thread, time: int | None, error: str | None = None
) -> Response:
    key = f"{PREFIX}{thread.id}:{thread.turns}:{place}"
    thread.turns += 1
    return Response(
        time=time,
        key=key,
        tokens=tokens,
        failed=error is not None,
        error=error or "",
        superseded_by=_rollout(thread),
        final=True,
    )


def _rollout(thread: Thread) -> str:
    return f"codex:{thread.id}"


def _item(item: Mapping[str, Any], thread: Thread, time: int | None) -> Iterable[Step]:
    kind = item.get("type")
    if kind == "reasoning":
        return (Text(None, reasoning=text(item, "text")),)
    if kind in ("agent_message", "plan"):
        return (Text(None, text(item, "text")),)
    tool, given, output = _call(item)
    if not tool:
        return ()
    key = f"{PREFIX}{thread.id}:{thread.turns}:{name(item, 'id')}"
    error = item.get("error")
    failed = name(item, "status") in _FAILED or is_failure(item, "exit_code") or bool(error)
    server = name(item, "server")
    return (
        ToolCall(time, key, tool, given, server, name(item, "id"), _rollout(thread)),
        ToolResult(None, key, error if error and output is None else output, failed=failed),
    )


def _call(item: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """A tool item's name, what it was given, and what it gave back; no name for other items."""
    get = item.get
    match get("type"):
        case "command_execution":
            return "shell", {"command": get("command")}, get("aggregated_output")
        case "mcp_tool_call":
            return name(get("tool")) or UNKNOWN, get("arguments"), get("result")
        case "file_change":
            return "apply_patch", {"changes": get("changes")}, get("status")
        case "web_search":
            return "web_search", {"query": get("query")}, None
        case "collab_tool_call":
            return name(get("tool")) or UNKNOWN, {"prompt": get("prompt")}, get("status")
    return "", None, None
