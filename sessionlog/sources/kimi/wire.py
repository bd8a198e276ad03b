"""One line of Kimi's `wire.jsonl` as a move: one small value for the wire of Kimi CLI and the records of Kimi Code.

Kimi CLI: `{"timestamp": s, "message": {"type", "payload"}}`; a sub-agent's message is wrapped in a `SubagentEvent`.
Kimi Code: `{"type", "time": ms, …}`, what happens in a step inside `context.append_loop_event`.
Invariant: any JSON object gives a move or None, and never raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.events.times import epoch_ns
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.sources.record import read_name

Kind = Literal[
    "prompt", "step", "text", "think", "call", "arguments", "result", "usage", "request", "compacted", "done",
    "cancelled", "profile", "other",
]  # fmt: skip
Json = Mapping[str, Any]

SUBAGENT = "subagent"
_CLI = ("input_other", "output", "input_cache_read", "input_cache_creation")
_CODE = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
_NEEDLES = (
    b'"user_input"', b'"token_usage"', b'"function"', b'"tool_call_id"', b'"StepBegin"', b'"CompactionEnd"',
    b'"TurnEnd"', b'"usage"', b'"input"', b'"turn.cancel"', b'"llm.request"', b'"profileName"',
    b'"metadata"', b"\\u00",
)  # fmt: skip
_EVENT, _PIECE = b'"event"', b'"part"'
_LOOP = (b'"step.begin"', b'"step.end"', b'"toolCallId"', b'"tool.result"')


@dataclass(slots=True, kw_only=True)
class Move:
    """What one line tells.

    Attributes:
        kind: What happened; `other` is only a moment.
        time_ns: When.
        agent: The sub-agent's id where the line is told by its parent; empty otherwise.
        agent_kind: What kind of sub-agent that is.
        text: What was said, or a tool's output; a step's or a model's name.
        id: The tool call's id, the step's, or that of the response's message.
        provider: Who was asked.
        arguments: What a tool was called with.
        failed: The tool's result was an error.
        usage: A response's tokens.
        issues: Numbers that are none.
    """

    kind: Kind
    time_ns: int | None
    agent: str = ""
    agent_kind: str = ""
    text: str = ""
    id: str = ""
    provider: str = ""
    arguments: Any = None
    failed: bool = False
    usage: TokenUsage | None = None
    issues: tuple[str, ...] = ()


def matters(line: bytes) -> bool:
    """Whether a scan must decode a line: most are pieces of text, and those have none of the keys of the others."""
    if any(needle in line for needle in _NEEDLES):
        return True
    return _EVENT in line and (_PIECE not in line or any(needle in line for needle in _LOOP))


def read_move(row: Json) -> Move | None:
    """Return what a row tells; None for a row of neither dialect."""
    message = row.get("message")
    if isinstance(message, dict) and isinstance(message.get("type"), str) and "type" not in row:
        return _cli(message["type"], _map(message.get("payload")), epoch_ns(row.get("timestamp")))
    kind = row.get("type")
    return _code(kind, row, epoch_ns(row.get("time"))) if isinstance(kind, str) else None


def _map(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


def words(value: Any) -> str:
    """The text of a string or of content parts."""
    if isinstance(value, list):
        return "\n".join(piece for piece in (_piece(part) for part in value) if piece)
    return _str(value)


def _piece(part: Any) -> str:
    if isinstance(part, str):
        return part
    part = _map(part)
    kind = _str(part.get("type"))
    return _str(part.get("text")) if kind == "text" or not kind else f"[{kind.removesuffix('_url')}]"


def _usage(data: Any, names: tuple[str, ...]) -> tuple[TokenUsage, tuple[str, ...]]:
    if not isinstance(data, dict):
        return TokenUsage(), (f"usage is a {type(data).__name__}",)
    read = {name: read_count(data.get(name)) for name in names}
    counts = [read[name][0] for name in names]
    usage = TokenUsage(input=counts[0], output=counts[1], cache_read=counts[2], cache_write=counts[3])
    return usage, tuple(f"{name}: {issue}" for name, (_, issue) in read.items() if issue)


def _cli(kind: str, payload: Json, time_ns: int | None) -> Move:
    if kind == "SubagentEvent":
        event = _map(payload.get("event"))
        inner = _cli(_str(event.get("type")), _map(event.get("payload")), time_ns)
        called = payload.get("parent_tool_call_id", payload.get("task_tool_call_id"))
        inner.agent = inner.agent or read_name(payload.get("agent_id")) or read_name(called) or SUBAGENT
        inner.agent_kind = inner.agent_kind or read_name(payload.get("subagent_type")) or SUBAGENT
        return inner
    move = Move(kind="other", time_ns=time_ns)
    if kind in {"TurnBegin", "SteerInput"}:
        move.kind, move.text = "prompt", words(payload.get("user_input"))
    elif kind == "StepBegin":
        move.kind = "step"
    elif kind == "ContentPart":
        thinks = payload.get("type") == "think"
        move.kind = "think" if thinks else "text"
        move.text = _str(payload.get("think")) if thinks else _piece(payload)
    elif kind == "ToolCall":
        function = _map(payload.get("function"))
        move.kind, move.id, move.text = "call", _str(payload.get("id")), read_name(function.get("name")) or ""
        move.arguments = function.get("arguments")
    elif kind == "ToolCallPart":
        move.kind, move.text = "arguments", _str(payload.get("arguments_part"))
    elif kind == "ToolResult":
        value = _map(payload.get("return_value")) or _map(payload.get("result"))
        move.kind, move.id = "result", _str(payload.get("tool_call_id"))
        move.text = words(value.get("output")) or _str(value.get("message"))
        move.failed = value.get("is_error") is True
    elif kind == "StatusUpdate" and payload.get("token_usage") is not None:
        move.kind, move.id = "usage", read_name(payload.get("message_id")) or ""
        move.usage, move.issues = _usage(payload["token_usage"], _CLI)
    elif kind in {"CompactionEnd", "TurnEnd"}:
        move.kind = "compacted" if kind == "CompactionEnd" else "done"
    return move


def _code(kind: str, row: Json, time_ns: int | None) -> Move:
    move = Move(kind="other", time_ns=time_ns)
    if kind in {"turn.prompt", "turn.steer"}:
        move.kind, move.text = "prompt", words(row.get("input"))
    elif kind == "turn.cancel":
        move.kind = "cancelled"
    elif kind == "llm.request":
        move.kind, move.text = "request", read_name(row.get("model")) or ""
        move.provider = read_name(row.get("provider")) or ""
    elif kind == "usage.record" and row.get("usage") is not None:
        move.kind, move.text = "usage", read_name(row.get("model")) or ""
        move.usage, move.issues = _usage(row.get("usage"), _CODE)
    elif kind == "context.apply_compaction":
        move.kind, move.text = "compacted", _str(row.get("summary"))
    elif kind == "config.update" and read_name(row.get("profileName")):
        move.kind, move.text = "profile", read_name(row.get("profileName")) or ""
    elif kind == "metadata":
        move.time_ns = time_ns or epoch_ns(row.get("created_at"))
    elif kind == "context.append_loop_event":
        _loop(move, _map(row.get("event")))
    return move


def _loop(move: Move, event: Json) -> None:
    kind = event.get("type")
    if kind == "step.begin":
        move.kind, move.id = "step", _str(event.get("uuid"))
    elif kind == "content.part":
        part = _map(event.get("part"))
        thinks = part.get("type") == "think"
        move.kind = "think" if thinks else "text"
        move.text = _str(part.get("think")) if thinks else _piece(part)
    elif kind == "tool.call":
        move.kind, move.id, move.text = "call", _str(event.get("toolCallId")), read_name(event.get("name")) or ""
        move.arguments = event.get("args")
    elif kind == "tool.result":
        result = _map(event.get("result"))
        move.kind, move.id, move.text = "result", _str(event.get("toolCallId")), words(result.get("output"))
        move.failed = result.get("isError") is True
    elif kind == "step.end" and event.get("finishReason") in ("end_turn", "stop"):
        move.kind = "done"
