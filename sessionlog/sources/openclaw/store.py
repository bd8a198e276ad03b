"""OpenClaw's stores besides its JSONL files: the database of an agent, and the index of sessions.

A database holds many sessions: rows by (session, seq), whole deleted or cold sessions as blobs of JSONL, and what is
known of each session. It is another program's and may be written to meanwhile, of any version, or damaged: whatever is
missing is left out, and what SQLite refuses half-way is a `Problem` after the rows that could be read.
"""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.damaged import Flaw, find_objects
from sessionlog.reader.database import open_database
from sessionlog.sources.record import read_name

MAGIC = b"SQLite format 3\x00"
MAX_EVENT = 64 << 20
MAX_ARCHIVE = 1 << 30
_MAX_INDEX = 64 << 20
_ARCHIVES = ("session_transcript_cold_archives", "session_transcript_archives")
_CLI = {"claude-cli": "claude-code", "codex-cli": "codex"}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the store knows of a session besides its rows.

    Attributes:
        key: Its session key: who talks to whom; sub-agents have one of their own.
        provider: Who serves its model.
        model: Its model.
        superseded_by: Provider → `source:session` of the command-line agent that answered for it.
    """

    key: str = ""
    provider: str = ""
    model: str = ""
    superseded_by: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A row of a session in a database.

    Attributes:
        session_id: The session.
        seq: Its place within it.
        row: The row.
        stored_ns: When it was stored, where that is known.
        place: A name that no other row of the file has.
    """

    session_id: str
    seq: int
    row: Row
    stored_ns: int | None
    place: str


