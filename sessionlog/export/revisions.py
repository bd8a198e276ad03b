"""Revisions: what a destination has of this machine's rows, in a small database beside the state of other exports.

The destination is the truth, its manifests list what is there; the database only spares reading it. An export that was
killed has left no manifest, or one that the database does not know, which is then read. If a manifest is missing that
the database knows, the destination was emptied or another one took its place: then all of it is read again.

Everything happens in one transaction, so that two exports of one machine cannot run at the same time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from sessionlog import files
from sessionlog.errors import NotExported
from sessionlog.export.ledger_rows import LedgerRow

PAGE = 500
"""Rows that are compared at once."""

_TABLES = """
CREATE TABLE IF NOT EXISTS manifests (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS written (
    kind TEXT NOT NULL, id INTEGER NOT NULL, revision INTEGER NOT NULL, deleted INTEGER NOT NULL, day INTEGER,
    state INTEGER NOT NULL, standing TEXT NOT NULL, costs TEXT NOT NULL, PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE TEMP TABLE present (kind TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (kind, id)) STRICT, WITHOUT ROWID;
CREATE TEMP TABLE moved (kind TEXT NOT NULL, id INTEGER NOT NULL, revision INTEGER NOT NULL, day INTEGER) STRICT;
"""
_WRITE = """
INSERT INTO written VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET revision = excluded.revision,
    deleted = excluded.deleted, day = excluded.day, state = excluded.state, standing = excluded.standing,
    costs = excluded.costs
WHERE excluded.revision > revision
"""
_LOST = """
SELECT w.id, w.revision + 1, w.day FROM written w WHERE w.kind = ? AND NOT w.deleted
    AND NOT EXISTS (SELECT 1 FROM present p WHERE p.kind = w.kind AND p.id = w.id)
"""
_WAIT_SECONDS = 1.0


class Written(NamedTuple):
    """What a destination has of a row: its latest revision.

    Attributes:
        id: The row's id.
        revision: From 1.
        deleted: It is a tombstone.
        day: The day in whose folder it is; None for that without a date.
        state: The hash of its values.
        standing: As in `LedgerRow`, as JSON.
        costs: As in `LedgerRow`, as JSON: they stay as they were while the state does.
    """

    id: int
    revision: int
    deleted: bool
    day: int | None
    state: int
    standing: str
    costs: str

    @classmethod
    def of(
        cls,
        record: int,
        revision: int,
        day: int | None,
        state: int,
        standing: dict[str, Any],
        costs: dict[str, Any],
        *,
        deleted: bool = False,
    ) -> Self:
        """Return a revision; a tombstone has no values."""
        known = ({}, {}) if deleted else (standing, costs)
        texts = (orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode() for value in known)
        return cls(record, revision, deleted, day, state, *texts)


class Revisions:
    """What one destination has of one machine.

    Args:
        path: The database; it is created with its folders, for the user alone.

    Raises:
        NotExported: It cannot be opened, or another export to the same destination is running.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with self._named():
            files.make_directories(os.path.dirname(path))
            files.make_private(path)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_SECONDS)
            self._connection.executescript(_TABLES)
            self._connection.execute("BEGIN IMMEDIATE")

    def unknown_manifests(self, found: Sequence[str]) -> list[str]:
        """Return those of a destination's manifests that have to be read."""
        with self._named():
            known = {name for (name,) in self._connection.execute("SELECT name FROM manifests")}
            if not known <= set(found):
                self._connection.execute("DELETE FROM manifests")
                self._connection.execute("DELETE FROM written")
                known = set()
        return [name for name in found if name not in known]

    def add_manifest(self, name: str) -> None:
        """Note that all rows of a manifest are known."""
        with self._named():
            self._connection.execute("INSERT OR IGNORE INTO manifests VALUES (?)", (name,))

    def add(self, kind: str, rows: Iterable[Written]) -> None:
        """Note rows of a table that the destination has; of two revisions of a row the higher one stays."""
        with self._named():
            self._connection.executemany(_WRITE, ((kind, *row) for row in rows))

    def changes(self, kind: str, rows: Sequence[LedgerRow]) -> list[tuple[LedgerRow, Written]]:
        """Return the selected rows that are new or have changed, and note them as written, with their revision.

        A row whose day has changed also gets a tombstone in the folder of its earlier day (see `tombstones`).
        """
        ids = ", ".join(str(row.id) for row in rows)
        with self._named():
            self._connection.executemany(
                "INSERT OR IGNORE INTO present VALUES (?, ?)", ((kind, row.id) for row in rows)
            )
            found = self._connection.execute(
                f"SELECT {', '.join(Written._fields)} FROM written WHERE kind = ? AND id IN ({ids})",  # noqa: S608 - numbers
                (kind,),
            )
            known = {row[0]: Written(*row) for row in found}
            changed = [
                (row, after)
                for row in rows
                if row.is_selected and (after := _revised(row, known.get(row.id))) is not None
            ]
            for row, after in changed:
                before = known.get(row.id)
                if before is not None and after.revision > before.revision + 1:
                    self._connection.execute(
                        "INSERT INTO moved VALUES (?, ?, ?, ?)", (kind, row.id, before.revision + 1, before.day)
                    )
        self.add(kind, [after for _, after in changed])
        return changed

    def tombstones(self, kind: str) -> list[Written]:
        """Return the tombstones of a table, by day: of rows that the ledger has no more, and of moved ones' old days.

        All rows of the ledger have to be given to `changes` before, selected or not.
        """
        with self._named():
            moved = self._connection.execute("SELECT id, revision, day FROM moved WHERE kind = ?", (kind,)).fetchall()
            lost = self._connection.execute(_LOST, (kind,)).fetchall()
        gone, left = (
            [Written.of(record, revision, day, 0, {}, {}, deleted=True) for record, revision, day in rows]
            for rows in (lost, moved)
        )
        self.add(kind, gone)
        return sorted(gone + left, key=lambda stone: (stone.day is None, stone.day or 0, stone.id))

    def commit(self) -> None:
        """Keep what was noted."""
        with self._named():
            self._connection.execute("COMMIT")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise NotExported("another export to the same place is running; try again when it has ended") from error
            raise NotExported(f"{self._path}: {error}") from error
        except (OSError, sqlite3.Error) as error:
            raise NotExported(
                f"{self._path}: {files.reason_of(error)}; without the file all is compared again"
            ) from error


def _revised(row: LedgerRow, before: Written | None) -> Written | None:
    """Return a row's next revision; None if the destination has it as it is."""
    now = Written.of(row.id, 1, row.day, row.state, row.standing, row.costs)
    if before is None:
        return now
    if before.deleted or before.state != now.state:
        has_moved = not before.deleted and before.day != row.day
        return now._replace(revision=before.revision + 1 + has_moved)
    if before.standing == now.standing:
        return None
    return before._replace(revision=before.revision + 1, standing=now.standing)
