"""StatusBook: the ledger, or a book in memory, that a status comes from after the logs were read.

Logs in agents' folders are read into the ledger. A log elsewhere is read alone, into memory; so are all logs when the
ledger cannot be used.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from sessionlog import files
from sessionlog.analytics.status.answer import Status
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.unreadable import notes_of
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

_T = TypeVar("_T")

_LOGS = """
SELECT DISTINCT f.path, f.mtime_ns, f.ctime_ns, f.size, f.inode
FROM log_sessions t JOIN files f ON f.id = t.file_id WHERE t.session_id = :id AND NOT f.missing
"""


def _is_in_agent_folder(path: str, env: Mapping[str, str]) -> bool:
    full = os.path.realpath(path)
    folders = {os.path.realpath(folder) for source in all_sources() for folder in source.locate(env)}
    return any(full == folder or full.startswith(os.path.join(folder, "")) for folder in folders)


def _is_alone(target: str | None, env: Mapping[str, str]) -> bool:
    """Whether the target is a path outside the agents' folders, which the ledger does not cover."""
    return target is not None and files.stat_path(target) is not None and not _is_in_agent_folder(target, env)


def ask_logs(
    question: StatusQuestion,
    now_ns: int,
    *,
    env: Mapping[str, str],
    ledger: str | None,
    prices: PriceBook | None,
    progress: Progress | None = None,
) -> tuple[Status, list[str]]:
    """Read the logs and return the status and notes; parameters and errors as for `ask_status`."""
    notes: list[str] = []

    def answer(book: Book, *, alone: bool) -> Status | None:
        notes[:] = notes_of(book)
        found = question.answer(book, now_ns, alone=alone)
        if alone and found is not None:
            notes.extend(_which_of_several(book, str(question.target), found[0]))
        return None if found is None else found[0]

    status = ask_about(question.target, answer, env=env, ledger=ledger, prices=prices, progress=progress)
    if status is None:
        raise question.not_found()
    return status, notes


def ask_about(
    target: str | None,
    question: Callable[..., _T | None],
    *,
    env: Mapping[str, str],
    ledger: str | None,
    prices: PriceBook | None = None,
    progress: Progress | None = None,
) -> _T | None:
    """Return what `question` returns for the ledger, else for the logs at `target` alone; None if both return None.

    Args:
        target: A path or an id; None for no session in particular. A path outside the agents' folders is read alone at
            once.
        question: Called with a book, and with `alone`: whether the book holds the target and nothing else.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file; None scans all logs into memory.
        prices: Prices of responses without a recorded cost; the list prices when None.
        progress: Called after every log.
    """
    for alone in (True,) if _is_alone(target, env) else (False, True):
        if alone and (target is None or files.stat_path(target) is None):
            break
        where = Where(paths=[str(target)] if alone else None, ledger=ledger, env=env, progress=progress)
        found = ask(where, prices or PriceBook.load(), partial(question, alone=alone))
        if found is not None:
            return found
    return None


def _which_of_several(book: Book, target: str, status: Status) -> list[str]:
    """A note that names the session shown, if the target has several."""
    [(sessions,)] = book.query("SELECT COUNT(*) FROM sessions WHERE counted", {})
    if status.session is None or sessions < 2:
        return []
    return [f"{target}: {status.session['id']} has the newest event of {sessions:,} sessions in it"]


def file_state(path: str) -> tuple[int, int, int, int] | None:
    """Return a file's (mtime_ns, ctime_ns, size, inode) to detect changes; None if it cannot be read."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class StatusBook:
    """A book that stays open between questions, with the logs of its last answer.

    Attributes:
        alone: Whether it holds only one log or folder.
    """

    def __init__(self, target: str | None, env: Mapping[str, str], ledger: str, prices: PriceBook | None) -> None:
        self.alone = _is_alone(target, env)
        self._target = target
        self._env = env
        self._prices = prices or PriceBook.load()
        self._logs: tuple[str, ...] = ()
        self._copy: Book | None = None
        self._book, self._in_file = self._open(ledger)

    def _open(self, ledger: str) -> tuple[Book, bool]:
        if not self.alone:
            try:
                return open_ledger(ledger, self._prices), True
            except LedgerUnusable:
                pass  # read the logs into memory instead
        return Book(self._prices), False

    def fingerprint(self) -> tuple[Any, ...]:
        """The state of the last answer's logs and of the ledger; it changes when any of them is written to."""
        return *self._version(), *map(file_state, self._logs)

    def _version(self) -> tuple[Any, ...]:
        try:
            return tuple(self._book.connection.execute("PRAGMA data_version").fetchone())
        except sqlite3.Error:
            return (None,)

    def ask(self, question: StatusQuestion, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        """Read the logs; return the status, and the `fingerprint` for which it holds.

        Raises:
            LogNotReadable: The named session does not exist.
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
        book = self._copy or self._book
        with book.reading() if self._in_file else nullcontext():
            found = question.answer(book, now_ns, alone=self.alone)
            rows = [] if found is None or found[1] is None else book.query(_LOGS, {"id": found[1]})
        if found is None:
            return self._answer_alone(question, now_ns)
        read = {path_of(path): tuple(state) for path, *state in rows}
        self._logs = tuple(read)
        # The state from when a log was read, not the present one; the ledger's state of a folder is not that of stat.
        states = (file_state(path) if os.path.isdir(path) else state for path, state in read.items())
        return found[0], (*self._version(), *states)

    def _answer_alone(self, question: StatusQuestion, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        """Answer for a path in an agent's folder that is not a log of the ledger, such as a folder of logs."""
        if self.alone or self._target is None or not os.path.exists(self._target):
            raise question.not_found()
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
            self._copy = self._book.copy()
            self._copy.forget(others)

    def _drop_copy(self) -> None:
        if self._copy is not None:
            self._copy.close()
        self._copy = None

    def close(self) -> None:
        """Close the book; the content of one in memory is lost."""
        self._drop_copy()
        self._book.close()
