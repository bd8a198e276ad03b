"""Databases: what sources that read an agent's SQLite database share.

Tables and columns come and go from version to version, so a missing column reads as NULL and a missing table as an
empty one. What is damaged or locked ends the rows of a query and is noted; only a database that cannot be opened at all
raises. A database is opened as `reader.database` does it: read-only, without leaving a trace.

Only what plain tables store is read. A view, a virtual table or a computed column in its place would run whatever its
SQL computes, which may never end; views are noted, and empty. A query that yields no row for a while is ended, too.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec import Struct

from sessionlog.errors import LogLocked, LogNotReadable, Problem
from sessionlog.reader.database import LOCKED, is_lock, open_database
from sessionlog.sources.kit import decode_object
from sessionlog.sources.typed import Typed
from sessionlog.sources.values import name

T = TypeVar("T")
Cells = tuple[Any, ...]

MAGIC = b"SQLite format 3\x00"
"""How a database begins."""

LONGEST_WAIT = 10.0
"""Seconds without a row after which a query is ended."""

_BROKEN = (sqlite3.Error, UnicodeDecodeError)  # a message of SQLite's that quotes damaged names is no UTF-8
_STEPS = 20_000  # of SQLite's machine, a millisecond or less, between two looks at the clock
_COMPUTING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION})
_CATALOGUES = frozenset({"sqlite_master", "sqlite_schema"})
_PLAIN = "SELECT name, type = 'table' AND rootpage > 0 FROM sqlite_master WHERE type IN ('table', 'view')"


def _authorize(
    columns: Mapping[str, frozenset[str]], action: int, first: str | None, second: str | None, _: object, inside: object
) -> int:
    """Allow SQLite only what reads these columns of tables; `inside` names the view that something is a part of."""
    if inside is not None:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_READ:
        table = str(first).lower()
        stored = columns.get(table, frozenset())
        is_known = table in _CATALOGUES or (bool(stored) and second in {"", "ROWID", *stored})
    else:
        is_known = action in _COMPUTING or (action == sqlite3.SQLITE_PRAGMA and first == "table_info")
    return sqlite3.SQLITE_OK if is_known else sqlite3.SQLITE_DENY


class _Deadline:
    """How long SQLite has been working on the next row; the time that a caller takes for a row does not count."""

    def __init__(self) -> None:
        self._since: float | None = None

    def restart(self) -> None:
        self._since = None

    def is_over(self) -> bool:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        return now - self._since >= LONGEST_WAIT


class Database:
    """A database that is open for reading; to be used in a `with` statement."""

    def __init__(self, path: str) -> None:
        """Open it.

        Raises:
            LogLocked: Another program holds its lock.
            LogNotReadable: Missing, no database, or no permission.
        """
        self.path = path
        self._problems: list[Problem] = []
        self._noted: set[tuple[str, str]] = set()
        self._columns: dict[str, frozenset[str]] = {}
        self._plain: dict[str, bool] | None = None
        try:
            self._connection = open_database(path)
        except UnicodeDecodeError as error:
            raise LogNotReadable(f"{path}: the database is damaged") from error
        self._deadline = _Deadline()
        self._connection.set_progress_handler(self._deadline.is_over, _STEPS)
        self._connection.set_authorizer(partial(_authorize, self._columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._connection.close()

    def note(self, kind: str, detail: str) -> None:
        """Note a problem of the database, once: each query may meet the same damage."""
        if (kind, detail) not in self._noted:
            self._noted.add((kind, detail))
            self._problems.append(Problem(path=self.path, kind=kind, detail=detail))

    def problems(self) -> Iterator[Problem]:
        """Yield what has been noted since this was last asked."""
        found, self._problems = self._problems, []
        yield from found

    def tables(self) -> frozenset[str]:
        """Return the names of its tables."""
        return frozenset(str(table) for (table,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table, without those that are computed; none where there is no such table."""
        known = self._columns.get(table.lower())
        if known is None:
            columns = self.rows(f"PRAGMA table_info({table})") if self._is_table(table) else ()
            known = self._columns[table.lower()] = frozenset(str(cells[1]) for cells in columns)
        return known

    def _is_table(self, name: str) -> bool:
        """Whether this is a plain table; a view or a virtual table of that name is noted."""
        if self._plain is None:
            self._plain = {str(found).lower(): bool(is_plain) for found, is_plain in self.rows(_PLAIN)}
        is_plain = self._plain.get(name.lower())
        if is_plain is False:
            self.note("bad_database", f"{name} is a view or a virtual table, and only plain tables are read")
        return bool(is_plain)

    def rows(self, query: str, *values: Any, has_blobs: bool = False) -> Iterator[Cells]:
        """Yield the rows of a query, up to where the database is damaged or locked, or takes too long for a row.

        A blob is read as text, unless the query is of some that are none (`has_blobs`).
        """
        self._deadline.restart()
        try:
            with closing(self._connection.execute(query, values)) as cursor:
                for cells in cursor:
                    yield cells if has_blobs or bytes not in map(type, cells) else _as_texts(cells)
                    self._deadline.restart()
        except _BROKEN as error:
            self.note("bad_database", self._reason(error))

    def _reason(self, error: Exception) -> str:
        if is_lock(error):
            return LOCKED
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_AUTH:
            return f"{error}: only what plain tables store is read"
        if code != sqlite3.SQLITE_INTERRUPT:
            return str(error)
        if not self._deadline.is_over():
            raise KeyboardInterrupt from error  # it came while SQLite worked, which only ends the query for it
        return f"a query was ended after {LONGEST_WAIT:g} seconds without a row"

    def select(
        self, table: str, names: Iterable[str], rest: str = "", *values: Any, has_blobs: bool = False
    ) -> Iterator[Cells]:
        """Yield columns of a table, None for those that it lacks; `rest` is what follows the table in the query."""
        have = self.columns(table)
        if have:
            cells = ", ".join(column if column in have else "NULL" for column in names)
            yield from self.rows(f"SELECT {cells} FROM {table} {rest}", *values, has_blobs=has_blobs)  # noqa: S608 - names of the source's own

    def records(self, table: str, names: Sequence[str], rest: str = "", *values: Any) -> Iterator[dict[str, Any]]:
        """Yield what `select` yields, by the names of the columns."""
        for cells in self.select(table, names, rest, *values):
            yield dict(zip(names, cells, strict=True))

    def decode(self, typed: Typed[T], value: Any, place: str) -> T | None:
        """Return a column's JSON object by type; None for what is none, which is noted with its place."""
        found = decode_object(typed, value)
        if found[0] is None:
            self.note("not_json", f"{place}: {found[1]}")
        return found[0]


