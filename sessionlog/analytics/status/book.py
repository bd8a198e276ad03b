"""The book behind a status that is not there yet: which one knows the session, and how it is brought up to date.

The ledger, if that is where the log belongs; a log that lies anywhere else is read by itself, into memory, and so is
everything when the ledger cannot be used.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

from sessionlog.analytics.status.answer import Status
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.unreadable import unreadable_note
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.ask import Where, ask, refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.schema import ELSEWHERE
from sessionlog.ledger.store import open_ledger
from sessionlog.ledger.sync import Progress, sync
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.registry import all_sources

_LOGS = """
SELECT DISTINCT f.path, f.mtime_ns, f.ctime_ns, f.size, f.inode
FROM log_sessions t JOIN files f ON f.id = t.file_id WHERE t.session_id = :id AND NOT f.missing
"""


def is_of_a_place(path: str, env: Mapping[str, str]) -> bool:
    """Whether a log is where an agent writes its logs, so that the ledger knows it or will."""
    full = os.path.realpath(path)
    places = {os.path.realpath(place) for source in all_sources() for place in source.locate(env)}
    return any(full == place or full.startswith(os.path.join(place, "")) for place in places)


def is_alone(target: str | None, env: Mapping[str, str]) -> bool:
    """Whether what is asked about is a path that the ledger knows nothing of."""
    return target is not None and os.path.exists(target) and not is_of_a_place(target, env)


def ask_logs(
    question: StatusQuestion,
    now_ns: int,
    *,
    env: Mapping[str, str],
    ledger: str | None,
    prices: PriceBook | None,
    progress: Progress | None = None,
) -> tuple[Status, list[str]]:
    """Answer once, with the logs looked at first; parameters and errors as for `ask_status`."""
    alone = is_alone(question.target, env)
    notes: list[str] = []

    def answer(book: Book, *, alone: bool) -> Status | None:
        unreadable = unreadable_note([*book.unlisted, *book.problems])
        notes[:] = [*book.notes, *([unreadable] if unreadable else [])]
        found = question.answer(book, now_ns, alone=alone)
        if alone and found is not None:
            notes.extend(_which_of_several(book, str(question.target), found[0]))
        return None if found is None else found[0]

    for by_itself in (True,) if alone else (False, True):
        if by_itself and (question.target is None or not os.path.exists(question.target)):
            break
        where = Where(
            paths=[str(question.target)] if by_itself else None, ledger=ledger, env=env, progress=progress
        )  # fmt: skip
        status = ask(where, prices or PriceBook.load(), partial(answer, alone=by_itself))
        if status is not None:
            return status, notes
    raise question.none_such()


def _which_of_several(book: Book, target: str, status: Status) -> list[str]:
    """Say which session of a folder it is, if there are others."""
    [(sessions,)] = book.query("SELECT COUNT(*) FROM sessions WHERE counted", {})
    if status.session is None or sessions < 2:
        return []
    return [f"{target}: {status.session['id']} has the newest event of {sessions:,} sessions in it"]


def look_at(path: str) -> tuple[int, int, int, int] | None:
    """What a file looks like from outside."""
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return None
    return now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino


class StatusBook:
    """A book that is kept open, and knows which logs its last answer was about.

    Attributes:
        alone: It holds one log, or what lies in one folder.
    """

    def __init__(self, target: str | None, env: Mapping[str, str], ledger: str, prices: PriceBook | None) -> None:
        self.alone = is_alone(target, env)
        self._target = target
        self._env = env
        self._prices = prices or PriceBook.load()
        self._logs: tuple[str, ...] = ()
        self._asked: Book | None = None
        self._book, self._in_file = self._opened(ledger)

    def _opened(self, ledger: str) -> tuple[Book, bool]:
        if not self.alone:
            try:
                return open_ledger(ledger, self._prices), True
            except LedgerUnusable:
                pass  # the logs answer, as they do whenever the ledger cannot
        return Book(self._prices), False

    def looks(self) -> tuple[Any, ...]:
        """What the logs of the last answer look like, and whether another process has written to the ledger."""
        return *self._version(), *map(look_at, self._logs)

    def _version(self) -> tuple[Any, ...]:
        try:
            return tuple(self._book.connection.execute("PRAGMA data_version").fetchone())
        except sqlite3.Error:
            return (None,)

    def ask(self, question: StatusQuestion, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        """Answer, with all logs looked at first; and say what `looks` should be as long as that is true.

        Raises:
            LogNotReadable: The session that was named is not there.
        """
        try:
            return self._answer(question, now_ns)
        except sqlite3.DatabaseError:
            if not self._in_file:
                raise
            self.close()
            self._book, self._in_file = Book(self._prices), False
            return self._answer(question, now_ns)

    def _answer(self, question: StatusQuestion, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        self._renew()
        book = self._asked or self._book
        with book.reading() if self._in_file else nullcontext():
            found = question.answer(book, now_ns, alone=self.alone)
            rows = [] if found is None or found[1] is None else book.query(_LOGS, {"id": found[1]})
        if found is None:
            return self._answer_alone(question, now_ns)
        read = {path_of(path): tuple(looks) for path, *looks in rows}
        self._logs = tuple(read)
        # Not what the logs look like now, but what they did when they were read; a folder is looked at otherwise.
        looks = (look_at(path) if os.path.isdir(path) else looks for path, looks in read.items())
        return found[0], (*self._version(), *looks)

    def _answer_alone(self, question: StatusQuestion, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        """Answer for a path that lies where logs are, and is none that the ledger has: a folder of them."""
        if self.alone or self._target is None or not os.path.exists(self._target):
            raise question.none_such()
        self.close()
        self.alone, self._book, self._in_file = True, Book(self._prices), False
        return self._answer(question, now_ns)

    def _renew(self) -> None:
        if not self._in_file:
            found = find_logs([str(self._target)], self._env) if self.alone else discover(self._env, all_sources())
            sync(self._book, list(found))
            return
        refresh(self._book, self._env)
        self._drop_copy()
        others = self._book.missing(ELSEWHERE)
        if others:
            self._asked = self._book.copy()
            self._asked.forget(others)

    def _drop_copy(self) -> None:
        if self._asked is not None:
            self._asked.close()
        self._asked = None

    def close(self) -> None:
        """Close the book; one in memory is forgotten."""
        self._drop_copy()
        self._book.close()
