"""Verify: is every byte of the ledger as it was written, and does it say what the logs say?

Four looks, none of which writes: the pages against their sums; SQLite's own check; what is derived against the same
computed anew; and all that the ledger says of the logs that are there against a full scan of them. The first finds any
damage, the others say whether a number depends on it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.compare import Difference, compare_books, compare_derived
from sessionlog.ledger.load import load_book
from sessionlog.ledger.page_sums import PageCheck, check_pages
from sessionlog.ledger.store import is_damaged, open_ledger
from sessionlog.ledger.sync import ELSEWHERE, GONE, UNREADABLE, Progress, Scanner, scan_here
from sessionlog.pricing.book import PriceBook

SCHEMA = "sessionlog.ledger.verify/1"
NAMED = 20
"""Differences that are named; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found.

    Attributes:
        path: The ledger's file.
        pages: The pages and their sums.
        broken: What SQLite, or the attempt to work with the file, says; empty if nothing is wrong.
        derived: What is derived and is not what it should be.
        derived_count: All of that.
        differences: Where ledger and logs say something else.
        difference_count: All of those.
        compared: Sessions that were compared with their logs.
        writing: Sessions left out: their logs were written to meanwhile.
    """

    path: str
    pages: PageCheck
    broken: tuple[str, ...] = ()
    derived: tuple[Difference, ...] = ()
    derived_count: int = 0
    differences: tuple[Difference, ...] = ()
    difference_count: int = 0
    compared: int = 0
    writing: int = 0

    @property
    def numbers_are_right(self) -> bool:
        """Whether all numbers that can be proved are proved."""
        return not (self.broken or self.derived_count or self.difference_count)

    @property
    def is_whole(self) -> bool:
        """Whether nothing at all is wrong."""
        return self.numbers_are_right and not self.pages.damaged and self.pages.state != "unnumbered"

    def to_dict(self) -> dict[str, Any]:
        """The document `sessionlog.ledger.verify/1`."""
        return {
            "schema": SCHEMA,
            "path": self.path,
            "whole": self.is_whole,
            "numbers_are_right": self.numbers_are_right,
            "pages": {
                "sums": self.pages.state,
                "checked": self.pages.pages,
                "damaged": len(self.pages.damaged),
                "first": list(self.pages.damaged[:NAMED]),
            },
            "broken": list(self.broken),
            "derived": {"count": self.derived_count, "first": [asdict(one) for one in self.derived]},
            "differences": {"count": self.difference_count, "first": [asdict(one) for one in self.differences]},
            "compared_sessions": self.compared,
            "written_meanwhile": self.writing,
        }


def verify_ledger(
    path: str,
    prices: PriceBook,
    env: Mapping[str, str] | None = None,
    *,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
) -> Verified:
    """Look at a ledger's file and at all that it says of logs that are there.

    Raises:
        LedgerUnusable: There is nothing to look at, or it is not ours to look at.
    """
    if not os.path.lexists(path):
        raise LedgerUnusable(f"{path}: there is no ledger yet")
    try:
        book = open_ledger(path, prices)
    except LedgerUnusable as error:
        pages = check_pages(path, None)
        if not pages.damaged and not is_damaged(error):
            raise
        said = str(error.__cause__ if is_damaged(error) else error).removeprefix(f"{path}: ")
        return Verified(path=path, pages=pages, broken=(said,))
    try:
        pages = check_pages(path, book.connection)
        broken = _integrity(book)
        if broken:
            return Verified(path=path, pages=pages, broken=broken)
        return _compared(book, path, pages, prices, env, scanner, progress)
    finally:
        book.close()


def _integrity(book: Book) -> tuple[str, ...]:
    try:
        rows = book.connection.execute(f"PRAGMA integrity_check({NAMED})").fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return (str(error),)
    return tuple(str(row[0]) for row in rows if row[0] != "ok")


def _compared(
    book: Book,
    path: str,
    pages: PageCheck,
    prices: PriceBook,
    env: Mapping[str, str] | None,
    scanner: Scanner,
    progress: Progress | None,
) -> Verified:
    """Compare in memory: damage must not spread, and what is new in the logs is no difference."""
    scanned = load_book(None, prices, env=env, scanner=scanner, progress=progress)
    try:
        copy = book.copy()
        derived = compare_derived(copy)
        if derived:
            return Verified(path=path, pages=pages, derived=tuple(derived[:NAMED]), derived_count=len(derived))
        refresh(copy, env, scanner=scanner, trusting=False)
        copy.forget(copy.missing(GONE, ELSEWHERE, UNREADABLE))
        found = compare_books(copy, scanned)
    except Exception as error:  # noqa: BLE001 - a damaged row may be anything, and whatever it breaks is a finding
        return Verified(path=path, pages=pages, broken=(f"{type(error).__name__}: {error}",))
    return Verified(
        path=path,
        pages=pages,
        differences=tuple(found.differences[:NAMED]),
        difference_count=len(found.differences),
        compared=found.compared,
        writing=found.writing,
    )
