"""Book: an open ledger, in a file or in memory; every report is a query over it.

What prices and inserts is imported when there is something to insert: a report without news starts fast.

Each response is priced when it is inserted, at the prices of its own date, because tiers depend on the single request.
Which copies count is decided then, too (see `reconcile`), so that reports are plain sums.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

from sessionlog.ledger.identity import stored_path
from sessionlog.ledger.problems import MOST_NAMED, problems_of, problems_text
from sessionlog.ledger.storable import rows_of, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Self

    from sessionlog.errors import Problem
    from sessionlog.ledger.columns import Call, Response
    from sessionlog.ledger.writer import Writer
    from sessionlog.pricing.book import PriceBook
    from sessionlog.sources.protocol import LogScan
    from sessionlog.sources.record import Problems


CACHE_KB = 16_384


class Book:
    """Sessions, records and tool calls in SQLite, priced as they are inserted.

    Attributes:
        connection: The open database.
        unrecognised: Number of files that are not a log of a known agent.
        notes: Sentences for the reader of a report about what went wrong.
        is_complete: Whether the last `refresh` has looked at the logs of all sessions.
    """

    def __init__(self, prices: PriceBook | None = None, connection: sqlite3.Connection | None = None) -> None:
        """Open an empty ledger in memory, or the one of a connection; `prices` are the list prices if None."""
        self.connection = connection or open_in_memory()
        self.unrecognised = 0
        self.notes: list[str] = []
        self.is_complete = False
        self._prices = prices
        self._found: list[Problem] = []
        self._found_count = 0
        self._waiting: Writer | None = None
        if connection is None:
            from sessionlog.ledger.tables import tables

            for statement in tables():
                self.connection.execute(statement)

    @property
    def prices(self) -> PriceBook:
        """The prices of estimates."""
        if self._prices is None:
            from sessionlog.pricing.book import PriceBook

            self._prices = PriceBook.load()
        return self._prices

    @property
    def priced_from(self) -> str:
        """The price list of estimates and its date, for a footer."""
        return self.meta("priced_from") or self.prices.named

    @property
    def problem_count(self) -> int:
        """The number of problems of logs that exist."""
        [(count,)] = self.query("SELECT COALESCE(SUM(problems), 0) FROM files WHERE NOT missing", {})
        return int(count) + self._found_count

    @property
    def problems(self) -> list[Problem]:
        """The first of these problems, at most a hundred."""
        named = list(self._found)
        for (text,) in self.query("SELECT named FROM files WHERE problems AND NOT missing ORDER BY path", {}):
            if len(named) >= MOST_NAMED:
                break
            named += problems_of(text)
        return named[:MOST_NAMED]

    @property
    def unlisted(self) -> tuple[Problem, ...]:
        """The first problems that belong to no log: places that could not be listed, or logs that could not be read."""
        return tuple(self._found)

    def meta(self, name: str) -> str | None:
        """Return a value of the table `meta`; None where there is none of that name."""
        row = self.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        """Write a value into the table `meta`."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def machine_of(self, label_id: int) -> str:  # noqa: ARG002 - all labels of a ledger are of one machine
        """Return the name of the machine whose records have a label, or whose calls have a name."""
        from platform import node

        return node() or "unknown"

    def define(self, name: str, function: Any) -> None:
        """Register a Python function of one argument for queries."""
        self.connection.create_function(name, 1, function, deterministic=True)

    def query(
        self, sql: str, parameters: Mapping[str, Any], make: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> list[Any]:
        """Run one query on reconciled records, and return its rows, or what `make` makes of each (see `rows_of`)."""
        self.reconcile()
        stored = {name: storable(value) if isinstance(value, str) else value for name, value in parameters.items()}
        return rows_of(self.connection, sql, stored, make)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock inside; what is not committed there is rolled back."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run the queries inside in one transaction: they do not see what another process writes meanwhile."""
        self.reconcile()
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")

    def forget_notes(self) -> None:
        """Drop the notes, and the problems that belong to no log: logs are looked at again."""
        self.notes.clear()
        self._found, self._found_count, self.unrecognised = [], 0, 0

    @property
    def has_its_prices(self) -> bool:
        """Whether the ledger is priced by the book's prices; `changed_logs` shows when the price list changes."""
        if self._prices is None:
            return self.meta("own_prices") == "no"
        return self.meta("prices") == self._prices.fingerprint

    def add_scan(self, scan: LogScan) -> None:
        """Insert the result of a scan of one log, or of what was appended to a log that is known."""
        from sessionlog.ledger.columns import File, insert
        from sessionlog.ledger.scanning import Scanned

        source, path = (scan.sessions[0].source, scan.sessions[0].path) if scan.sessions else ("", "")
        writer, path = self._writer(), storable(path)
        row = self.connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
        named = problems_text(scan.problems)
        if row is None:
            values = File(id=None, path=path, source=source, settled=1, problems=scan.problems.count, named=named)
            file_id = int(self.connection.execute(insert("files", File._fields), values).lastrowid or 0)
        else:
            file_id = int(row[0])
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
            from sessionlog.ledger.writer import Writer

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
        copied = Book(self._prices, connection)
        copied.notes, copied.unrecognised = list(self.notes), self.unrecognised
        copied._found, copied._found_count = list(self._found), self._found_count
        return copied

    def reprice(self, prices: PriceBook) -> None:
        """Estimate all responses at these prices, unless the ledger has them already."""
        self._prices = prices
        before = self.meta("prices")
        if before != prices.fingerprint:
            if before is not None:
                self._writer().reprice()
            elif self._waiting is None:
                self.connection.execute("BEGIN IMMEDIATE")
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

    def note(self, problems: Problems) -> None:
        """Add problems that belong to no log: all are counted, the first are kept."""
        self._found = [*self._found, *problems.first][:MOST_NAMED]
        self._found_count += problems.count

    def close(self) -> None:
        """Close the database; one in memory is deleted."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:  # noqa: SIM105 - at exit even `suppress` may be gone
            self.connection.close()
        except Exception:  # noqa: BLE001, S110 - it was never opened, or is another thread's: SQLite closes it
            pass


def open_in_memory() -> sqlite3.Connection:
    """Open an empty database that is deleted when it is closed; what exceeds its cache is in a file without a name."""
    connection = sqlite3.connect("", isolation_level=None)
    connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    return connection
