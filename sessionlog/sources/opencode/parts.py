"""The words of opencode's JSON — session, message, part — as plain values, the same for all of its three shapes.

Invariant: nothing raises for what is stored; fields of a wrong type are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from sessionlog.errors import Problem
from sessionlog.events.damaged import Flaw, find_objects
from sessionlog.sources.record import UNKNOWN

Note = Callable[[Problem], None]
Json = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Session:
    """One stored session.

    Attributes:
        id: Its id.
        parent: The session whose sub-agent it is; empty for a session of its own.
        directory: Where it works; empty when that is not stored.
        version: The agent's version.
        created: As stored.
    """

    id: str
    parent: str = ""
    directory: str = ""
    version: str = ""
    created: Any = None


@dataclass(slots=True, kw_only=True)
class Part:
    """One piece of a message: `text`, `reasoning`, `tool` or `compaction`.

    Attributes:
        kind: Which of them.
        text: What it says; of a tool, what it gave back or why it failed.
        call_id: The tool call's id.
        name: The tool.
        arguments: What it was called with.
        status: pending, running, completed or error.
        start: When the tool began, as stored.
        end: When it was done, as stored.
        synthetic: The agent's own words in the user's place.
    """

    kind: str
    text: str = ""
    call_id: str = ""
    name: str = ""
    arguments: Any = None
    status: str = ""
    start: Any = None
    end: Any = None
    synthetic: bool = False


@dataclass(slots=True, kw_only=True)
class Message:
    """One stored message.

    Attributes:
        id: Its id, which copies do not keep.
        session_id: Whose it is.
        role: user, assistant, compaction, or whatever else is stored.
        data: What is stored of it.
        parts: Its pieces, where they were asked for or are stored with it.
    """

    id: str
    session_id: str
    role: str
    data: Json
    parts: list[Part] = field(default_factory=list)


def as_map(value: Any) -> Json:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def _tool(call_id: Any, name: Any, state: Json, start: Any, end: Any) -> Part:
    status = as_text(state.get("status"))
    said: Any = state.get("error") if status == "error" else state.get("output")
    if isinstance(said, dict):
        said = said.get("message") or as_map(said.get("data")).get("message")
    if said is None and isinstance(state.get("content"), list):
        said = "\n".join(as_text(as_map(piece).get("text")) for piece in state["content"])
    return Part(
        kind="tool", text=as_text(said), call_id=as_text(call_id), name=as_text(name), arguments=state.get("input"),
        status=status, start=start, end=end,
    )  # fmt: skip


def read_part(data: Any) -> Part | None:
    """Read a part of any shape; None for what says nothing, such as the marks of steps and snapshots."""
    data = as_map(data)
    kind = data.get("type")
    if kind in ("text", "reasoning") and not data.get("ignored"):
        return Part(kind=str(kind), text=as_text(data.get("text")), synthetic=data.get("synthetic") is True)
    if kind == "tool":
        state = as_map(data.get("state"))
        time = as_map(state.get("time")) or as_map(data.get("time"))
        start = time.get("start", time.get("ran", time.get("created")))
        name, call_id = data.get("tool", data.get("name")), data.get("callID", data.get("id"))
        return _tool(call_id, name, state, start, time.get("end", time.get("completed")))
    if kind == "compaction":
        return Part(kind="compaction")
    if kind == "subtask":
        return Part(kind="text", text=as_text(data.get("prompt")))
    if kind == "file":
        return Part(kind="text", text=f"[{as_text(data.get('filename')) or as_text(data.get('mime')) or 'file'}]")
    return None


def read_message(id_: Any, session_id: Any, data: Json, type_: Any = None) -> Message:
    """Read a message; `type_` is the column `type` of v2, whose parts are stored with it."""
    role = type_ if isinstance(type_, str) else data.get("role")
    message = Message(id=str(id_ or ""), session_id=str(session_id or UNKNOWN), role=as_text(role), data=data)
    if isinstance(data.get("content"), list):
        message.parts = [part for part in map(read_part, data["content"]) if part is not None]
    elif isinstance(type_, str) and isinstance(data.get("text"), str):
        message.parts = [Part(kind="text", text=data["text"])]
    return message


def prompt_of(parts: Iterable[Part]) -> str:
    """Return what a user's message asks in the user's own words; empty where all of it is the agent's."""
    return "\n\n".join(part.text for part in parts if part.kind == "text" and part.text and not part.synthetic)


def root_of(session_id: str, known: Mapping[str, Session]) -> str:
    """Return the first ancestor of a session; a circle ends where it closes."""
    seen: set[str] = set()
    while session_id not in seen and session_id in known and known[session_id].parent:
        seen.add(session_id)
        session_id = known[session_id].parent
    return session_id


def decode(raw: Any, path: str, name: str, note: Note) -> Json:
    """Return a stored object; an empty one, and a problem, for what is none."""
    data = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
    if not isinstance(data, bytes):
        data = repr(raw).encode()
    value: Any = None
    detail = "no JSON object"
    try:
        value = orjson.loads(data)
    except ValueError:
        for item in find_objects(data):
            if isinstance(item, Flaw):
                detail = item.detail
            elif value is None:
                value = item[0]
    if isinstance(value, dict):
        return value
    note(Problem(path=path, line=0, offset=0, kind="not_json", detail=f"{name}: {detail}".removeprefix(": ")))
    return {}
