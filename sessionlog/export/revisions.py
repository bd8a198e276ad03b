"""Revisions: what a destination has of this machine's rows, in a small database beside the state of other exports.

The destination is the truth, its newest manifest lists what is there; the database only spares reading it. An export
that was killed has left no manifest, or one that the database does not know, whose new files are then read. If files
are gone that the database knows, the destination was emptied or another one took its place: then all of it is read
again. The database also has the watermark: what of the ledger the last export has seen.

Everything happens in one transaction, and nothing is kept before `commit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from sessionlog.engine.place_manifest import File
from sessionlog.export.ledger_rows import LedgerRow
from sessionlog.export.manifests import Manifest
from sessionlog.export.state_database import StateDatabase
from sessionlog.ledger.parquet_schema import TABLES

PAGE = 1000
"""Rows that are compared at once."""

_ROWS = """CREATE TABLE IF NOT EXISTS rows_of_{table} (
    id INTEGER PRIMARY KEY, revision INTEGER NOT NULL, deleted INTEGER NOT NULL, month INTEGER, state INTEGER NOT NULL,
    standing INTEGER NOT NULL, estimate INTEGER, saved INTEGER, price_list TEXT, session INTEGER
) STRICT;
CREATE TEMP TABLE new_of_{table} AS SELECT * FROM rows_of_{table} LIMIT 0;
CREATE TEMP TABLE present_{table} (id INTEGER NOT NULL) STRICT;
"""
_TABLES = "CREATE TABLE IF NOT EXISTS known (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;" + (
    "".join(_ROWS.format(table=table) for table in TABLES)
)
_LOST = """
SELECT * FROM rows_of_{table} w WHERE NOT w.deleted AND {scope} AND w.id NOT IN (SELECT id FROM present_{table})
"""
_ADD = f"""INSERT INTO rows_of_{{table}} VALUES ({", ".join("?" * 10)}) ON CONFLICT DO UPDATE SET
    (revision, deleted, month, state, standing, estimate, saved, price_list, session) = (excluded.revision,
    excluded.deleted, excluded.month, excluded.state, excluded.standing, excluded.estimate, excluded.saved,
    excluded.price_list, excluded.session) WHERE excluded.revision > revision"""  # noqa: S608 - our tables
_CACHE_KB = 16_384


class Written(NamedTuple):
    """What a destination has of a row: its latest revision.

    Attributes:
        id: The row's id.
        revision: From 1.
        deleted: It is a tombstone.
        month: The month in whose folder it is (see `LedgerRow`); None for that without a time.
        state: The hash of its values.
        standing: That of `LedgerRow`, as bits.
        estimate: The cost at list prices, which stays as it was while the state does.
        saved: What the cache has saved at list prices.
        price_list: The version of these prices, also if they had none for the row; None if that is unknown.
        session: The ledger's number of its session; None if the row was read from the destination.
    """

    id: int
    revision: int
    deleted: bool
    month: int | None
    state: int
    standing: int
    estimate: int | None = None
    saved: int | None = None
    price_list: str | None = None
    session: int | None = None

    def tombstone(self) -> Written:
        """Return the next revision of a row that is gone."""
        return Written(self.id, self.revision + 1, True, self.month, 0, 0)


class Revisions(StateDatabase):
    """What one destination has of one machine.

    Args:
        path: The database; it is created with its folders, for the user alone.

    Raises:
        NotExported: It cannot be opened, or another export to the same destination is running.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, f"PRAGMA cache_size = -{_CACHE_KB}; {_TABLES}")

    @property
    def manifest(self) -> Manifest:
        """The newest manifest when the last export ended."""
        known = self._value("manifest")
        if known is None:
            return Manifest()
        return Manifest(tuple(known["names"]), known["number"], tuple(known["files"]), known["machine_name"])

    @property
    def watermark(self) -> dict[str, Any] | None:
        """What of the ledger the last export has seen; None after the destination was emptied."""
        known: dict[str, Any] | None = self._value("watermark")
        return known

    def unknown_files(self, newest: Manifest) -> list[File]:
        """Return those of a destination's files that have to be read, for `add`."""
        known = {file["path"] for file in self.manifest.files}
        if not known <= {file["path"] for file in newest.files}:
            known = set()
            with self._named():
                for table in TABLES:
                    self._connection.execute(f"DELETE FROM rows_of_{table}")  # noqa: S608 - our tables
                self._connection.execute("DELETE FROM known")
        return [file for file in newest.files if file["path"] not in known]

    def count(self) -> int:
        """Return the number of rows that the destination has, without tombstones."""
        with self._named():
            counts = (
                self._connection.execute(f"SELECT COUNT(*) FROM rows_of_{table} WHERE NOT deleted").fetchone()[0]  # noqa: S608 - our tables
                for table in TABLES
            )
            return sum(counts)

    def add(self, table: str, rows: Iterable[Written]) -> None:
        """Note rows of a table that the destination has; of two revisions of a row the higher one stays."""
        with self._named():
            self._connection.executemany(_ADD.format(table=table), rows)

    def changes(
        self, table: str, rows: Sequence[LedgerRow], price_list: str
    ) -> Iterator[tuple[LedgerRow, Written, Written | None]]:
        """Yield the selected rows that are new or have changed, with their revision, and note that they are written.

        The third of a triple is the tombstone in the folder of an earlier month, if the row was there.

        Args:
            table: The table of the rows.
            rows: A page of rows, each of which is given once.
            price_list: The version of the prices of new costs.
        """
        known = self._known(table, [row.id for row in rows])
        new = []
        for row in rows:
            before = known.get(row.id)
            if before is not None and before.session != row.session:
                new.append(before._replace(session=row.session))
            if not row.is_selected:
                continue
            after = _revised(row, before, price_list)
            if after is not None:
                stone = None
                if before is not None and after.revision > before.revision + 1:
                    stone = before.tombstone()
                new.append(after)
                yield row, after, stone
        with self._named():
            if known or self._has_rows(table):
                self._connection.executemany(
                    f"INSERT INTO present_{table} VALUES (?)",  # noqa: S608 - our tables
                    [(row.id,) for row in rows],
                )
            self._insert("INSERT INTO new_of_", table, new)

    def tombstones(self, table: str, sessions: Sequence[int] | None, *, has_earlier: bool) -> list[Written]:
        """Return the tombstones of rows that the ledger has no more, and note that they are written.

        All rows of the ledger have to be given to `changes` before, selected or not: all of these sessions, or of all.
        If there may be rows that this ledger never had (`has_earlier`), only rows that it has had are gone.
        """
        with self._named():
            scope = "w.session IS NOT NULL" if has_earlier else "1"
            if sessions is not None:
                self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS chosen (id INTEGER PRIMARY KEY)")
                self._connection.execute("DELETE FROM chosen")
                self._connection.executemany("INSERT INTO chosen VALUES (?)", ((one,) for one in sessions))
                scope = "w.session IN (SELECT id FROM chosen)"
            found = self._connection.execute(_LOST.format(table=table, scope=scope)).fetchall()
            stones = [Written(*row).tombstone() for row in found]
            self._insert("INSERT INTO new_of_", table, stones)
        return stones

    def forget_sessions(self) -> None:
        """Forget which rows are of which session: another ledger has numbered them."""
        with self._named():
            for table in TABLES:
                self._connection.execute(f"UPDATE rows_of_{table} SET session = NULL WHERE session IS NOT NULL")  # noqa: S608 - our tables

    def commit(self, manifest: Manifest, watermark: dict[str, Any] | None) -> None:
        """Keep what was noted, as what the destination has by its newest manifest."""
        with self._named():
            for table in TABLES:  # in the order of ids, which is a tenth of the work
                self._connection.execute(
                    f"INSERT OR REPLACE INTO rows_of_{table} SELECT * FROM new_of_{table} ORDER BY id, revision"  # noqa: S608 - our tables
                )
            names = {"names": manifest.names, "number": manifest.number, "files": manifest.files}
            known = {"manifest": {**names, "machine_name": manifest.machine_name}, "watermark": watermark}
            self._connection.executemany(
                "INSERT OR REPLACE INTO known VALUES (?, ?)",
                [(name, orjson.dumps(value).decode()) for name, value in known.items()],
            )
            self._connection.execute("COMMIT")

    def _value(self, name: str) -> Any:
        with self._named():
            row = self._connection.execute("SELECT value FROM known WHERE name = ?", (name,)).fetchone()
        return None if row is None else orjson.loads(row[0])

    def _has_rows(self, table: str) -> bool:
        return bool(self._connection.execute(f"SELECT 1 FROM rows_of_{table} LIMIT 1").fetchone())  # noqa: S608 - our tables

    def _known(self, table: str, ids: Sequence[int]) -> dict[int, Written]:
        with self._named():
            if not self._has_rows(table):
                return {}
            listed = ", ".join(map(str, ids))
            found = self._connection.execute(f"SELECT * FROM rows_of_{table} WHERE id IN ({listed})")  # noqa: S608 - numbers
            return {row[0]: Written(*row) for row in found}

    def _insert(self, statement: str, table: str, rows: Sequence[Written]) -> None:
        self._connection.executemany(f"{statement}{table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _revised(row: LedgerRow, before: Written | None, price_list: str) -> Written | None:
    """Return a row's next revision; None if the destination has it as it is."""
    standing = sum(flag << bit for bit, flag in enumerate(row.standing))
    estimate, saved = row.costs or (None, None)
    costs = (estimate, saved, price_list if row.costs else None)
    if before is not None and not before.deleted and before.state == row.state:
        if before.price_list != price_list:  # the costs of an earlier list stay
            costs = (before.estimate, before.saved, before.price_list)
        if before.standing == standing and (before.estimate, before.saved, before.price_list) == costs:
            return None
        return Written(row.id, before.revision + 1, False, row.month, row.state, standing, *costs, row.session)
    revision = 1
    if before is not None:
        has_moved = not before.deleted and before.month != row.month
        revision = before.revision + 1 + has_moved
    return Written(row.id, revision, False, row.month, row.state, standing, *costs, row.session)
