"""Book: the ledger open for reports, in memory or in a file; every report is a query over it.

Estimates are made when a response is entered, at the prices of its own date: tiers depend on the single request. Which
copies count is decided then, too (see `reconcile`), so that reports are plain sums.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from sessionlog.errors import Problem
from sessionlog.ledger.reading import MOST_NAMED, ReadBook
from sessionlog.ledger.rows import LogRows, to_rows
from sessionlog.ledger.schema import APPLICATION, FILE, SCHEMA, VERSION, insert
from sessionlog.ledger.storable import storable
from sessionlog.ledger.writer import Writer
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Problems

_INSERT_FILE = insert("files", FILE)
_CACHE_KB = 16_384


class Book(ReadBook):
    """Sessions, records and tool calls in SQLite, priced as they enter.

    Attributes:
        prices: What estimates are made with.
    """

    def __init__(self, prices: PriceBook, connection: sqlite3.Connection | None = None) -> None:
        """Open an empty book in memory, or the one that a connection leads to."""
        super().__init__(connection or open_in_memory())
        self.prices = prices
        self._found = Problems()
        self._waiting: Writer | None = None
        if connection is None:
            make_tables(self.connection)

    @property
    def problem_count(self) -> int:
        """All findings about the logs that are there."""
        return super().problem_count + self._found.count

    @property
    def problems(self) -> list[Problem]:
        """The first of them by name, at most a hundred."""
        return [*self._found.first, *super().problems][:MOST_NAMED]

    @property
    def unlisted(self) -> tuple[Problem, ...]:
        """The first findings that belong to no log: what could not be listed, or read."""
        return self._found.first

    @property
    def priced_from(self) -> str:
        """Which prices estimates come from, for a footer."""
        return self.prices.version

    def take(self, scan: LogScan) -> None:
        """Enter what a scan of one log gave, or more of a log that is known."""
        path = scan.sessions[0].path if scan.sessions else ""
        self.enter(path, to_rows(scan, self.prices), source=scan.sessions[0].source if scan.sessions else "")

    def enter(self, path: str, scan: LogRows, *, source: str) -> None:
        """Enter the rows of a log that is looked at once."""
        writer = self._writer()
        path = storable(path)
        row = self.connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        named = problems_text(scan.problems)
        values = (path, source, 0, 0, 0, 0, 0, 0, "", 1, 0, 0, "", "", "", 0, 0, scan.problems.count, named, "")
        file_id = int((self.connection.execute(_INSERT_FILE, values).lastrowid or 0) if row is None else row[0])
        if row is not None and (scan.problems.count or scan.full_rescan):
            self.connection.execute(
                "UPDATE files SET problems = problems * ? + ?, named = ? WHERE id = ?",
                (not scan.full_rescan, scan.problems.count, named, file_id),
            )
        writer.enter(file_id, scan, anew=row is None or scan.full_rescan)

    def _writer(self) -> Writer:
        if self._waiting is None:
            self.connection.execute("BEGIN IMMEDIATE")
            self._waiting = Writer(self.connection, self.prices)
        return self._waiting

    def reconcile(self) -> None:
        """Decide what counts of what was taken; queries do it, too."""
        if self._waiting is not None:
            writer, self._waiting = self._waiting, None
            writer.reconcile()
            self.commit()

    def reconcile_all(self) -> None:
        """Compute all that is derived anew, costs included if they are of this book's prices."""
        if self.meta("prices") == self.prices.fingerprint:
            self._writer().reprice()
        else:
            self._writer().touch_all()
        self.reconcile()

    def commit(self) -> None:
        """End a transaction."""
        self.connection.execute("COMMIT")

    def copy(self) -> Book:
        """Return a copy in memory, for questions about what is not so: other prices, other logs."""
        self.reconcile()
        connection = open_in_memory()
        self.connection.backup(connection)
        copied = Book(self.prices, connection)
        copied.notes, copied.unrecognised = list(self.notes), self.unrecognised
        copied.note(self._found)
        return copied

    def reprice(self, prices: PriceBook) -> None:
        """Estimate everything anew, unless that is what was done last."""
        self.prices = prices
        before = self.meta("prices")
        if before != prices.fingerprint:
            if before is not None:
                self._writer().reprice()
            elif self._waiting is None:
                self.connection.execute("BEGIN IMMEDIATE")
            self.set_meta("prices", prices.fingerprint)
            self.set_meta("priced_from", prices.version)
            self.set_meta("own_prices", "no" if prices.is_shipped else "yes")
            self.reconcile()
            if self.connection.in_transaction:
                self.commit()

    def forget(self, file_ids: Iterable[int]) -> int:
        """Take logs and all that they gave out of the ledger; return how many there were."""
        ids = list(file_ids)
        for file_id in ids:
            self._writer().drop(file_id)
            self.connection.execute("DELETE FROM files WHERE id = ?", (file_id,))
        self.reconcile()
        return len(ids)

    def missing(self, *why: int) -> list[int]:
        """Return the logs that are missing for one of these reasons (see `sync`)."""
        marks = ", ".join("?" * len(why))
        self.reconcile()
        rows = self.connection.execute(f"SELECT id FROM files WHERE missing IN ({marks})", why)  # noqa: S608 - question marks
        return [file_id for (file_id,) in rows]

    def set_meta(self, name: str, value: str) -> None:
        """Write a value into the table `meta`."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def note(self, problems: Problems) -> None:
        """Keep a finding that belongs to no log: all of them as a number, the first by name."""
        first = (*self._found.first, *problems.first)
        self._found = Problems(count=self._found.count + problems.count, first=first[:MOST_NAMED])

    def _ask(
        self,
        sql: str,
        parameters: dict[str, Any] | None = None,
        make: Callable[[tuple[Any, ...]], Any] | None = None,
    ) -> list[Any]:
        self.reconcile()
        return super()._ask(sql, parameters, make)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All queries inside see the book as it is now, whatever another process writes meanwhile."""
        self.reconcile()
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")

    def detach(self) -> sqlite3.Connection:
        """Return the connection, which is the caller's to close from now on."""
        connection = self.connection
        del self.connection
        return connection

    def __del__(self) -> None:
        try:  # noqa: SIM105 - at exit even `suppress` may be gone
            self.connection.close()
        except Exception:  # noqa: BLE001, S110 - it could not be made, or is another thread's: SQLite closes it
            pass


def open_in_memory() -> sqlite3.Connection:
    """Open an empty database that is forgotten when it is closed: what is more than its cache is in a nameless file."""
    connection = sqlite3.connect("", isolation_level=None)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def make_tables(connection: sqlite3.Connection) -> None:
    """Make an empty book of a connection's empty database."""
    connection.executescript(
        f"BEGIN; {SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT"
    )


def problems_text(problems: Problems) -> str:
    """Return the named problems as JSON."""
    return json.dumps([asdict(problem) for problem in problems.first[:MOST_NAMED]])
