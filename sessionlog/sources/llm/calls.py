"""What both generations of llm's tables say, as calls: a row, the messages before it that are new, and the answer.

A message is `{"role", "parts"}`; a part `{"type", "text"}`, or with what a tool needs: `name`, `arguments`, `output`,
`exception`, `tool_call_id`. Whatever columns a database lacks are missing in the row, and nothing else changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from sessionlog.events.times import parse_time

Json = Mapping[str, Any]
Around = tuple[list[Json], list[Json]]

STORES = (("turns", "thread_id", "threads"), ("responses", "conversation_id", "conversations"))
"""The newer one first: (calls, their column with the session's id, sessions)."""

_FACTS = ("model", "resolved_model", "duration_ms", "datetime_utc", "input_tokens", "output_tokens", "token_details")
_LINKS = ("parent_message_hash", "tip_message_hash")
_TEXTS = ("prompt", "system", "response", "reasoning")
_TOOLS = ("response_id", "name", "arguments", "output", "exception", "tool_call_id")


class Call(NamedTuple):
    """One logged call.

    Attributes:
        session_id: The conversation's id; the call's own where it has none.
        row: Its columns, as far as the database has them, and of its conversation the `title`, and the `origin` that it
            was forked from.
        heard: The messages sent since the call before.
        said: The answer.
    """

    session_id: str
    row: Json
    heard: list[Json]
    said: list[Json]

    @property
    def start_ns(self) -> int | None:
        """When it was asked; old rows name no zone and mean UTC."""
        time = self.row.get("datetime_utc")
        return parse_time(time) or parse_time(f"{time}Z")

    @property
    def latency_ms(self) -> float | None:
        """How long the answer took."""
        took = self.row.get("duration_ms")
        return float(took) if isinstance(took, int | float) and 0 <= took < 1e12 else None

    @property
    def end_ns(self) -> int | None:
        """When it was answered."""
        start_ns, took = self.start_ns, self.latency_ms
        return start_ns if start_ns is None or took is None else min(start_ns + int(took * 1_000_000), 2**63 - 1)


def columns_of(db: sqlite3.Connection, table: str) -> list[str]:
    """Return the names of a table's columns; none where there is no such table."""
    return [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")]


def read_calls(db: sqlite3.Connection, only: str | None = None) -> Iterator[Call]:
    """Yield the calls of all sessions, or of one, in the order of sessions and times; the old tables come last.

    Raises:
        sqlite3.Error: The database is damaged from here on.
    """
    done = ""
    for table, session, sessions in STORES:
        have = columns_of(db, table)
        if not {"id", "model", session} <= set(have):
            continue
        names = [name for name in (*_FACTS, *_LINKS, *_TEXTS) if name in have]
        facts = columns_of(db, sessions)
        title, origin = ("s.name" if facts else "NULL"), ("s.forked_from" if "forked_from" in facts else "NULL")
        query = (  # every name in it is one of ours
            f"SELECT coalesce(c.{session}, c.id), c.id, {title}, {origin}, {', '.join(f'c.{one}' for one in names)} "  # noqa: S608
            f"FROM {table} c {f'LEFT JOIN {sessions} s ON s.id = c.{session} ' if facts else ''}"
            f"WHERE c.id IS NOT NULL {done} AND coalesce(?, c.{session}, c.id) = coalesce(c.{session}, c.id) "
            f"ORDER BY 1, {'c.datetime_utc, ' if 'datetime_utc' in have else ''}c.rowid"
        )
        around = _turn_reader(db) if table == "turns" else _response_reader(db)
        current, known = None, set[Any]()
        for row in _rows(db, ("session", "id", "title", "origin", *names), query, only):
            if row["session"] != current:
                current, known = row["session"], set()
            yield Call(str(current), row, *around(row, known))
        done = f"AND c.id NOT IN (SELECT id FROM {table} WHERE id IS NOT NULL)"  # noqa: S608 - as above


def _rows(db: sqlite3.Connection, names: Sequence[str], query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """Run a query that gives columns of these names; a blob among them is text all the same."""
    for row in db.execute(query, values):
        mended = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in row)
        yield dict(zip(names, mended, strict=True))


def _turn_reader(db: sqlite3.Connection) -> Callable[[Json, set[Any]], Around]:
    """Walk from a turn's two messages back to those that are known; early alphas had other tables, which tell less."""
    readable = "message_hash" in columns_of(db, "parts")

    def around(row: Json, known: set[Any]) -> Around:
        found: Around = [], []
        for messages, link in zip(found, _LINKS, strict=True):
            message = row.get(link)
            while readable and message and message not in known:
                known.add(message)
                query = "SELECT parent_hash, role FROM messages WHERE hash = ?"
                this = next(_rows(db, ("back", "role"), query, message), {})
                messages.append({"role": this.get("role"), "parts": _parts(db, message)})
                message = this.get("back")
            messages.reverse()
        return found

    return around


def _parts(db: sqlite3.Connection, message: str) -> list[Json]:
    query = "SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position"
    parts: list[Json] = []
    for row in _rows(db, ("type", "text", "payload"), query, message):
        payload = as_object(row["payload"])
        text = _word(row["text"] or payload.get("text"))
        pieces = payload.get("text_ref")
        for piece in map(as_object, pieces if isinstance(pieces, list) else []):
            fragment = "SELECT content FROM fragments WHERE id = ?"
            borrowed = next(_rows(db, ("literal",), fragment, _word(piece.get("fragment"))), piece)
            text += _word(borrowed.get("literal"))
        parts.append({**payload, "type": row["type"], "text": text})
    return parts


def _response_reader(db: sqlite3.Connection) -> Callable[[Json, set[Any]], Around]:
    """Spell a row of the old tables as messages; a system prompt is heard when it is new."""
    calls, results = _tool_parts(db, "tool_calls", "tool_call"), _tool_parts(db, "tool_results", "tool_result")

    def around(row: Json, known: set[Any]) -> Around:
        heard: list[Json] = [{"role": "tool", "parts": results.get(row["id"], [])}]
        for role, column in (("system", "system"), ("user", "prompt")):
            if role == "user" or row.get(column) not in known:
                heard.append({"role": role, "parts": [{"type": "text", "text": row.get(column)}]})
        known.add(row.get("system"))
        said: list[Json] = [{"type": "text", "text": row.get("response")}]
        said.append({"type": "reasoning", "text": row.get("reasoning")})
        return heard, [{"role": "assistant", "parts": said + calls.get(row["id"], [])}]

    return around


def _tool_parts(db: sqlite3.Connection, table: str, type_: str) -> dict[Any, list[Json]]:
    """Read a tool table once, by response: it has no index that could find one response's rows."""
    have = [name for name in columns_of(db, table) if name in _TOOLS]
    parts: dict[Any, list[Json]] = {}
    if "response_id" in have:
        for row in _rows(db, have, f"SELECT {', '.join(have)} FROM {table} ORDER BY rowid"):  # noqa: S608 - our names
            part = {**row, "type": type_, "arguments": as_object(row.get("arguments"))}
            parts.setdefault(row["response_id"], []).append(part)
    return parts


def as_object(text: Any) -> Json:
    """Return the object that a JSON text holds, or is; an empty one for anything else."""
    try:
        value = orjson.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str:
    """Return a text or a number as text, "" for anything else, which may be nested deeper than `str` can follow."""
    return str(value or "") if isinstance(value, str | int | float) else ""


def tools_in(messages: list[Json], type_: str) -> Iterator[tuple[str, Json]]:
    """Yield the tool parts of one type, with what names their call: its id, or the tool's name where it has none."""
    for message in messages:
        for part in message["parts"]:
            if part.get("type") == type_:
                yield _word(part.get("tool_call_id")) or _word(part.get("name")), part


def text_in(messages: list[Json], type_: str = "text") -> str:
    """Return the texts of one type, line by line."""
    parts = (part for message in messages for part in message["parts"] if part.get("type") == type_)
    return "\n".join(str(part["text"]) for part in parts if part.get("text"))
