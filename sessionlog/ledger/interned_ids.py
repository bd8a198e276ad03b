"""Interned ids: the ids that rows of the ledger hold in place of names. An instance is valid for one transaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sessionlog.ledger.columns import Label, Name, Row, insert

SessionName = tuple[str, str, str]
"""(source, id, place): unique for a session."""

_KEPT = 8192  # ids of sessions and files that are kept in memory

_PLACEHOLDER = """INSERT INTO all_sessions (source, session, place, path, parent, part, project, harness, route, prompt,
    error, metadata, counted, archived) VALUES (?, ?, ?, '', '', 0, '', '', '', '', '', '{}', 0, 0)"""


class _Rows:
    """A table in which each distinct row is stored once, under an id."""

    def __init__(self, connection: sqlite3.Connection, table: str, row: type[Label | Name]) -> None:
        self._connection = connection
        self._insert = insert(table, ("id", *row._fields))
        rows = connection.execute(f"SELECT id, {', '.join(row._fields)} FROM {table}")  # noqa: S608 - names of the schema
        self.rows: dict[int, Any] = {number: row(*names) for number, *names in rows}
        self._ids: dict[Row, int] = {names: number for number, names in self.rows.items()}
        self._last = max(self.rows, default=0)

    def number(self, names: Row) -> int:
        known = self._ids.get(names)
        if known is None:
            known = self._last = self._last + 1
            self._connection.execute(self._insert, (known, *names))
            self._ids[names], self.rows[known] = known, names
        return known


class InternedIds:
    """Names by id and ids by name; new names are inserted.

    Attributes:
        label_id: A label → its number.
        label: The way back.
        name_id: A tool's names → their number.
        name: The way back.
        session_id: (source, id, place) of a session → its number.
        session: The way back, to its id.
        path: File's id → its path as bytes.
        has_new_sessions: A session was not known before this transaction.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        labels, names = _Rows(connection, "labels", Label), _Rows(connection, "names", Name)
        self.label_id: Callable[[Label], int] = labels.number
        self.label: Callable[[int], Label] = labels.rows.__getitem__
        self.name_id: Callable[[Name], int] = names.number
        self.name: Callable[[int], Name] = names.rows.__getitem__
        self.session_id = lru_cache(_KEPT)(self._session_id)
        self.session = lru_cache(_KEPT)(self._session)
        self.path = lru_cache(_KEPT)(self._path)
        self.has_new_sessions = False

    def _session_id(self, name: SessionName) -> int:
        """Return the number of a session, which may get its facts later."""
        sql = "SELECT id FROM all_sessions WHERE source = ? AND session = ? AND place = ?"
        row = self._connection.execute(sql, name).fetchone()
        if row is not None:
            return int(row[0])
        self.has_new_sessions = True
        return self._connection.execute(_PLACEHOLDER, name).lastrowid or 0

    def _session(self, number: int) -> str:
        row = self._connection.execute("SELECT session FROM all_sessions WHERE id = ?", (number,)).fetchone()
        return "" if row is None else str(row[0])

    def _path(self, number: int) -> bytes:
        row = self._connection.execute("SELECT path FROM files WHERE id = ?", (number,)).fetchone()
        return b"" if row is None else os.fsencode(row[0])
