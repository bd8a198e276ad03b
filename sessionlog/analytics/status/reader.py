"""Reading a status: once for a command, or again and again for an agent that asks about itself.

An agent may ask before every step, so a status that is still true is given again: only the session's own logs are
looked at every time, and the ledger for what another process wrote into it; whatever else makes a difference (other
sessions' logs, the settings, the time) is looked at once a second. Of a log that has grown only the rest is read.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.cached import ask_current

TYPE_CHECKING = False  # what scans and prices costs 80 ms, which a status without news saves
if TYPE_CHECKING:
    from sessionlog.analytics.status.answer import Status
    from sessionlog.analytics.status.book import StatusBook
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.settings import Settings

FRESH_NS = 1_000_000_000
"""How long it is believed that nothing has changed but the session's own logs."""

_KEPT = 8


def ask_status(
    question: StatusQuestion,
    *,
    env: Mapping[str, str],
    ledger: str | None,
    prices: PriceBook | None = None,
    now_ns: int | None = None,
    progress: Progress | None = None,
) -> tuple[Status, list[str]]:
    """Answer once.

    Args:
        question: Which status.
        env: The environment, which says where agents write.
        ledger: The file that remembers what was read; None to scan everything anew, in memory.
        prices: What has no recorded cost is estimated with; the list prices when None.
        now_ns: The present.
        progress: Called after every log.

    Returns:
        The status, and sentences for its reader: what the ledger could not do.

    Raises:
        LogNotReadable: The session that was named is not there.
        AmbiguousSession: Several sessions match.
    """
    moment = time.time_ns() if now_ns is None else now_ns
    question = replace(question, ledger=ledger or "", env=env)
    if ledger is not None and prices is None:
        known = ask_current(ledger, env, lambda book: question.answer(book, moment))
        if known is not None:
            return known[0], []
    from sessionlog.analytics.status.book import ask_logs  # noqa: PLC0415 - see above

    return ask_logs(question, moment, env=env, ledger=ledger, prices=prices, progress=progress)


@dataclass(slots=True)
class _Last:
    """The last answer, and what the world looked like.

    Attributes:
        status: The answer.
        now_ns: The present that it was given for.
        until_ns: Until when on the monotonic clock it is believed.
        looks: What is looked at every time.
    """

    status: Status
    now_ns: int
    until_ns: int
    looks: tuple[Any, ...]


@dataclass(slots=True, kw_only=True)
class StatusReader:
    """Answers the same question again and again; of one thread, and of the process that made it.

    Attributes:
        question: Which status; its rules are those of the settings.
        env: The environment, which says where agents write.
        ledger: The ledger's file; None for that of the settings.
        prices: What has no recorded cost is estimated with; those of the settings when None.
    """

    question: StatusQuestion = field(default_factory=StatusQuestion)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    ledger: str | None = None
    prices: PriceBook | None = None
    _book: StatusBook | None = field(default=None, init=False)
    _settings: tuple[Any, Settings] | None = field(default=None, init=False)
    _last: _Last | None = field(default=None, init=False)

    def read(self, now_ns: int | None = None) -> Status:
        """Return the status as it is now.

        Args:
            now_ns: The present, if it is not the clock's.

        Raises:
            LogNotReadable: The session that was named is not there.
            AmbiguousSession: Several sessions match.
            InvalidSettings: The file of settings cannot be read; a mistake in a budget is in `unavailable`.
        """
        moment = time.time_ns() if now_ns is None else now_ns
        last = self._last
        if (
            last is not None
            and 0 <= moment - last.now_ns < FRESH_NS
            and time.monotonic_ns() < last.until_ns
            and self._book is not None
            and self._book.looks() == last.looks
        ):
            return last.status
        status, looks = self._ask(moment)
        self._last = _Last(status, moment, time.monotonic_ns() + FRESH_NS, looks)
        return status

    def _ask(self, now_ns: int) -> tuple[Status, tuple[Any, ...]]:
        from sessionlog.analytics.status.book import StatusBook  # noqa: PLC0415 - see above

        settings = self._settled()
        ledger = self.ledger or settings.ledger_path
        if self._book is None:
            self._book = StatusBook(self.question.target, self.env, ledger, self.prices)
        rules, mistake = budgets_of(settings)
        question = replace(self.question, rules=rules, mistake=mistake, ledger=ledger, env=self.env)
        return self._book.ask(question, now_ns)

    def _settled(self) -> Settings:
        """The settings; read again when their file looks different."""
        from sessionlog.analytics.status.book import look_at  # noqa: PLC0415 - see above
        from sessionlog.places import config_file  # noqa: PLC0415 - see above
        from sessionlog.settings import load_settings  # noqa: PLC0415 - see above

        looks = look_at(config_file(self.env))
        if self._settings is None or self._settings[0] != looks:
            self._settings = looks, load_settings(self.env)
            self.close()
            if self.prices is None and self._settings[1].prices:
                from sessionlog.pricing.book import PriceBook  # noqa: PLC0415 - see above

                self.prices = PriceBook.load(self._settings[1].prices)
        return self._settings[1]

    def close(self) -> None:
        """Let go of the ledger; the next question opens it again."""
        if self._book is not None:
            self._book.close()
        self._book = self._last = None


