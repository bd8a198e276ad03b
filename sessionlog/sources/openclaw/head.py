"""The beginning of a session of pi's family: whether it is one, and whose.

pi and OpenClaw begin their logs with the same header. What only OpenClaw writes tells them apart, else the folder: its
logs lie in `agents/<id>/sessions`, pi's never do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from sessionlog.events.damaged import Flaw, find_objects

Row = Mapping[str, Any]
ARCHIVED = re.compile(r"\.jsonl\.(?:deleted|reset)\.|\.imported-\d")
_LEADERS = 4  # rows that may come before the header
_STORE = re.compile(r"[/\\]agents[/\\][^/\\]+[/\\](?:sessions|session-sqlite-import-archive)[/\\]")
_MIRRORS = frozenset({"delivery-mirror", "gateway-injected"})


def session_rows(head: bytes) -> list[Row]:
    """Return the rows in the beginning of a session's log; none where it is no such log."""
    rows: list[Row] = []
    for line in head.split(b"\n"):
        rows.extend(row for row in _objects(line) if isinstance(row, Mapping))
        if len(rows) >= _LEADERS and not any(map(_is_header, rows[:_LEADERS])):
            return []
    return rows if any(map(_is_header, rows[:_LEADERS])) else []


def _objects(line: bytes) -> list[Any]:
    try:
        return [orjson.loads(line)]
    except ValueError:
        return [item[0] for item in find_objects(line) if not isinstance(item, Flaw)]


def _is_header(row: Row) -> bool:
    named = isinstance(row.get("id"), str) and isinstance(row.get("timestamp"), str | int)
    return row.get("type") == "session" and named and ("cwd" in row or "version" in row)


def is_openclaw(path: str, rows: Sequence[Row]) -> bool:
    """Tell whether a session of this family is OpenClaw's, by what only it writes, else by its folder."""
    if any(map(_is_mark, rows)):
        return True
    full = os.path.abspath(path)
    return _STORE.search(full) is not None or ARCHIVED.search(os.path.basename(full)) is not None


def _is_mark(row: Row) -> bool:
    kind = row.get("customType")
    if isinstance(kind, str) and (kind == "model-snapshot" or kind.startswith("openclaw")):
        return True
    if row.get("type") == "session":
        version = row.get("version")
        return type(version) is int and version >= 4
    message = row.get("message")
    if not isinstance(message, Mapping):
        return False
    model = message.get("model")
    mirror = isinstance(model, str) and model in _MIRRORS
    return mirror or "idempotencyKey" in message or message.get("api") == "openclaw-transcript"
