"""From paths to a book in memory: every log scanned once, whatever is wrong with some of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sessionlog.ledger.book import Book
from sessionlog.ledger.sync import Progress, Scanner, scan_here, sync
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.registry import all_sources


def load_book(
    paths: Iterable[str] | None,
    prices: PriceBook,
    *,
    env: Mapping[str, str] | None = None,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
) -> Book:
    """Scan the logs under `paths`, or of every agent on this machine, into a book in memory.

    Args:
        paths: Files and folders; None for all places where logs may be.
        prices: What has no recorded cost is estimated with.
        env: The environment, which says where agents write; the process's when None.
        scanner: Who scans.
        progress: Called after every log.
    """
    book = Book(prices)
    env = os.environ if env is None else env
    found = discover(env, all_sources()) if paths is None else find_logs(paths, env)
    sync(book, list(found), scanner=scanner, progress=progress)
    return book
