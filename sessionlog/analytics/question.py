"""Question: the parameters of a report, as one frozen value; and `answer`, which runs it on a book."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from sessionlog import files
from sessionlog.analytics.selection import Selection
from sessionlog.engine import scan_in_parallel
from sessionlog.errors import InvalidQuery
from sessionlog.ledger.ask import Where, ask

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing what scans and prices takes 80 ms, which a report without new logs saves
    from collections.abc import Callable, Collection, Mapping, Sequence
    from concurrent.futures import Executor
    from datetime import datetime, tzinfo
    from typing import Any, TypedDict, TypeVar

    from sessionlog.analytics.report import Report
    from sessionlog.analytics.window import UsageWindow
    from sessionlog.engine.spark import Spark
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.seed_table import PricingTable

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None

    _T = TypeVar("_T")
    _R = TypeVar("_R", bound=Report)
    _S = TypeVar("_S", bound=Selection)

    class Options(TypedDict, total=False):
        """The keyword arguments of `aggregate_usage` and the other reports; `Question` documents them."""

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
        engine: Spark | str | None
        jobs: int | None
        progress: Progress | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The parameters of a report.

    Attributes:
        paths: Files or folders; native sessions and the logs of every agent when None. Missing paths are ignored.
        window: A `UsageWindow` or its text (`7d`, `today`, `2026-11-01..`); all time when None.
        since: Same as `window`, under the name of the command's option; give one of them.
        until: The window's end, as in the command's `--until`.
        by: Group keys; the report's default when None.
        filters: Key → glob patterns: `provider`, `model`, `project`, `status`, `source`; of tools `tool` and `server`.
        tz: The time zone of days: an IANA name, `local`, or a tzinfo.
        now: The present, for relative windows and to distinguish running from unfinished sessions.
        prices: Prices of responses without a recorded cost, a table's before the list prices; the list prices when
            None.
        sort: A column to sort by, largest first; or a group key, smallest first. `-NAME` reverses the order.
        limit: The number of rows to keep, of hours to months without `sort` the newest; totals are over all.
        merge_worktrees: Count a git worktree as the project it belongs to.
        env: The environment, by which the folders of agents' logs are found; the process's when None.
        ledger: The ledger's file; without paths only changed logs are read, and deleted logs still count. None scans
            all logs into memory.
        live: Leave out deleted logs that the ledger still has.
        executor: Where logs are scanned: any executor of `concurrent.futures`; None starts processes if worthwhile.
        engine: A cluster that scans the logs, matches their copies and sums: `"spark"`, or an `engine.spark.Spark`. No
            ledger's file is used then.
        jobs: The number of processes; 1 scans in this one.
        progress: Called with (files done, files in all).

    Raises:
        InvalidQuery: `since` and `window` are both given, or the engine is unknown.
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
    engine: Spark | str | None = None
    jobs: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.window is not None:
            raise InvalidQuery("since and window mean the same: give one of them")
        if isinstance(self.engine, str) and self.engine != "spark":
            raise InvalidQuery(f"there is no engine {self.engine!r}; there is spark")

    def selection(self, kind: type[_S], by: Sequence[str] = ()) -> _S:
        """Return the selection of records; `by` are the default group keys.

        Raises:
            InvalidWindow: The window is outside the grammar.
            InvalidQuery: A group key or filter is unknown.
        """
        return kind.of(
            self.window if self.since is None else self.since, until=self.until,
            by=by if self.by is None else self.by, filters=self.filters, tz=self.tz, now=self.now,
            merge_worktrees=self.merge_worktrees,
        )  # fmt: skip

    def price_book(self) -> PriceBook:
        """Return the prices for estimates."""
        from sessionlog.pricing.book import PriceBook

        if isinstance(self.prices, PriceBook):
            return self.prices
        return PriceBook.load(None if self.prices is None else self.prices.to_own())

    def own_prices(self) -> PriceBook | None:
        """Return the prices for estimates; None for the list prices, which are loaded on demand."""
        return None if self.prices is None else self.price_book()


def answer(
    question: Question,
    fold: Callable[[Book], _T],
    *,
    needs_logs: str = "",
    cuts: Collection[int] | None = None,
    with_calls: bool = True,
    by_time: bool = False,
) -> _T:
    """Call `fold` with an up-to-date book for the question, and return its result.

    Args:
        question: The parameters of the report.
        fold: Makes the report.
        needs_logs: Why what machines have exported cannot answer it; empty if it can.
        cuts: The instants at which the time windows of `fold` begin or end, if it reads sums of records alone: then an
            engine returns no others. None if it reads single records.
        with_calls: Whether `fold` reads tool calls.
        by_time: Whether `fold` reads the times of sums also where the question has no time window.

    Raises:
        InvalidQuery: A source filter matches no agent, or the paths are exports that cannot answer the question.
    """
    given = path_texts(question.paths)
    if given is None or not any(map(files.is_url, given)):
        return _answer(question, fold, needs_logs, cuts, with_calls=with_calls, by_time=by_time)
    from sessionlog.files.remote import opened

    with opened(given) as names:
        question = replace(question, paths=names)
        return _answer(question, fold, needs_logs, cuts, with_calls=with_calls, by_time=by_time)


def answer_sorted(question: Question, empty: _R, fold: Callable[[Book], _R], **options: Any) -> _R:
    """Call `answer`, and return the report with its rows sorted and limited; `empty` is the report without rows.

    In their default order, hours to months come oldest first, and a limit keeps the newest.

    Raises:
        InvalidQuery: The column to sort by is unknown: before anything is read; or as for `answer`.
    """
    empty.sorted_by(question.sort)
    report, limit = answer(question, fold, **options), question.limit
    return report.sorted_by(question.sort).limited(limit) if question.sort else report.limited_to_newest(limit)


def _answer(
    question: Question,
    fold: Callable[[Book], _T],
    needs_logs: str,
    cuts: Collection[int] | None,
    *,
    with_calls: bool,
    by_time: bool,
) -> _T:
    paths, ledger = log_paths(question.paths), None if question.ledger is None else os.fspath(question.ledger)
    if paths:
        from sessionlog.analytics.place import answer_from_places, places_among

        places = places_among(paths)
        if places and needs_logs:
            raise InvalidQuery(f"{places[0]}: {needs_logs}")
        if places:
            check_source_names(question.filters)
            is_timed = by_time or bool(question.window or question.since or question.until)
            return answer_from_places(
                places, fold, by=question.by or (), filters=question.filters or {}, is_timed=is_timed,
                prices=question.prices, now=question.now,
            )  # fmt: skip
    if question.engine is not None:
        check_source_names(question.filters)
        return _answer_by_engine(question, paths, fold, cuts=cuts, with_calls=with_calls)
    check_source_names(question.filters)
    where = Where(
        paths=paths, ledger=ledger, env=question.env, prices=question.own_prices(), live=question.live,
        scanner=scan_in_parallel(question.executor, question.jobs), progress=question.progress,
    )  # fmt: skip
    return ask(where, fold)


def _answer_by_engine(
    question: Question,
    paths: Sequence[str] | None,
    fold: Callable[[Book], _T],
    *,
    cuts: Collection[int] | None,
    with_calls: bool,
) -> _T:
    """Call `fold` with a book of what an engine has scanned and summed."""
    from sessionlog.engine.spark import Spark
    from sessionlog.ledger.ask import load_book

    engine = question.engine if isinstance(question.engine, Spark) else Spark()
    full_paths = None if paths is None else list(map(files.absolute_path, paths))  # workers have other current folders
    with engine.open_job(cuts=cuts, with_calls=with_calls, progress=question.progress) as job:
        book = load_book(full_paths, question.price_book(), env=question.env, scanner=job.scan)
        job.fill(book)
    try:
        return fold(book)
    finally:
        book.close()


def log_paths(paths: Paths) -> list[str] | None:
    """Return those of the given paths that exist; None means all agents' folders."""
    given = path_texts(paths)
    return None if given is None else [text for text in given if files.exists(text)]


def path_texts(paths: Paths) -> list[str] | None:
    """Return the given paths as texts; None means all agents' folders."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths] if os.fspath(paths) else []
    return None if paths is None else [os.fspath(path) for path in paths]


def check_source_names(filters: Mapping[str, Sequence[str]] | None) -> None:
    """Check that each `source` filter matches an agent: an empty report would look like no usage.

    Raises:
        InvalidQuery: A pattern matches no source.
    """
    wanted = _sources(filters)
    if wanted:
        from sessionlog.sources.names import OURS, choose_ids

        try:
            choose_ids(OURS, wanted)
        except InvalidQuery:
            from sessionlog.sources.registry import choose_sources

            choose_sources(wanted)  # one of another package, for which every source has to be loaded


def _sources(filters: Mapping[str, Sequence[str]] | None) -> Sequence[str]:
    wanted = (filters or {}).get("source", ())
    return [wanted] if isinstance(wanted, str) else wanted
