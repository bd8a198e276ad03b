"""BudgetLedger: a ledger connection that budgets keep open between queries.

It stays open while the path names the same file. After a fork, or when the file is deleted or replaced, the next query
opens it again. Usage is up to date, or reported as incomplete. Reading the logs and writing each wait up to
`WAIT_SECONDS` for other processes.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from sessionlog import files
from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.caveats import unreadable_places
from sessionlog.analytics.budgets.states import FUNCTIONS
from sessionlog.errors import SessionLogError
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import WAIT_SECONDS
from sessionlog.ledger.schema import UNREADABLE
from sessionlog.ledger.store import open_ledger
from sessionlog.ledger.sync import Progress, Scanner, scan_here
from sessionlog.locks import RLock
from sessionlog.pricing.book import PriceBook

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.clock import Clock

_PAUSE = 0.005
_open: WeakSet[BudgetLedger] = WeakSet()
_inherited: list[Book] = []
"""The parent process's ledgers, kept from garbage collection: closing one here would end the parent's transaction."""


class BudgetLedger:
    """A ledger that any thread can query for budgets."""

    def __init__(self, path: str, prices: PriceBook, env: Mapping[str, str], clock: Clock) -> None:
        self.path = path
        self.env = env
        self.clock = clock
        self._prices = prices
        self._book: Book | None = None
        self._file: tuple[int, int] | None = None
        self._has_unreadable_logs = False
        self._lock = RLock()
        _open.add(self)

    @contextmanager
    def locked(self) -> Iterator[Book]:
        """Yield the open ledger, for this thread alone.

        Raises:
            LedgerUnusable: The ledger cannot be opened.
            OSError: The folder of the ledger or of its marker cannot be made or written.
            sqlite3.Error: The ledger is damaged, or another process has been writing for too long.
        """
        with self._lock:
            book = self._current_book()
            if book is None:
                book = self._open_book()
            try:
                yield book
            finally:
                if book.connection.in_transaction:
                    book.connection.execute("ROLLBACK")
                if self._has_unreadable_logs:  # a book keeps its problems while it is open
                    self._has_unreadable_logs = False
                    self.close()

    @contextmanager
    def writing(self, book: Book) -> Iterator[None]:
        """Hold the write lock; roll back what the caller does not commit."""
        book.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if book.connection.in_transaction:
                book.connection.execute("ROLLBACK")

    def bring_up_to_date(
        self, book: Book, *, scanner: Scanner = scan_here, progress: Progress | None = None
    ) -> list[str]:
        """Read new log content into the ledger; return the reasons why usage may be incomplete."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            book.notes.clear()
            refresh(book, self.env, scanner=scanner, progress=progress)
            if not book.notes or time.monotonic() > until:
                places = unreadable_places(book)
                self._has_unreadable_logs = self._has_unreadable_logs or bool(places or book.missing(UNREADABLE))
                return [*book.notes, *places]
            time.sleep(_PAUSE)

    def confirm(self) -> list[str]:
        """Accept the ledger and the clock as they are; return the warnings that this ends.

        Raises:
            LedgerUnusable: As for `locked`.
            OSError: As for `locked`.
            sqlite3.Error: As for `locked`.
        """
        with self.locked() as book, self.writing(book):
            now = self.clock()
            found = tamper_check.warnings(book.query, self.path, self.env, now)
            own = tamper_check.confirm(book.connection, book.query, now)
            book.commit()
            tamper_check.mark(self.path, self.env, own)
        return found

    def close(self) -> None:
        """Close the ledger; the next query opens it again."""
        with self._lock:
            if self._book is not None:
                self._book.close()
            self._book = None

    def forget_after_fork(self) -> None:
        """In a process that has just been forked: drop the parent's connection without closing it, and its lock."""
        if self._book is not None:
            _inherited.append(self._book)
        self._book = None
        self._lock = RLock()

    def _current_book(self) -> Book | None:
        """The open ledger; None, and closed, if the path names another file now."""
        found = files.identity_of(self.path)
        if self._book is not None and (found is None or found != self._file):
            self.close()
        return self._book

    def _open_book(self) -> Book:
        book = open_ledger(self.path, self._prices, shared=True)
        try:
            for name, function in FUNCTIONS.items():
                book.define(name, function)
            self._write_seal(book)
            self._file = files.identity_of(self.path)
        except BaseException:
            book.close()
            raise
        self._book = book
        return book

    def _write_seal(self, book: Book) -> None:
        """Write the seal on the first query, before a call is allowed (see `tamper_check`)."""
        if tamper_check.is_marked(self.path, self.env):
            return
        with self.writing(book):
            own = tamper_check.write_seal(book.connection, book.query, self.clock())
            book.commit()
        tamper_check.mark(self.path, self.env, own)


LEDGER_ERRORS = (OSError, sqlite3.Error, ValueError, TypeError)
"""What a query of a damaged ledger may raise."""


def ledger_error_text(error: Exception) -> str:
    """Return why a ledger could not be queried."""
    if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error)):
        return "another process has been writing to the ledger for too long"
    if isinstance(error, SessionLogError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'the ledger'}: {files.reason_of(error)}"
    return f"{type(error).__name__}: {error}; `sessionlog ledger verify` shows more"


def _forget_all() -> None:
    for one in list(_open):
        one.forget_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
