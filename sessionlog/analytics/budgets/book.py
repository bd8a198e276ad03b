"""The ledger as a budget asks it: open as long as it is the same file, in the process and place it was opened in.

A process that forks, a ledger that is deleted or replaced: both let go of what was open, and the next question opens
anew. What is known of use is up to date or said to be incomplete; another process is waited for `WAIT_SECONDS`, once
to read the logs and once to write.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from sessionlog import files
from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.states import FUNCTIONS
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.store import WAIT_SECONDS, open_ledger
from sessionlog.ledger.sync import Progress, Scanner, scan_here
from sessionlog.pricing.book import PriceBook

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.clock import Clock

_PAUSE = 0.005
_NOT_READ = ("unreadable", "source_failed")
_open: WeakSet[BudgetBook] = WeakSet()
_left: list[Book] = []
"""Books of the parent process: to close one here would end what the parent does."""


class BudgetBook:
    """A ledger that is asked for budgets, by any thread."""

    def __init__(self, path: str, prices: PriceBook, env: Mapping[str, str], clock: Clock) -> None:
        self.path = path
        self.env = env
        self.clock = clock
        self._prices = prices
        self._book: Book | None = None
        self._file: tuple[int, int] | None = None
        self._is_odd = False
        self._lock = threading.RLock()
        _open.add(self)

    @contextmanager
    def asking(self) -> Iterator[Book]:
        """The ledger, for this thread alone.

        Raises:
            LedgerUnusable: It cannot be opened.
            OSError: There is no place for it, or none for its marker.
            sqlite3.Error: It is damaged, or another process has been writing for too long.
        """
        with self._lock:
            book = self._same()
            if book is None:
                book = self._opened()
            try:
                yield book
            finally:
                if book.connection.in_transaction:
                    book.connection.execute("ROLLBACK")
                if self._is_odd:  # a book keeps what it found as long as it is open
                    self._is_odd = False
                    self.close()

    @contextmanager
    def writing(self, book: Book) -> Iterator[None]:
        """Be the one who writes; what is not committed inside is undone."""
        book.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            if book.connection.in_transaction:
                book.connection.execute("ROLLBACK")

    def bring_up_to_date(
        self, book: Book, *, scanner: Scanner = scan_here, progress: Progress | None = None
    ) -> list[str]:
        """Read what is new in the logs; return why that may not be all."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            book.notes.clear()
            refresh(book, self.env, scanner=scanner, progress=progress)
            if not book.notes or time.monotonic() > until:
                return [*book.notes, *self._not_read(book)]
            time.sleep(_PAUSE)

    def _not_read(self, book: Book) -> list[str]:
        """Say what is not known to the ledger and cannot be read: whose it is, and what is in it, nobody knows.

        Logs that are known are of a source (see `sums.unreadable_logs`).
        """
        known = {path_of(path) for (path,) in book.query("SELECT path FROM files WHERE missing = 3", {})}
        found = {one.path: one.detail for one in book.problems if one.kind in _NOT_READ and one.path not in known}
        self._is_odd = self._is_odd or bool(found or known)
        more = f", and {len(found) - 1:,} more" if len(found) > 1 else ""
        return [f"{path} cannot be read ({detail}){more}" for path, detail in list(found.items())[:1]]

    def confirm(self) -> list[str]:
        """Take the ledger and the clock as they are for right; return what had been in doubt.

        Raises:
            OSError: As for `asking`.
            sqlite3.Error: As for `asking`.
        """
        with self.asking() as book, self.writing(book):
            now = self.clock()
            found = tamper_check.warnings(book.query, self.path, self.env, now)
            own = tamper_check.confirm(book.connection, book.query, now)
            book.commit()
            tamper_check.mark(self.path, self.env, own)
        return found

    def close(self) -> None:
        """Let go of the ledger; the next question opens it again."""
        with self._lock:
            if self._book is not None:
                self._book.close()
            self._book = None

    def leave(self) -> None:
        """In a process that has just been forked: forget what is open, and whoever held the lock."""
        if self._book is not None:
            _left.append(self._book)
        self._book = None
        self._lock = threading.RLock()

    def _same(self) -> Book | None:
        found = files.identity_of(self.path)
        if self._book is not None and (found is None or found != self._file):
            self.close()
        return self._book

    def _opened(self) -> Book:
        book = open_ledger(self.path, self._prices, shared=True)
        try:
            for name, function in FUNCTIONS.items():
                book.define(name, function)
            self._seal(book)
            self._file = files.identity_of(self.path)
        except BaseException:
            book.close()
            raise
        self._book = book
        return book

    def _seal(self, book: Book) -> None:
        """Whoever asks first makes the seal, before anything is allowed (see `tamper_check`)."""
        if tamper_check.is_marked(self.path, self.env):
            return
        with self.writing(book):
            own = tamper_check.write_seal(book.connection, book.query, self.clock())
            book.commit()
        tamper_check.mark(self.path, self.env, own)


def _leave_all() -> None:
    for one in list(_open):
        one.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
