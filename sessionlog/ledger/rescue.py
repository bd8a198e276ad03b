"""Rescue: what a damaged ledger still tells, brought into a new one.

Each log's rows are read from both ends, up to the damage; a row that no ledger would hold is left behind. What is
derived is not brought: it is computed anew. A log whose own row is lost is known again by what it told of its session.
Where a page of the file's schema is lost, those of a new ledger stand in for them: the same statements made both.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sessionlog import files
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import stored_path
from sessionlog.ledger.rows import Row
from sessionlog.ledger.schema import CALL, FILE, LABEL, LIMIT, NAME, RESPONSE, SESSION, insert
from sessionlog.ledger.sessions import facts_of, facts_text
from sessionlog.ledger.sync import GONE
from sessionlog.sources.record import ScannedSession

_PAGE, _HEAD, _COUNT = 4096, 100, 28
"""Bytes of a page, of the head of the first one, and where in that the number of pages stands."""

_INNER = 5
"""What the tree of a page begins with that holds no rows, but the numbers of those below it."""

_UNKNOWN = "unknown"
_TOLD = ("file_id", "session_id", "n", "facts")
_TABLES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("files", ("id", *FILE), "id"),
    ("labels", ("id", *LABEL), "id"),
    ("names", ("id", *NAME), "id"),
    ("sessions", SESSION, "id"),
    ("limits", LIMIT, "rowid"),
)
_OF_FILES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("log_sessions", _TOLD, "session_id, n"),
    ("responses", RESPONSE, "n"),
    ("calls", CALL, "n"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescued:
    """What was brought into the new ledger.

    Attributes:
        files: Logs.
        records: Responses.
        calls: Tool calls.
        lost: Rows that were there and could not be read, as far as can be told.
    """

    files: int
    records: int
    calls: int
    lost: int


def rescue(path: str, book: Book) -> Rescued:
    """Bring all that can be read of a damaged file into an empty ledger; derived tables are not settled.

    The file is one that nobody else has open; the pages of its schema may be mended to read the others.
    """
    connection = book.connection
    old = _open(path, connection.serialize())
    connection.execute("BEGIN IMMEDIATE")
    try:
        lost = sum(_bring(old, connection, table, columns, order) for table, columns, order in _TABLES)
        for table, columns, order in _OF_FILES:
            for file_id in _file_ids(old, connection, table):
                lost += _bring(old, connection, table, columns, order, f"WHERE file_id = {file_id}")
        _put_right(connection)
        counts = [connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in _COUNTED]  # noqa: S608 - names of the schema
        book.commit()
    finally:
        old.close()
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return Rescued(files=counts[0], records=counts[1], calls=counts[2], lost=lost)


_COUNTED = ("files", "responses", "calls")


def _open(path: str, new: bytes) -> sqlite3.Connection:
    """Open a damaged file, if need be with the head, or all, of a new ledger's first page, or all of its schema."""
    old = _connect(path)
    for end, below in ((_HEAD, ()), (_PAGE, ()), (_PAGE, _below(new))):
        if _is_open(old):
            break
        old.close()
        with files.open_log(path) as file:
            content = file.read()
        pages = (len(content) // _PAGE).to_bytes(4, "big")
        head = new[:_COUNT] + pages + bytes(8) + new[_COUNT + 12 : end]  # no page is free, as far as is known
        mended = bytearray(head + content[end:])
        for page in below:
            mended[(page - 1) * _PAGE : page * _PAGE] = new[(page - 1) * _PAGE : page * _PAGE]
        files.replace_file(path, [bytes(mended)])
        old = _connect(path)
    return old


def _below(new: bytes) -> tuple[int, ...]:
    """The pages of the schema behind a ledger's first one, in which their numbers stand where it is an inner page."""
    if new[_HEAD] != _INNER:
        return ()
    count = int.from_bytes(new[_HEAD + 3 : _HEAD + 5], "big")
    places = (_HEAD + 12 + 2 * n for n in range(count))
    cells = [int.from_bytes(new[place : place + 2], "big") for place in places]
    return tuple(int.from_bytes(new[at : at + 4], "big") for at in (_HEAD + 8, *cells))


def _connect(path: str) -> sqlite3.Connection:
    old = sqlite3.connect(path, isolation_level=None)
    old.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return old


def _is_open(old: sqlite3.Connection) -> bool:
    try:
        return old.execute("SELECT 1 FROM sqlite_schema WHERE name = 'responses'").fetchone() is not None
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _file_ids(old: sqlite3.Connection, connection: sqlite3.Connection, table: str) -> list[int]:
    """The logs that a table may tell of: those that are known, and those whose own rows are lost."""
    known = {row[0] for row in connection.execute("SELECT id FROM files UNION SELECT file_id FROM log_sessions")}
    found, _ = _read(old, f"SELECT DISTINCT file_id FROM {table} ORDER BY file_id {{}}")  # noqa: S608 - names of the schema
    return sorted(known | {row[0] for row in found if isinstance(row[0], int)})


def _bring(
    old: sqlite3.Connection,
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    order: str,
    where: str = "",
) -> int:
    """Bring the readable rows of a table; return how many could not be."""
    ordered = ", ".join(f"{column} {{0}}" for column in order.split(", "))
    rows, whole = _read(old, f"SELECT {', '.join(columns)} FROM {table} {where} ORDER BY {ordered}")  # noqa: S608 - names of the schema
    statement = insert(table, tuple(columns))
    refused = sum(not (_is_sound(table, row) and _enter(connection, statement, row)) for row in rows)
    return refused + (not whole)


def _read(old: sqlite3.Connection, sql: str) -> tuple[list[Row], bool]:
    """Rows from the first to the damage, and from the last back to it; and whether there was none."""
    rows: list[Row] = []
    for direction in ("ASC", "DESC"):
        known = set(map(repr, rows))
        try:
            rows.extend(row for row in old.execute(sql.format(direction)) if repr(row) not in known)
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            continue
        return rows, direction == "ASC"
    return rows, False


def _is_sound(table: str, row: Row) -> bool:
    if table == "responses":
        return bool(isinstance(row[1], int) and row[1] >= 0)  # those below 0 are put together anew
    if table != "log_sessions":
        return True
    try:
        facts_of(row[3])
    except (ValueError, TypeError, KeyError):
        return False
    return True


def _enter(connection: sqlite3.Connection, statement: str, row: Row) -> bool:
    try:
        connection.execute(statement, row)
    except sqlite3.Error:
        return False
    return True


def _put_right(connection: sqlite3.Connection) -> None:
    """Give what lost its session, log, label or name another one; problems are those of logs that are there."""
    ask = connection.execute
    for file_id, session_id in ask(_UNTOLD).fetchall():
        facts = _facts(ask(_SESSION, (session_id,)).fetchone())
        if facts:
            _enter(connection, insert("log_sessions", _TOLD), (file_id, session_id, 0, facts))
        else:
            ask("DELETE FROM responses WHERE file_id = ? AND session_id = ?", (file_id, session_id))
            ask("DELETE FROM calls WHERE file_id = ? AND session_id = ?", (file_id, session_id))
    ask("UPDATE files SET problems = 0, named = '[]', settled = 0")
    orphans = ask(
        "SELECT file_id, facts FROM log_sessions WHERE file_id NOT IN (SELECT id FROM files) ORDER BY 1, n"
    ).fetchall()
    for file_id, (path, source) in _first((number, _place(facts)) for number, facts in orphans).items():
        ask("DELETE FROM files WHERE path = ? AND id NOT IN (SELECT file_id FROM log_sessions)", (stored_path(path),))
        values = (file_id, stored_path(path), source, 0, 0, 0, 0, 0, "", 0, 0, 0, "", "", GONE, 1, 0, "[]")
        _enter(connection, insert("files", ("id", *FILE)).replace("OR REPLACE", "OR IGNORE"), values)
    for table, column, names in (("labels", "label_id", LABEL), ("names", "name_id", NAME)):
        rows = "responses" if table == "labels" else "calls"
        missing = f"SELECT DISTINCT {column} FROM {rows} WHERE {column} NOT IN (SELECT id FROM {table})"  # noqa: S608 - names of the schema
        for (number,) in ask(missing).fetchall():
            _enter(connection, insert(table, ("id", *names)), (number, *(_UNKNOWN for _ in names)))
    for table in ("log_sessions", "responses", "calls", "limits"):
        ask(f"DELETE FROM {table} WHERE file_id NOT IN (SELECT id FROM files)")  # noqa: S608 - names of the schema


_UNTOLD = """SELECT file_id, session_id FROM responses UNION SELECT file_id, session_id FROM calls
    EXCEPT SELECT file_id, session_id FROM log_sessions"""
_SESSION = """SELECT source, session, path, place, parent, part, start_ns, last_ns, end_status, project, harness, route,
    duration_ms, prompt, error, metadata, turns, last_turn_ns, counted FROM sessions WHERE id = ?"""


def _facts(row: Row | None) -> str:
    """What a log told of a session, as far as the session's own row says it; empty if that is lost, too."""
    if row is None:
        return ""
    (
        source,
        name,
        path,
        place,
        parent,
        part,
        *times,
        status,
        project,
        harness,
        route,
        took,
        prompt,
        error,
        more,
        turns,
        last_turn_ns,
        counts,
    ) = row
    try:
        return facts_text(
            ScannedSession(
                source=source, session_id=name, path=path, place=place, parent=parent, part=bool(part),
                start_ns=times[0], last_ns=times[1], status=status, project=project, harness=harness, route=route,
                duration_ms=took, prompt=prompt, error=error, metadata=json.loads(more), turns=turns,
                last_turn_ns=last_turn_ns, counted=bool(counts),
            )
        )  # fmt: skip
    except (ValueError, TypeError):
        return ""


def _place(facts: str) -> tuple[str, str]:
    told = facts_of(facts)
    return told.path, told.source


def _first(pairs: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    first: dict[int, Any] = {}
    for number, value in pairs:
        first.setdefault(number, value)
    return first
