"""Read a status repeatedly, for an agent that asks about itself (`status.logs` reads it once).

An agent may ask before every step, so a status that still holds is returned again. Each time, only the session's own
logs and the ledger's version are checked; other inputs (other sessions' logs, the settings, the time) are checked once
a second. From a log that has grown only the new part is read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from sessionlog.analytics.status.logs import is_alone
from sessionlog.analytics.status.question import StatusQuestion, budget_rules_or_error
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.identity import path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.status.answer import Status
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.keep_open import KeptBook
    from sessionlog.pricing.book import PriceBook
    from sessionlog.settings import Settings

FRESH_NS = 1_000_000_000
"""How long a status may ignore changes other than to the session's own logs and the ledger."""

_KEPT = 8

_LOGS = """
SELECT DISTINCT f.path, f.mtime_ns, f.ctime_ns, f.size, f.inode
FROM log_sessions t JOIN files f ON f.id = t.file_id WHERE t.session_id = :id AND NOT f.missing
"""


@dataclass(slots=True)
class _Last:
    """The last status, and the conditions under which it holds.

    Attributes:
        status: The status.
        now_ns: The present for which it was computed.
        until_ns: When it expires, on the monotonic clock.
        fingerprint: `StatusReader._fingerprint` at that time.
    """

    status: Status
    now_ns: int
    until_ns: int
    fingerprint: tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class StatusReader:
    """Answers the same question repeatedly; for one thread of one process.

    Attributes:
        question: The parameters of the status; its rules are those of the settings.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file; None for that of the settings.
        prices: Prices of responses without a recorded cost; those of the settings when None.
    """

    question: StatusQuestion = field(default_factory=StatusQuestion)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    ledger: str | None = None
    prices: PriceBook | None = None
    _book: KeptBook | None = field(default=None, init=False)
    _is_alone: bool = field(default=False, init=False)
    _logs: tuple[str, ...] = field(default=(), init=False)
    _settings: tuple[Any, Settings] | None = field(default=None, init=False)
    _last: _Last | None = field(default=None, init=False)

    def read(self, now_ns: int | None = None) -> Status:
        """Return the current status.

        Args:
            now_ns: The present; the clock's if None.

        Raises:
            LogNotReadable: The named session does not exist.
            AmbiguousSession: Several sessions match.
            InvalidSettings: The settings file cannot be read; an error in a budget is in `unavailable`.
        """
        moment = time.time_ns() if now_ns is None else now_ns
        last = self._last
        if (
            last is not None
            and 0 <= moment - last.now_ns < FRESH_NS
            and time.monotonic_ns() < last.until_ns
            and self._book is not None
            and self._fingerprint() == last.fingerprint
        ):
            return last.status
        status, fingerprint = self._ask(moment)
        self._last = _Last(status, moment, time.monotonic_ns() + FRESH_NS, fingerprint)
        return status

    def _ask(self, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        settings = self._current_settings()
        ledger = self.ledger or settings.ledger_path
        rules, config_error = budget_rules_or_error(settings)
        question = self.question._replace(rules=rules, config_error=config_error, ledger=ledger, env=self.env)
        target = question.target
        if self._book is None:
            self._open(ledger, alone=is_alone(target, self.env))
        found = self._answer(question, now_ns)
        if found is None and not self._is_alone and target is not None and os.path.exists(target):
            self._open(ledger, alone=True)  # in an agent's folder, but no log of the ledger, such as a folder of logs
            found = self._answer(question, now_ns)
        if found is None:
            raise question.not_found()
        return found

    def _open(self, ledger: str, *, alone: bool) -> None:
        from sessionlog.ledger.keep_open import KeptBook

        if self._book is not None:
            self._book.close()
        self._is_alone = alone
        paths = [str(self.question.target)] if alone else None
        self._book = KeptBook(None if alone else ledger, self.prices, self.env, paths=paths)

    def _answer(self, question: StatusQuestion, now_ns: int) -> tuple[Status, tuple[Any, ...]] | None:
        """Read the logs; return the status, and the fingerprint for which it holds; None if there is no session."""
        assert self._book is not None

        def look(book: Book) -> tuple[tuple[Status, int | None] | None, list[Any]]:
            with book.reading():
                found = question.answer(book, now_ns, alone=self._is_alone)
                return found, [] if found is None or found[1] is None else book.query(_LOGS, {"id": found[1]})

        found, rows = self._book.ask(look)
        if found is None:
            return None
        read = {path_of(path): tuple(state) for path, *state in rows}
        self._logs = tuple(read)
        # The state from when a log was read, not the present one; the ledger's state of a folder is not that of stat.
        states = (file_state(path) if os.path.isdir(path) else state for path, state in read.items())
        return found[0], (*self._book.version(), *states)

    def _fingerprint(self) -> tuple[Any, ...]:
        """The state of the last answer's logs and of the book; it changes when any of them is written to."""
        assert self._book is not None
        return *self._book.version(), *map(file_state, self._logs)

    def _current_settings(self) -> Settings:
        """The settings; loaded again when their file has changed."""
        from sessionlog.places import config_file
        from sessionlog.settings import load_settings

        state = file_state(config_file(self.env))
        if self._settings is None or self._settings[0] != state:
            self._settings = state, load_settings(self.env)
            self.close()
            if self.prices is None and self._settings[1].prices:
                from sessionlog.pricing.book import PriceBook

                self.prices = PriceBook.load(self._settings[1].prices)
        return self._settings[1]

    def close(self) -> None:
        """Close the ledger; the next read opens it again."""
        if self._book is not None:
            self._book.close()
        self._book = self._last = None


def file_state(path: str) -> tuple[int, int, int, int] | None:
    """Return a file's (mtime_ns, ctime_ns, size, inode) to detect changes; None if it cannot be read."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


_local = threading.local()


def session_status(
    session: str | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    everything: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    prices: PriceBook | None = None,
    tz: str | tzinfo = "local",
    now: datetime | None = None,
) -> Status:
    """Return a session's usage and what is left, in less than a millisecond if nothing has changed.

    Repeated calls in the same thread check only the session's own logs and read what was appended; the usage of other
    sessions may be a second old.

    Args:
        session: An id, or the beginning or end of one; the session with the newest event when None.
        path: The session's log, instead of its id.
        everything: Sum over all sessions instead.
        ledger: The ledger's file; that of the settings when None.
        env: The environment, by which logs and settings are found; the process's when None.
        prices: Prices of responses without a recorded cost; the list prices and the user's own when None.
        tz: The time zone of `today`: an IANA name, `local`, or a tzinfo.
        now: The present; the clock's when None.

    Raises:
        LogNotReadable: The session does not exist.
        AmbiguousSession: Several sessions match.
        InvalidSettings: The settings file cannot be read; an error in a budget is in `unavailable`.
        InvalidWindow: The time zone is unknown.
    """
    target = session if path is None else os.fspath(path)
    book = None if ledger is None else os.fspath(ledger)
    environment = dict(os.environ if env is None else env)
    key = (os.getpid(), target, everything, book, id(prices), tz, tuple(environment.items()))
    readers: dict[Any, StatusReader] = _local.__dict__.setdefault("readers", {})
    reader = readers.pop(key, None)
    if reader is None:
        zone = None if tz == "local" else resolve_zone(tz)
        question = StatusQuestion(target=target, everything=everything, zone=zone)
        reader = StatusReader(question=question, env=environment, ledger=book, prices=prices)
        while len(readers) >= _KEPT:
            oldest = next(iter(readers))
            with suppress(Exception):  # another process's connection is left alone
                readers.pop(oldest).close()
    readers[key] = reader
    return reader.read(None if now is None else int(now.timestamp() * 1_000_000_000))
