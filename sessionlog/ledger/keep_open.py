"""Keep open: a ledger that stays open between queries, for what lives long: a watch, a status, a budget.

It stays open while the path names the same file. When that was deleted or replaced, and in a process that was forked,
the next query opens it again. While it cannot be used, `ask` answers from a book in memory, with a note that gives the
reason, and tries it again every `RETRY_SECONDS`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from sessionlog import files
from sessionlog.errors import LedgerUnusable, SessionLogError
from sessionlog.ledger.ask import not_used
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.locks import RLock

if TYPE_CHECKING:
    from sessionlog.ledger.sync import Progress, Scanner
    from sessionlog.pricing.book import PriceBook

_T = TypeVar("_T")

RETRY_SECONDS = 30.0
"""The time until an unusable ledger is tried again."""

_open: WeakSet[KeptBook] = WeakSet()
_inherited: list[Book] = []
"""The parent process's books, kept from garbage collection: closing one here would end the parent's transaction."""


class KeptBook:
    """A ledger that is opened when it is needed, and stays open until `close`.

    Attributes:
        path: The file; None for a book in memory.
        env: The environment, by which the folders of agents' logs are found.
    """

    def __init__(
        self,
        path: str | None,
        prices: PriceBook | None,
        env: Mapping[str, str],
        *,
        paths: Sequence[str] | None = None,
        prepare: Callable[[Book], None] = lambda _: None,
        shared: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open nothing yet.

        Args:
            path: As above.
            prices: The prices of estimates; the list prices when None.
            env: As above.
            paths: The files and folders to read; None for all places where logs may be.
            prepare: Called with every opened book.
            shared: Whether several threads use it; they take turns.
            monotonic: The clock of `RETRY_SECONDS`.
        """
        self.path, self.env = path, env
        self._prices, self._paths, self._prepare = prices, paths, prepare
        self._shared, self._monotonic = shared, monotonic
        self._kept: Book | None = None
        self._memory: Book | None = None
        self._file: tuple[int, int] | None = None
        self._opened = 0
        self._why_unused = ""
        self._retry = 0.0
        self._lock = RLock()
        _open.add(self)

    @contextmanager
    def locked(self) -> Iterator[Book]:
        """Yield the open ledger's file, for this thread alone.

        Raises:
            LedgerUnusable: The ledger cannot be opened.
            OSError: What `prepare` writes cannot be written.
            sqlite3.Error: The ledger is damaged, or another process has been writing for too long.
        """
        with self._lock:
            book = self._book_of_file()
            try:
                yield book
            finally:
                if book.connection.in_transaction:
                    book.connection.execute("ROLLBACK")

    def ask(
        self, question: Callable[[Book], _T], *, scanner: Scanner | None = None, progress: Progress | None = None
    ) -> _T:
        """Read what is new in the logs, and return what `question` returns for the book; it has notes of its own.

        Args:
            question: Called with the ledger's file, or, where that fails, once more with a book in memory.
            scanner: As for `refresh`.
            progress: As for `refresh`.
        """
        with self._lock:
            if self.path is not None and (self._kept is not None or self._monotonic() >= self._retry):
                try:
                    found = self._asked(self._book_of_file(), question, scanner, progress)
                except Exception as error:  # a damaged row may raise anything; a bug is raised again below
                    if isinstance(error, SessionLogError) and not isinstance(error, LedgerUnusable):
                        raise
                    self._forget_kept()
                    self._why_unused = not_used(self.path, error)
                    self._retry = self._monotonic() + RETRY_SECONDS
                else:
                    self._forget_memory()
                    return found
            if self._memory is None:
                self._memory = self._prepared(Book(self._prices))
            return self._asked(self._memory, question, scanner, progress)

    def version(self) -> tuple[int, ...]:
        """A value that changes with every write to the book by any process; the first number identifies the book."""
        book = self._kept or self._memory
        if book is None:
            return (self._opened,)
        [(outside,)] = book.connection.execute("PRAGMA data_version")
        return self._opened, outside, book.connection.total_changes

    def close(self) -> None:
        """Close the book; the next query opens it again."""
        with self._lock:
            self._forget_kept()
            self._forget_memory()

    def forget_after_fork(self) -> None:
        """In a process that has just been forked: drop the parent's books without closing them, and its lock."""
        _inherited.extend(book for book in (self._kept, self._memory) if book is not None)
        self._kept = self._memory = self._file = None
        self._lock = RLock()

    def _asked(
        self, book: Book, question: Callable[[Book], _T], scanner: Scanner | None, progress: Progress | None
    ) -> _T:
        refresh(book, self.env, paths=self._paths, scanner=scanner, progress=progress)
        if book is self._memory and self._why_unused:
            book.notes.insert(0, self._why_unused)
        return question(book)

    def _book_of_file(self) -> Book:
        """The open ledger, opened again if the path names another file now."""
        assert self.path is not None
        if self._kept is not None and files.identity_of(self.path) != self._file:
            self._forget_kept()
        if self._kept is None:
            self._kept = self._prepared(open_ledger(self.path, self._prices, shared=self._shared))
            self._file = files.identity_of(self.path)
        return self._kept

    def _prepared(self, book: Book) -> Book:
        self._opened += 1
        try:
            self._prepare(book)
        except BaseException:
            book.close()
            raise
        return book

    def _forget_kept(self) -> None:
        if self._kept is not None:
            with suppress(sqlite3.Error):
                self._kept.close()
        self._kept = self._file = None

    def _forget_memory(self) -> None:
        if self._memory is not None:
            self._memory.close()
        self._memory = None


def _forget_all() -> None:
    for one in list(_open):
        one.forget_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
