"""From paths to a book: every log scanned once, whatever is wrong with some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sessionlog.errors import Problem
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.find import session_logs
from sessionlog.sources.native import scan_or_explain
from sessionlog.sources.record import Problems

Progress = Callable[[int, int], None]
"""Called with (files done, files in all) as a scan goes on."""


def load_book(paths: Iterable[str], prices: PriceBook, *, progress: Progress | None = None) -> Book:
    """Scan the logs under `paths` into a book in memory."""
    book = Book(prices)
    items = list(session_logs(paths))
    for done, item in enumerate(items, 1):
        if isinstance(item, Problem):
            book.note(Problems(count=1, first=(item,)))
            continue
        session, problems = scan_or_explain(item)
        if session is None:
            book.note(problems)
        else:
            book.add(session)
        if progress is not None:
            progress(done, len(items))
    return book
