"""Question: what a report is asked, as one frozen value; and who answers it.

While no log has changed, the ledger's file answers as it is, without what scans and prices.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, TypeVar

from sessionlog.analytics.selection import Selection
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.cached import ask_current

if TYPE_CHECKING:  # what scans and prices costs 80 ms, which a report without news saves
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor
    from datetime import datetime, tzinfo

    from sessionlog.analytics.window import UsageWindow
    from sessionlog.ledger.reading import ReadBook
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.seed_table import PricingTable

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None

_T = TypeVar("_T")
_S = TypeVar("_S", bound=Selection)


class Options(TypedDict, total=False):
    """What `aggregate_usage` and the other reports take by name; `Question` says what each means."""

    window: UsageWindow | str | None
    since: str | None
    until: str | None
    by: Sequence[str] | None
    filters: Mapping[str, Sequence[str]] | None
    tz: str | tzinfo
    now: datetime | None
    prices: PriceBook | PricingTable | None
    sort: str | None
    limit: int | None
    merge_worktrees: bool
    env: Mapping[str, str] | None
    ledger: str | os.PathLike[str] | None
    live: bool
    executor: Executor | None
    jobs: int | None
    progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a report is asked.

    Attributes:
        paths: Files or folders; our own sessions and every agent found when None. What does not exist is empty.
        window: A `UsageWindow` or its text (`7d`, `today`, `2026-11-01..`); all time when None.
        since: Same as `window`, under the name of the command's option; give one of them.
        until: The window's end, as in the command's `--until`.
        by: Group keys; the report's own when None.
        filters: Key → glob patterns: `provider`, `model`, `project`, `status`, `source`; of tools `tool` and `server`.
        tz: Whose days: an IANA name, `local`, or a tzinfo.
        now: The present moment, for relative windows and for telling running from unfinished sessions.
        prices: Prices for what has no recorded cost, a table's above the list prices; the list prices when None.
        sort: A column to sort by, largest first; a group key, smallest first. `-NAME` turns the order round.
        limit: How many rows to keep; totals are over all.
        merge_worktrees: Count a git worktree as the project it belongs to.
        env: Where agents write, if it is not the process's environment that says so.
        ledger: The file that remembers what was read; without paths only what changed is read, and logs that were
            deleted still count. None scans everything anew, in memory.
        live: Leave out what the ledger remembers of logs that are gone.
        executor: Where logs are scanned: any executor of `concurrent.futures`; new processes when it pays if None.
        jobs: How many processes; 1 scans in this one.
        progress: Called with (files done, files in all).

    Raises:
        InvalidQuery: `since` and `window` are both given.
    """

    paths: Paths = None
    window: UsageWindow | str | None = None
    since: str | None = None
    until: str | None = None
    by: Sequence[str] | None = None
    filters: Mapping[str, Sequence[str]] | None = None
    tz: str | tzinfo = "UTC"
    now: datetime | None = None
    prices: PriceBook | PricingTable | None = None
    sort: str | None = None
    limit: int | None = None
    merge_worktrees: bool = False
    env: Mapping[str, str] | None = None
    ledger: str | os.PathLike[str] | None = None
    live: bool = False
    executor: Executor | None = None
    jobs: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.window is not None:
            raise InvalidQuery("since and window say the same: give one of them")

    def selection(self, kind: type[_S], by: Sequence[str] = ()) -> _S:
        """Return which records are asked for; `by` are the group keys unless the question names some.

        Raises:
            InvalidWindow: The window is outside the grammar.
            InvalidQuery: A group key or filter does not exist.
        """
        return kind.of(
            self.window if self.since is None else self.since, until=self.until,
            by=by if self.by is None else self.by, filters=self.filters, tz=self.tz, now=self.now,
            merge_worktrees=self.merge_worktrees,
        )  # fmt: skip

    def price_book(self) -> PriceBook:
        """Return the prices that estimates are made with."""
        from sessionlog.pricing.book import PriceBook  # noqa: PLC0415 - see above

        if isinstance(self.prices, PriceBook):
            return self.prices
        return PriceBook.load(None if self.prices is None else self.prices.to_own())


def answer(question: Question, fold: Callable[[ReadBook], _T]) -> _T:
    """Put a question to the book that knows, and return what `fold` makes of it.

    Raises:
        InvalidQuery: A source filter fits no agent.
    """
    paths, ledger = log_paths(question.paths), None if question.ledger is None else os.fspath(question.ledger)
    if ledger is not None and paths is None and question.prices is None and not question.live:
        env = os.environ if question.env is None else question.env
        found = ask_current(ledger, env, lambda book: fold(book) if _knows(book, question.filters) else None)
        if found is not None:
            return found
    check_source_names(question.filters)
    from sessionlog.engine.scanner import scanner  # noqa: PLC0415 - see above
    from sessionlog.ledger.ask import Where, ask  # noqa: PLC0415 - see above

    where = Where(
        paths=paths, ledger=ledger, env=question.env, live=question.live,
        scanner=scanner(question.executor, question.jobs), progress=question.progress,
    )  # fmt: skip
    return ask(where, question.price_book(), fold)


def log_paths(paths: Paths) -> list[str] | None:
    """Return the existing ones of the given paths; None means everywhere."""
    if paths is None:
        return None
    if isinstance(paths, str | os.PathLike):
        paths = [paths] if os.fspath(paths) else []
    return [text for text in (os.fspath(path) for path in paths) if os.path.lexists(text)]


def check_source_names(filters: Mapping[str, Sequence[str]] | None) -> None:
    """Refuse a `source` filter that fits no agent: nothing found would look like nothing used.

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    wanted = _sources(filters)
    if wanted:
        from sessionlog.sources.registry import OURS, choose_sources  # noqa: PLC0415 - see above

        if not all(name in OURS for name in wanted):  # others, and patterns, need every source to be loaded
            choose_sources(wanted)


def _sources(filters: Mapping[str, Sequence[str]] | None) -> Sequence[str]:
    wanted = (filters or {}).get("source", ())
    return [wanted] if isinstance(wanted, str) else wanted


def _knows(book: ReadBook, filters: Mapping[str, Sequence[str]] | None) -> bool:
    """Whether all agents that are wanted are in the book under these very names: then there are such agents."""
    known = {source for (source,) in book.query("SELECT DISTINCT source FROM sessions", {})} if filters else ()
    return all(name in known for name in _sources(filters))
