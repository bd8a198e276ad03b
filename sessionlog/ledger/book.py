"""Book: an open ledger, in memory or in a file; every report is a query over it.

Each response is priced when it is inserted, at the prices of its own date, because tiers depend on the single request.
Which copies count is decided then, too (see `reconcile`), so that reports are plain sums.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from sessionlog.errors import Problem
from sessionlog.ledger.columns import Call, File, Response, insert
from sessionlog.ledger.identity import stored_path
from sessionlog.ledger.reading import MOST_NAMED, ReadBook
from sessionlog.ledger.scanning import Scanned
from sessionlog.ledger.schema import APPLICATION, VERSION
from sessionlog.ledger.storable import storable
from sessionlog.ledger.tables import tables
from sessionlog.ledger.writer import Writer
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Problems

TABLES = (*tables(), f"PRAGMA application_id = {APPLICATION}", f"PRAGMA user_version = {VERSION}")
"""The statements that create a ledger's tables in an empty database."""

_INSERT_FILE = insert("files", File._fields)
_CACHE_KB = 16_384


class Book(ReadBook):
    """Sessions, records and tool calls in SQLite, priced as they are inserted.

    Attributes:
        prices: The prices of estimates.
    """

    def __init__(self, prices: PriceBook, connection: sqlite3.Connection | None = None) -> None:
        """Open an empty ledger in memory, or the one of a connection."""
        super().__init__(connection or open_in_memory())
        self.prices = prices
        self._found = Problems()
        self._waiting: Writer | None = None
        if connection is None:
            for statement in TABLES:
                self.connection.execute(statement)

    @property
    def problem_count(self) -> int:
        """The number of problems of logs that exist."""
        return super().problem_count + self._found.count

    @property
    def problems(self) -> list[Problem]:
        """The first of these problems, at most a hundred."""
        return [*self._found.first, *super().problems][:MOST_NAMED]

    @property
    def unlisted(self) -> tuple[Problem, ...]:
        """The first problems that belong to no log: places that could not be listed, or logs that could not be read."""
        return self._found.first

    @property
    def priced_from(self) -> str:
        """The price list of estimates and its date, for a footer."""
        return self.prices.named

    def add_scan(self, scan: LogScan, path: str | None = None) -> None:
        """Insert the result of a scan of one log, or of what was appended to a log that is known."""
        source, first = (scan.sessions[0].source, scan.sessions[0].path) if scan.sessions else ("", "")
        writer, path = self._writer(), storable(first if path is None else path)
        row = self.connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        named = problems_text(scan.problems)
        values = File(id=None, path=path, source=source, settled=1, problems=scan.problems.count, named=named)
        file_id = int((self.connection.execute(_INSERT_FILE, values).lastrowid or 0) if row is None else row[0])
        if row is not None and (scan.problems.count or scan.full_rescan):
            self.connection.execute(
                "UPDATE files SET problems = problems * ? + ?, named = ? WHERE id = ?",
                (not scan.full_rescan, scan.problems.count, named, file_id),
            )
        is_whole = row is None or scan.full_rescan
        writer.insert(file_id, Scanned(number=0, scan=scan, source=source, from_start=is_whole))

    def append_rows(self, path: str, responses: Iterable[Response], calls: Iterable[Call]) -> None:
        """Insert more rows of a log that was inserted by a sync (see `Writer.append`)."""
        [(file_id,)] = self.connection.execute("SELECT id FROM files WHERE path = ?", (stored_path(path),))
        self._writer().append(file_id, responses, calls)

    def _writer(self) -> Writer:
        if self._waiting is None:
            if not self.connection.in_transaction:
                self.connection.execute("BEGIN IMMEDIATE")
            self._waiting = Writer(self.connection, self.prices)
        return self._waiting

    def reconcile(self) -> None:
        """Decide which of the inserted rows count, and commit; queries do this first, too."""
        if self._waiting is not None:
            writer, self._waiting = self._waiting, None
            writer.reconcile()
            self.commit()

    def reconcile_all(self) -> None:
        """Recompute everything that is derived.

        Costs only if the ledger was priced with `prices`, and only of responses that no scan of the logs which exist
        shows: of missing logs, and of copies that do not count.
        """
        if self.meta("prices") == self.prices.fingerprint:
            self._writer().reprice("(NOT counts OR file_id IN (SELECT id FROM files WHERE missing))")
        else:
            self._writer().touch_all()
        self.reconcile()

    def commit(self) -> None:
        """End a transaction; roll it back if a reader's lock is in the way, as it may be without a write-ahead log."""
        try:
            self.connection.execute("COMMIT")
        except sqlite3.OperationalError:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def release_memory(self) -> None:
        """Free the cached pages, up to 16 MB: this book is not used for a while, and others are."""
        self.connection.execute("PRAGMA shrink_memory")

    def copy(self) -> Book:
        """Return a copy in memory, which can be changed: for queries with other prices, or without some logs."""
        self.reconcile()
        connection = open_in_memory()
        self.connection.backup(connection)
        copied = Book(self.prices, connection)
        copied.notes, copied.unrecognised = list(self.notes), self.unrecognised
        copied.note(self._found)
        return copied

    def reprice(self, prices: PriceBook) -> None:
        """Estimate all responses at these prices, unless the ledger has them already."""
        self.prices = prices
        before = self.meta("prices")
        if before != prices.fingerprint:
            if before is not None:
                self._writer().reprice()
            elif self._waiting is None:
                self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute("DELETE FROM current_prices")
            self.set_meta("prices", prices.fingerprint)
            self.set_meta("priced_from", prices.named)
            self.set_meta("own_prices", "no" if prices.is_shipped else "yes")
            self.reconcile()
            if self.connection.in_transaction:
                self.commit()

    def forget(self, file_ids: Iterable[int]) -> int:
        """Delete logs, and everything that was read from them; return how many there were."""
        ids = list(file_ids)
        for file_id in ids:
            self._writer().drop(file_id)
            self.connection.execute("DELETE FROM files WHERE id = ?", (file_id,))
        self.reconcile()
        return len(ids)

    def missing(self, *why: int) -> list[int]:
        """Return the ids of logs that are missing for one of these reasons (see `schema.GONE`)."""
        marks = ", ".join("?" * len(why))
        self.reconcile()
        rows = self.connection.execute(f"SELECT id FROM files WHERE missing IN ({marks})", why)  # noqa: S608 - question marks
        return [file_id for (file_id,) in rows]

    def set_meta(self, name: str, value: str) -> None:
        """Write a value into the table `meta`."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def note(self, problems: Problems) -> None:
        """Add problems that belong to no log: all are counted, the first are kept."""
        first = (*self._found.first, *problems.first)
        self._found = Problems(count=self._found.count + problems.count, first=first[:MOST_NAMED])

    def query(
        self, sql: str, parameters: dict[str, Any], make: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> list[Any]:
        """Run one query, as in `ReadBook`, on reconciled records."""
        self.reconcile()
        return super().query(sql, parameters, make)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run the queries inside in one transaction: they do not see what another process writes meanwhile."""
        self.reconcile()
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")

    def detach(self) -> sqlite3.Connection:
        """Return the connection, which the caller has to close from now on."""
        connection = self.connection
        del self.connection
        return connection

    def __del__(self) -> None:
        try:  # noqa: SIM105 - at exit even `suppress` may be gone
            self.connection.close()
        except Exception:  # noqa: BLE001, S110 - it was never opened, or is another thread's: SQLite closes it
            pass


def open_in_memory() -> sqlite3.Connection:
    """Open an empty database that is deleted when it is closed; what exceeds its cache is in a file without a name."""
    connection = sqlite3.connect("", isolation_level=None)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def problems_text(problems: Problems) -> str:
    """Return the named problems as JSON."""
    if not problems.first:
        return "[]"
    return json.dumps([asdict(problem) for problem in problems.first[:MOST_NAMED]])