def rules_of(settings: Settings) -> tuple[Any, ...]:
    """Return the budgets of the settings.

    Raises:
        InvalidSettings: One of them cannot be used.
    """
    table = settings.budgets
    if not table:
        return ()
    from sessionlog.analytics.budgets.rules import parse_budgets  # noqa: PLC0415 - for those who have budgets

    return tuple(parse_budgets(table, path=settings.config_path))


def budgets_of(settings: Settings) -> tuple[tuple[Any, ...], str]:
    """Return the budgets of the settings and, where one of them cannot be used, none and the reason."""
    from sessionlog.errors import InvalidSettings  # noqa: PLC0415 - beside the function that needs it

    try:
        return rules_of(settings), ""
    except InvalidSettings as error:
        said = str(error)
        return (), said if said.startswith(settings.config_path) else f"{settings.config_path}: {said}"


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
    """Return what a session used and what is left, in less than a millisecond if nothing has changed.

    Asked again in the same thread it looks only at the session's own logs and reads what was appended; what other
    sessions did may be a second old.

    Args:
        session: An id, or the beginning or end of one; the session with the newest event when None.
        path: Its log instead.
        everything: The sum over all sessions instead.
        ledger: The file that remembers what was read; that of the settings when None.
        env: Where agents write and settings are, if it is not the process's environment that says so.
        prices: What has no recorded cost is estimated with; the list prices and the user's own when None.
        tz: Whose day `today` is: an IANA name, `local`, or a tzinfo.
        now: The present moment.

    Raises:
        LogNotReadable: There is no such session.
        AmbiguousSession: Several sessions match.
        InvalidSettings: The file of settings cannot be read; a mistake in a budget is in `unavailable`.
        InvalidWindow: There is no such time zone.
    """
    target = session if path is None else os.fspath(path)
    book = None if ledger is None else os.fspath(ledger)
    surroundings = dict(os.environ if env is None else env)
    key = (os.getpid(), target, everything, book, id(prices), tz, tuple(surroundings.items()))
    readers: dict[Any, StatusReader] = _local.__dict__.setdefault("readers", {})
    reader = readers.pop(key, None)
    if reader is None:
        zone = None if tz == "local" else resolve_zone(tz)
        question = StatusQuestion(target=target, everything=everything, zone=zone)
        reader = StatusReader(question=question, env=surroundings, ledger=book, prices=prices)
        while len(readers) >= _KEPT:
            oldest = next(iter(readers))
            with suppress(Exception):  # another process's connection is left alone
                readers.pop(oldest).close()
    readers[key] = reader
    return reader.read(None if now is None else int(now.timestamp() * 1_000_000_000))