def _as_texts(cells: Cells) -> Cells:
    return tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in cells)


def tables_of(path: str, head: bytes) -> frozenset[str]:
    """Return the tables of a file that begins with `head`; none for what is no database, or cannot be opened.

    Raises:
        LogLocked: Another program holds its lock, so its tables are unknown.
    """
    if not head.startswith(MAGIC):
        return frozenset()
    try:
        with Database(path) as database:
            return database.tables()
    except LogLocked:
        raise
    except LogNotReadable:
        return frozenset()


def has_columns(path: str, head: bytes, wanted: Mapping[str, Iterable[str]]) -> bool:
    """Whether a file that begins with `head` is a database whose tables have these columns.

    Raises:
        LogLocked: Another program holds its lock, so its tables are unknown.
    """
    if not head.startswith(MAGIC):
        return False
    try:
        with Database(path) as database:
            return all(database.columns(table) >= set(names) for table, names in wanted.items())
    except LogLocked:
        raise
    except LogNotReadable:
        return False


def root_of(session_id: str, parents: Mapping[str, str]) -> str:
    """Return the session at the top of those that a sub-agent's session works for, as far as they are known."""
    seen = {session_id}
    while (parent := parents.get(session_id, "")) in parents and parent not in seen:
        seen.add(parent)
        session_id = parent
    return session_id


class TableRow(Struct):
    """A row of a table, by the names of its columns, and its session.

    Attributes:
        table: The table, or what else the source calls the row.
        values: Its columns.
        session: The session that it is, or belongs to.
        root: The session at the top of that one.
    """

    table: str
    values: dict[str, Any]
    session: str
    root: str

    @property
    def thread(self) -> str:
        """The thread of a sub-agent's session within its root; "" for a root."""
        return "" if self.session == self.root else self.session

    def row(self, table: str, values: dict[str, Any]) -> TableRow:
        """Return a row of the same session."""
        return TableRow(table, values, self.session, self.root)


def read_sessions(
    database: Database,
    columns: Sequence[str],
    order: str,
    parent_of: Callable[[dict[str, Any]], str] = lambda session: name(session["parent_session_id"]),
) -> list[TableRow]:
    """Return the rows of the table `sessions`; `parent_of` returns whose sub-agent's session one is, "" for others."""
    sessions = {str(session["id"]): session for session in database.records("sessions", columns, order)}
    parents = {session_id: parent_of(session) for session_id, session in sessions.items()}
    return [TableRow("sessions", session, id_, root_of(id_, parents)) for id_, session in sessions.items()]


def name_roots(path: str, sessions_of: Callable[[Database], list[TableRow]]) -> list[str]:
    """Return the sessions at the top of those in a database, each once, in their order."""
    with Database(path) as database:
        return list(dict.fromkeys(session.root for session in sessions_of(database)))
