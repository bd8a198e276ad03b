"""WatchBook: the ledger's file while it is usable, else a book in memory.

A ledger that is deleted or replaced meanwhile is opened again. One that cannot be used is tried again every
`RETRY_SECONDS`; until then a note gives the reason.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from sessionlog import files
from sessionlog.analytics.unreadable import notes_of
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.store import open_ledger
from sessionlog.ledger.sync import Progress, Scanner, scan_here
from sessionlog.pricing.book import PriceBook

RETRY_SECONDS = 30.0
"""The time until an unusable ledger is tried again."""


class WatchBook:
    """A book that is brought up to date repeatedly.

    Attributes:
        notes: Sentences on what could not be read or used.
    """

    def __init__(
        self,
        ledger: str | None,
        prices: PriceBook,
        env: Mapping[str, str],
        prepare: Callable[[Book], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Opens nothing yet; `prepare` is called with every opened book."""
        self.notes: list[str] = []
        self._ledger, self._prices, self._env = ledger, prices, env
        self._prepare, self._monotonic = prepare, monotonic
        self._kept: Book | None = None
        self._memory: Book | None = None
        self._file: tuple[int, int] | None = None
        self._opened = 0
        self._ledger_error = ""
        self._retry = 0.0

    def renew(self, *, scanner: Scanner = scan_here, progress: Progress | None = None) -> Book:
        """Read new log content and return the book."""
        if self._ledger is not None and (self._kept is not None or self._monotonic() >= self._retry):
            try:
                book = self._renewed(self._current_book(self._ledger), scanner, progress)
            except Exception as error:  # noqa: BLE001 - a damaged row may raise anything; a bug is raised again below
                self._drop_ledger(self._ledger, error)
            else:
                self._ledger_error = ""
                self._forget_memory()
                self.notes = notes_of(book)
                return book
        if self._memory is None:
            self._memory = self._prepared(Book(self._prices))
        book = self._renewed(self._memory, scanner, progress)
        self.notes = [*([self._ledger_error] if self._ledger_error else []), *notes_of(book)]
        return book

    def version(self) -> tuple[int, ...]:
        """A value that changes with every write to the book by any process; the first number identifies the book."""
        book = self._kept or self._memory
        assert book is not None
        [(outside,)] = book.connection.execute("PRAGMA data_version")
        return self._opened, outside, book.connection.total_changes

    def fall_back_to_memory(self, error: Exception) -> bool:
        """Replace the ledger's file by a book in memory; return False if the book is in memory already."""
        if self._kept is None or self._ledger is None:
            return False
        self._drop_ledger(self._ledger, error)
        return True

    def close(self) -> None:
        """Close the book; the next `renew` opens it again."""
        self._forget_kept()
        self._forget_memory()

    def _current_book(self, path: str) -> Book:
        """The open ledger, opened again if the path names another file now."""
        if self._kept is not None and files.identity_of(path) != self._file:
            self._forget_kept()
        if self._kept is None:
            self._kept = self._prepared(open_ledger(path, self._prices))
            self._file = files.identity_of(path)
        return self._kept

    def _prepared(self, book: Book) -> Book:
        self._opened += 1
        self._prepare(book)
        return book

    def _renewed(self, book: Book, scanner: Scanner, progress: Progress | None) -> Book:
        book.notes.clear()
        refresh(book, self._env, scanner=scanner, progress=progress)
        return book

    def _drop_ledger(self, path: str, error: Exception) -> None:
        self._forget_kept()
        self._ledger_error = _error_text(path, error)
        self._retry = self._monotonic() + RETRY_SECONDS

    def _forget_kept(self) -> None:
        if self._kept is not None:
            with suppress(sqlite3.Error):
                self._kept.close()
        self._kept = self._file = None

    def _forget_memory(self) -> None:
        if self._memory is not None:
            self._memory.close()
        self._memory = None


def _error_text(path: str, error: Exception) -> str:
    if isinstance(error, LedgerUnusable):
        return f"the ledger is not used: {error}"
    if isinstance(error, sqlite3.DatabaseError):
        return f"the ledger is not used: {path}: {error}; `sessionlog ledger verify` shows more"
    return f"the ledger is not used: {path}: {type(error).__name__}: {error}; `sessionlog ledger verify` shows more"
