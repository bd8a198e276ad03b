"""From paths to a book: every log scanned once, whatever is wrong with some of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.protocol import Log, LogScan, Resume
from sessionlog.sources.record import Problems
from sessionlog.sources.registry import choose_sources

Progress = Callable[[int, int], None]
"""Called with (files done, files in all) as a scan goes on."""


def load_book(
    paths: Iterable[str] | None,
    prices: PriceBook,
    *,
    env: Mapping[str, str] | None = None,
    sources: Sequence[str] = (),
    tools: bool = True,
    progress: Progress | None = None,
) -> Book:
    """Scan the logs under `paths`, or of every agent on this machine, into a book in memory.

    Args:
        paths: Files and folders; None for all places where logs may be.
        prices: What has no recorded cost is estimated with.
        env: The environment, which says where agents write; the process's when None.
        sources: Glob patterns of source ids; all when empty.
        tools: Whether tool calls are wanted too.
        progress: Called after every log.

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    book = Book(prices, tools=tools)
    chosen = choose_sources(sources)
    env = os.environ if env is None else env
    items = list(discover(env, chosen) if paths is None else find_logs(paths, env, chosen))
    for done, item in enumerate(items, 1):
        if isinstance(item, Log):
            book.take(scan_or_explain(item))
        elif item.severity == "info":
            book.unrecognised += 1
        else:
            book.note(Problems(count=1, first=(item,)))
        if progress is not None:
            progress(done, len(items))
    book.settle()
    return book


def scan_or_explain(log: Log, resume: Resume | None = None) -> LogScan:
    """Scan one log of many: one that cannot be opened, or that its source fails on, is a problem among the others."""
    try:
        return log.source.scan(log.path, resume)
    except (LogNotReadable, MissingExtra) as error:
        return _explained(log, "unreadable", str(error).removeprefix(f"{log.path}: "))
    except Exception as error:  # noqa: BLE001 - a source's mistake must not cost the reports of all others
        return _explained(log, "source_failed", f"{log.source.id}: {type(error).__name__}: {error}")


def _explained(log: Log, kind: str, detail: str) -> LogScan:
    problem = Problem(path=log.path, line=0, offset=0, kind=kind, detail=detail)
    return LogScan(problems=Problems(count=1, first=(problem,)))