class Store:
    """An agent's database, open for reading."""

    def __init__(self, path: str) -> None:
        """Open it.

        Raises:
            LogNotReadable: It cannot be opened as a database.
        """
        self._path = path
        self._name = os.path.basename(path)
        self._connection = open_database(path)
        self._columns: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()

    def problem(self, detail: str, kind: str = "bad_database") -> Problem:
        """Name something that is wrong with it."""
        return Problem(path=self._path, line=0, offset=0, kind=kind, detail=detail)

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with these columns."""
        if table not in self._columns:
            found = self._connection.execute(f"PRAGMA table_info({table})")  # table: a word of ours
            self._columns[table] = frozenset(str(row[1]) for row in found)
        return bool(self._columns[table]) and self._columns[table].issuperset(columns)

    def is_openclaw(self) -> bool:
        """Whether it is an agent's database at all."""
        return self.has("transcript_events", "session_id", "seq", "event_json")

    def names(self) -> list[str]:
        """Return the ids of its sessions, sorted.

        Raises:
            sqlite3.DatabaseError: It is damaged.
        """
        tables = ["transcript_events"] if self.is_openclaw() else []
        tables += [table for table in _ARCHIVES if self.has(table, "session_id", "encoding", "archive_blob")]
        rows = (row for table in tables for row in self._connection.execute(f"SELECT DISTINCT session_id FROM {table}"))  # noqa: S608 - words of ours
        return sorted({row[0] for row in rows if isinstance(row[0], str)})

    def known(self) -> dict[str, Known]:
        """Return what it knows of its sessions, by id; what cannot be read is left out."""
        sessions: dict[str, Known] = {}
        with suppress(sqlite3.DatabaseError):  # the rows will tell the damage
            for table in ("session_nodes", "session_entries"):
                if self.has(table, "session_key", "entry_json"):
                    entries = self._connection.execute(f"SELECT session_key, entry_json FROM {table}")  # noqa: S608 - a word of ours
                    sessions |= dict(_read_entries((key, _first_object(text)) for key, text in entries))
            for table in ("session_windows", "sessions"):
                if self.has(table, "session_id"):
                    wanted = [c if self.has(table, c) else "NULL" for c in ("session_key", "model_provider", "model")]
                    for row in self._connection.execute(f"SELECT session_id, {', '.join(wanted)} FROM {table}"):  # noqa: S608 - words of ours
                        entry = sessions.get(row[0], Known())
                        key, provider, model = (value if isinstance(value, str) else "" for value in row[1:])
                        sessions[row[0]] = Known(
                            key=key or entry.key,
                            provider=provider or entry.provider,
                            model=model or entry.model,
                            superseded_by=entry.superseded_by,
                        )
        return sessions

    def rows(self, session_id: str | None = None) -> Iterator[StoredRow | Problem]:
        """Yield the rows of one session, or of all: first those put aside, then the present ones, in their order."""
        try:
            if not self.is_openclaw():
                yield self.problem("no transcript_events: not a database of OpenClaw")
                return
            for table in _ARCHIVES:
                if self.has(table, "session_id", "encoding", "archive_blob"):
                    yield from self._archived(table, session_id)
            yield from self._present(session_id)
        except sqlite3.DatabaseError as error:
            yield self.problem(f"{error}; the rows before it count")

    def _archived(self, table: str, session_id: str | None) -> Iterator[StoredRow | Problem]:
        sql = f"SELECT session_id, encoding, archive_blob FROM {table}"  # noqa: S608 - a word of ours
        where, given = _where(session_id)
        for number, (owner, encoding, blob) in enumerate(self._connection.execute(sql + where, given)):
            if not isinstance(owner, str) or not isinstance(blob, bytes | str):
                continue  # a cold archive may lie in a file, which is a log of its own
            data = _as_bytes(blob)
            if encoding == "zstd":
                data, failure = unpack(data, MAX_ARCHIVE)
                if failure:
                    yield self.problem(f"{table}, session {owner}: {failure}", "bad_compression")
            for seq, line in enumerate(data.split(b"\n")):
                yield from self._decoded(line, owner, seq, None, f"{self._name}@{table}{number}:{owner}:{seq}")

    def _present(self, session_id: str | None) -> Iterator[StoredRow | Problem]:
        packed = "event_zstd" if self.has("transcript_events", "event_zstd") else "NULL"
        stored = "created_at" if self.has("transcript_events", "created_at") else "NULL"
        sql = f"SELECT session_id, seq, event_json, {packed}, {stored} FROM transcript_events"  # noqa: S608 - words of ours
        where, given = _where(session_id)
        for owner, seq, text, blob, created in self._connection.execute(
            f"{sql}{where} ORDER BY session_id, seq", given
        ):
            if not isinstance(owner, str):
                yield self.problem("a row of transcript_events without a session", "bad_envelope")
                continue
            data, failure = _as_bytes(text), ""
            if text is None and isinstance(blob, bytes):
                data, failure = unpack(blob, MAX_EVENT)
            if failure or not data.strip():
                yield self.problem(f"session {owner}, row {seq}: {failure or 'empty'}", "bad_compression")
                continue
            created_ns = created * 1_000_000 if type(created) is int and 0 < created < 2**43 else None
            number = seq if type(seq) is int else 0
            yield from self._decoded(data, owner, number, created_ns, f"{self._name}@{owner}:{seq}")

    def _decoded(
        self, data: bytes, session_id: str, seq: int, stored_ns: int | None, place: str
    ) -> Iterator[StoredRow | Problem]:
        for item in objects_in(data):
            if isinstance(item, Flaw):
                if item.severity != "info":
                    yield self.problem(f"session {session_id}, row {seq}: {item.detail}", item.kind)
            else:
                yield StoredRow(session_id=session_id, seq=seq, row=item, stored_ns=stored_ns, place=place)


