"""Databases: reading an agent's SQLite database, for the sources that do.

Tables and columns differ between versions, so a missing column reads as NULL and a missing table as an empty one.
Damage or a lock ends the rows of a query and is noted; only a database that cannot be opened at all raises. A database
is opened by `reader.database`: read-only, and without creating files beside it.

Only stored values of plain tables are read. A view, a virtual table or a computed column would run its own SQL, which
may never end; these are noted and read as empty. A query that yields no row for a while is cancelled, too.
"""

from __future__ import annotations

import re
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
"""The first bytes of a database."""

LONGEST_WAIT = 10.0
"""Seconds without a row after which a query is cancelled."""

_BROKEN = (sqlite3.Error, UnicodeDecodeError)  # a message of SQLite's that quotes damaged names is no UTF-8
_STEPS = 20_000  # steps of SQLite's virtual machine, a millisecond or less, between two checks of the clock
_COMPUTING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION})
_CATALOGUES = frozenset({"sqlite_master", "sqlite_schema"})
_PLAIN = "SELECT name, type = 'table' AND rootpage > 0 FROM sqlite_master WHERE type IN ('table', 'view')"
_FROM = re.compile(r'\b(?:FROM|JOIN)\s+"?(\w+)')


def _authorize(
    columns: Mapping[str, frozenset[str]], action: int, first: str | None, second: str | None, _: object, inside: object
) -> int:
    """Authorise only reading these columns of tables; `inside` is the view that an access is a part of."""
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
    """The time that SQLite has taken for the next row; time between rows that the caller takes does not count."""

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
    """A database that is open for reading; use it in a `with` statement."""

    def __init__(self, path: str) -> None:
        """Open it.

        Raises:
            LogLocked: Another program holds its lock.
            LogNotReadable: It does not exist, is not a database, or may not be read.
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
        """Yield the problems noted since the last call."""
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
        return self._kind(name) is True

    def _is_view(self, name: str) -> bool:
        """Whether this is a view or a virtual table, which is noted."""
        return self._kind(name) is False

    def _kind(self, name: str) -> bool | None:
        """Whether a name is that of a plain table; None if nothing has it."""
        if self._plain is None:
            self._plain = {}  # what the query reads is no view
            self._plain = {str(found).lower(): bool(is_plain) for found, is_plain in self.rows(_PLAIN)}
        is_plain = self._plain.get(name.lower())
        if is_plain is False:
            self.note("bad_database", f"{name} is a view or a virtual table, and only plain tables are read")
        return is_plain

    def rows(self, query: str, *values: Any, has_blobs: bool = False) -> Iterator[Cells]:
        """Yield the rows of a query, until the database is damaged, locked, or takes too long for a row.

        Blobs are decoded as text, except with `has_blobs`.
        """
        if any(self._is_view(table) for table in _FROM.findall(query)):
            return  # newer versions of SQLite count the rows of some views without asking whether they may be read
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
            raise KeyboardInterrupt from error  # SQLite turns a Ctrl-C during a query into its own error
        return f"a query was ended after {LONGEST_WAIT:g} seconds without a row"

    def select(
        self, table: str, names: Iterable[str], rest: str = "", *values: Any, has_blobs: bool = False
    ) -> Iterator[Cells]:
        """Yield columns of a table, None for those that it lacks; `rest` follows the table's name in the query."""
        have = self.columns(table)
        if have:
            cells = ", ".join(column if column in have else "NULL" for column in names)
            yield from self.rows(f"SELECT {cells} FROM {table} {rest}", *values, has_blobs=has_blobs)  # noqa: S608 - names of the source's own

    def records(self, table: str, names: Sequence[str], rest: str = "", *values: Any) -> Iterator[dict[str, Any]]:
        """Yield what `select` yields, by the names of the columns."""
        for cells in self.select(table, names, rest, *values):
            yield dict(zip(names, cells, strict=True))

    def decode(self, typed: Typed[T], value: Any, place: str) -> T | None:
        """Decode a column's JSON object by type; None for anything else, which is noted with its place."""
        found = decode_object(typed, value)
        if found[0] is None:
            self.note("not_json", f"{place}: {found[1]}")
        return found[0]


def _as_texts(cells: Cells) -> Cells:
    return tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in cells)


def tables_of(path: str, head: bytes) -> frozenset[str]:
    """Return the tables of a file that begins with `head`; none if it is not a database, or cannot be opened.

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
    """Return the outermost known ancestor of a sub-agent's session; the session itself if it has none."""
    seen = {session_id}
    while (parent := parents.get(session_id, "")) in parents and parent not in seen:
        seen.add(parent)
        session_id = parent
    return session_id


class TableRow(Struct):
    """A row of a table, by the names of its columns, and its session.

    Attributes:
        table: The table, or another kind of row that the source defines.
        values: Its columns.
        session: The session that it is, or belongs to.
        root: The outermost ancestor of that session.
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
    """Return the rows of the table `sessions`; `parent_of` returns the parent of a sub-agent's session, else ""."""
    sessions = {str(session["id"]): session for session in database.records("sessions", columns, order)}
    parents = {session_id: parent_of(session) for session_id, session in sessions.items()}
    return [TableRow("sessions", session, id_, root_of(id_, parents)) for id_, session in sessions.items()]


def name_roots(path: str, sessions_of: Callable[[Database], list[TableRow]]) -> list[str]:
    """Return the sessions of a database that are not sub-agents', each once, in their order."""
    with Database(path) as database:
        return list(dict.fromkeys(session.root for session in sessions_of(database)))
