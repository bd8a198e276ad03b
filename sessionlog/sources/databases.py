"""Databases: what sources that read an agent's SQLite database share.

Tables and columns come and go from version to version, so a missing column reads as NULL and a missing table as an
empty one. What is damaged or locked ends the rows of a query and is noted; only a database that cannot be opened at all
raises. A database is opened as `reader.database` does it: read-only, without leaving a trace.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec import Struct

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.reader.database import open_database
from sessionlog.sources.kit import decode_object
from sessionlog.sources.typed import Typed
from sessionlog.sources.values import name

T = TypeVar("T")
Cells = tuple[Any, ...]

MAGIC = b"SQLite format 3\x00"
"""How a database begins."""

_BROKEN = (sqlite3.Error, UnicodeDecodeError)  # a message of SQLite's that quotes damaged names is no UTF-8


class Database:
    """A database that is open for reading; to be used in a `with` statement."""

    def __init__(self, path: str) -> None:
        """Open it.

        Raises:
            LogNotReadable: Missing, no database, locked, or no permission.
        """
        self.path = path
        self._problems: list[Problem] = []
        self._noted: set[tuple[str, str]] = set()
        self._columns: dict[str, frozenset[str]] = {}
        try:
            self._connection = open_database(path)
        except UnicodeDecodeError as error:
            raise LogNotReadable(f"{path}: the database is damaged") from error

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
        """Return the columns of a table; none where there is no such table."""
        known = self._columns.get(table)
        if known is None:
            known = frozenset(str(cells[1]) for cells in self.rows(f"PRAGMA table_info({table})"))
            self._columns[table] = known
        return known

    def rows(self, query: str, *values: Any, has_blobs: bool = False) -> Iterator[Cells]:
        """Yield the rows of a query, up to where the database is damaged or locked.

        A blob is read as text, unless the query is of some that are none (`has_blobs`).
        """
        try:
            with closing(self._connection.execute(query, values)) as cursor:
                for cells in cursor:
                    yield cells if has_blobs or bytes not in map(type, cells) else _as_texts(cells)
        except _BROKEN as error:
            self.note("bad_database", str(error))

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
    """Return the tables of a file that begins with `head`; none for what is no database, or cannot be opened."""
    if not head.startswith(MAGIC):
        return frozenset()
    try:
        with Database(path) as database:
            return database.tables()
    except LogNotReadable:
        return frozenset()


def has_columns(path: str, head: bytes, wanted: Mapping[str, Iterable[str]]) -> bool:
    """Whether a file that begins with `head` is a database whose tables have these columns."""
    if not head.startswith(MAGIC):
        return False
    try:
        with Database(path) as database:
            return all(database.columns(table) >= set(names) for table, names in wanted.items())
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