def _where(session_id: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if session_id is None else (" WHERE session_id = ?", (session_id,))


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else b""


def objects_in(data: bytes) -> Iterator[Row | Flaw]:
    """Yield the objects in a line, and flaws for what is none."""
    if not data.strip(b"\x00\r\n\t "):
        return
    try:
        value = orjson.loads(data)
    except ValueError:
        for item in find_objects(data):
            yield item if isinstance(item, Flaw) else item[0]
        return
    if isinstance(value, dict):
        yield value
    else:
        yield Flaw(kind="not_object", detail=f"a JSON {type(value).__name__} is no row")


def unpack(data: bytes, limit: int) -> tuple[bytes, str]:
    """Return what a zstd frame holds, and why it is not all of it; "" when it is.

    Raises:
        MissingExtra: No decoder is installed.
    """
    try:
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdError, ZstdFile  # noqa: PLC0415 - only for packed rows
        else:
            from backports.zstd import ZstdError, ZstdFile  # noqa: PLC0415 - only for packed rows
    except ImportError as error:
        raise MissingExtra("reading OpenClaw's packed rows needs: pip install backports.zstd") from error
    pieces, size = [], 0
    with ZstdFile(io.BytesIO(data), "rb") as file:
        try:
            while size <= limit and (piece := file.read1(1 << 20)):
                pieces.append(piece)
                size += len(piece)
        except (EOFError, OSError, ValueError, ZstdError) as error:
            return b"".join(pieces), f"the compressed data are damaged ({error})"
    return b"".join(pieces), f"unpacks to more than {limit} bytes" if size > limit else ""


def read_cli_sessions(entry: Row) -> dict[str, str]:
    """Return provider → `source:session` for the command-line agents that answered for a session of the index."""
    found: dict[str, str] = {}
    plain, bindings = entry.get("cliSessionIds"), entry.get("cliSessionBindings")
    for provider, source in _CLI.items():
        bound = bindings.get(provider) if isinstance(bindings, Mapping) else None
        for value in (
            bound.get("sessionId") if isinstance(bound, Mapping) else None,
            plain.get(provider) if isinstance(plain, Mapping) else None,
            entry.get("claudeCliSessionId") if provider == "claude-cli" else None,
        ):
            if isinstance(value, str) and value:
                found.setdefault(provider, f"{source}:{value}")
    return found


def indexes_of(path: str) -> tuple[str, ...]:
    """Return where the index of a log's sessions may be; the first that is there is it."""
    folder = os.path.dirname(os.path.abspath(path))
    above = os.path.dirname(folder)
    places = dict.fromkeys((folder, above, os.path.join(above, "sessions")))
    return tuple(os.path.join(place, "sessions.json") for place in places)


def known_beside(path: str, session_id: str) -> Known:
    """Return what the index of sessions beside a JSONL log says of its session; nothing where there is none."""
    for index in indexes_of(path):
        status = files.stat_path(index)
        if status is not None:
            return _index(index, status.st_size, status.st_mtime_ns).get(session_id, Known())
    return Known()


@lru_cache(maxsize=8)  # a folder has one index for all its logs
def _index(path: str, size: int, mtime_ns: int) -> dict[str, Known]:
    del mtime_ns
    try:
        data = files.read_small(path, _MAX_INDEX) if size <= _MAX_INDEX else None
    except LogNotReadable:
        return {}
    index = _first_object(data)
    return dict(_read_entries(index.items()))


def _first_object(data: Any) -> Row:
    found = next(iter(objects_in(_as_bytes(data))), None)
    return found if isinstance(found, Mapping) else {}


def _read_entries(entries: Iterable[tuple[Any, Any]]) -> Iterator[tuple[str, Known]]:
    """Read session key → entry, as in `sessions.json` and in the database: (session id, what is known)."""
    for key, entry in entries:
        if isinstance(entry, Mapping) and isinstance(entry.get("sessionId"), str):
            provider, model = (read_name(entry.get(name)) or "" for name in ("modelProvider", "model"))
            superseded_by = read_cli_sessions(entry)
            name = key if isinstance(key, str) else ""
            yield entry["sessionId"], Known(key=name, provider=provider, model=model, superseded_by=superseded_by)


def is_database(path: str, head: bytes) -> bool:
    """Tell whether a file is an agent's database: by the beginning, or by asking it."""
    if not head.startswith(MAGIC):
        return False
    if b"transcript_events" in head and b"event_json" in head:
        return True
    try:
        with closing(Store(path)) as store:
            return store.is_openclaw()
    except (LogNotReadable, sqlite3.DatabaseError):
        return False
