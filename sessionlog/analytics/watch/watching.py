"""Watcher: takes snapshots of running sessions, their pace, and what is left of budgets.

Each snapshot brings the ledger up to date (only the new part of a grown log is read) and queries it. Unchanged data is
not queried again: while no log and no other process has written anything, a snapshot costs one stat per log, until the
window's next step begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Self

from sessionlog.analytics.budgets.states import FUNCTIONS, BudgetState, budget_states
from sessionlog.analytics.limits import RateLimit, rate_limits
from sessionlog.analytics.unreadable import notes_of
from sessionlog.analytics.watch.snapshot import (
    Pace,
    Running,
    WatchEvent,
    WatchSnapshot,
    add,
    window_minutes,
    window_start,
)
from sessionlog.analytics.watch.sums import Window, find_events, find_running, last_context, paces_of, running_session
from sessionlog.ledger.book import Book
from sessionlog.ledger.keep_open import KeptBook
from sessionlog.ledger.schema import RUNNING_NS
from sessionlog.pricing.book import PriceBook

if TYPE_CHECKING:
    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.ledger.sync import Progress, Scanner

_LIMITS = "SELECT COUNT(*), TOTAL(time_ns), TOTAL(used_percent), TOTAL(resets_ns) FROM limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The results of the last queries, and the key under which they hold."""

    key: tuple[Any, ...]
    running: tuple[Running, ...]
    paces: Mapping[int, Pace]
    contexts: Mapping[int, tuple[Running, tuple[str, int | None, int | None]]]
    events: tuple[WatchEvent, ...]
    budgets: tuple[BudgetState, ...]
    limits: tuple[RateLimit, ...]
    limits_key: tuple[Any, ...]
    of_future: bool


class Watcher:
    """Takes snapshots of running sessions; for one thread of one process."""

    def __init__(
        self,
        *,
        ledger: str | None,
        prices: PriceBook,
        env: Mapping[str, str],
        zone: tzinfo,
        rules: Sequence[BudgetRule] = (),
        filters: Mapping[str, Sequence[str]] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Opens nothing yet.

        Args:
            ledger: The ledger's file; None for a book in memory.
            prices: Prices of responses without a recorded cost.
            env: The environment, by which the folders of agents' logs are found.
            zone: The time zone of budgets' days, weeks and months.
            rules: The user's own budgets.
            filters: `source`, `project` → glob patterns of which one must match. Budgets are not filtered.
            clock: Returns the present in nanoseconds since 1970.
        """
        self._rules, self._zone, self._clock = tuple(rules), zone, clock
        self._filters = dict(filters or {})
        self._book = KeptBook(ledger, prices, env, prepare=_prepare)
        self._known: _Known | None = None
        self._budget_notes: tuple[str, ...] = ()

    def set_budgets(self, rules: Sequence[BudgetRule], notes: Sequence[str] = ()) -> None:
        """Replace the budgets, and the notes about them."""
        if self._rules != tuple(rules):
            self._rules, self._known = tuple(rules), None
        self._budget_notes = tuple(notes)

    def snapshot(
        self, now_ns: int | None = None, *, scanner: Scanner | None = None, progress: Progress | None = None
    ) -> WatchSnapshot:
        """Return the current state.

        Args:
            now_ns: The present; the clock's if None.
            scanner: Reads the logs; other processes are worthwhile only if much is new, as in the first snapshot.
            progress: Called after every log that is read.
        """
        return self._book.ask(lambda book: self._take(book, now_ns), scanner=scanner, progress=progress)

    def close(self) -> None:
        """Close the ledger; the next snapshot opens it again."""
        self._book.close()
        self._known = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, book: Book, now_ns: int | None) -> WatchSnapshot:
        now = self._clock() if now_ns is None else now_ns
        start_ns = window_start(now)
        key = self._book.version(), start_ns
        known = self._known
        if known is None or known.key != key or known.of_future:
            with book.reading():
                known = self._query(book, key, Window(start_ns=start_ns, now_ns=now, filters=self._filters))
            self._known = known
        return _snapshot(known, now, (*self._budget_notes, *notes_of(book)))

    def _query(self, book: Book, key: tuple[Any, ...], window: Window) -> _Known:
        before, query = self._known, book.query
        running = tuple(find_running(query, window))
        paces, of_future = paces_of(query, window)
        [limits_key] = query(_LIMITS, {})
        limits_key = key[0][0], key[1], *limits_key  # new in each step: a limit's time may have been in the future
        is_same = before is not None and before.limits_key == limits_key
        return _Known(
            key=key,
            running=running,
            paces=paces,
            contexts={one.id: (one, self._context(book, one, key)) for one in running},
            events=find_events(query, window),
            budgets=tuple(budget_states(query, self._rules, now_ns=window.now_ns, zone=self._zone)),
            limits=before.limits if before is not None and is_same else self._limits(book, window.now_ns),
            limits_key=limits_key,
            of_future=of_future or any(one.last_ns >= window.now_ns for one in running),
        )

    def _context(self, book: Book, one: Running, key: tuple[Any, ...]) -> tuple[str, int | None, int | None]:
        """The model of a session's last request, its prompt tokens, and the context window."""
        before = self._known
        if before is not None and before.key[0][0] == key[0][0]:
            old = before.contexts.get(one.id)
            if old is not None and replace(old[0], last_ns=one.last_ns, turns=one.turns) == one:
                return old[1]
        return last_context(book.query, one.id)

    def _limits(self, book: Book, now_ns: int) -> tuple[RateLimit, ...]:
        wanted = [pattern.lower() for pattern in self._filters.get("source", ())]
        limits = rate_limits(book.query, now_ns)
        return tuple(one for one in limits if not wanted or any(fnmatchcase(one.source, each) for each in wanted))


def _prepare(book: Book) -> None:
    """Define the SQL functions that the statements call."""
    for name, function in {**FUNCTIONS, "project_key": str}.items():
        book.define(name, function)


def _snapshot(known: _Known, now_ns: int, notes: tuple[str, ...]) -> WatchSnapshot:
    minutes = window_minutes(now_ns)
    paces = {one: replace(pace, minutes=minutes) for one, pace in known.paces.items()}
    sessions = [
        running_session(one, known.contexts[one.id][1], paces.get(one.id, Pace(minutes=minutes)))
        for one in known.running
        if one.last_ns > now_ns - RUNNING_NS
    ]
    sessions.sort(key=lambda one: (one.pace.total_tokens == 0, -(one.start_ns or 0), one.source, one.session))
    limits = (limit.at(now_ns) for limit in known.limits)
    return WatchSnapshot(
        now_ns=now_ns, sessions=tuple(sessions), totals=add(Pace(minutes=minutes), *paces.values()),
        budgets=known.budgets,
        limits=tuple(limit for limit in limits if not limit.has_reset), events=known.events, notes=notes,
    )  # fmt: skip
