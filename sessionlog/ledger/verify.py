"""Verify: whether the ledger holds what the logs hold, and still holds what it did of logs that are gone.

Four looks, none of which writes: SQLite's own check of the file; what is kept of logs that are gone, against its
checksums; what is derived, against the same computed anew; and all that is kept of logs that are there, against a full
scan of them. Together they find any damage that a number depends on; bytes that none depends on are not looked at.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.ask import load_book, refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.checksums import find_changed
from sessionlog.ledger.compare import Difference, compare_books, compare_derived
from sessionlog.ledger.schema import ELSEWHERE, GONE, UNREADABLE
from sessionlog.ledger.store import is_damaged, open_ledger
from sessionlog.ledger.sync import Progress, Scanner, scan_here
from sessionlog.pricing.book import PriceBook

SCHEMA = "sessionlog.ledger.verify/2"
NAMED = 20
"""Differences that are named; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was found.

    Attributes:
        path: The ledger's file.
        broken: The error of SQLite, or of the attempt to work with the file; empty without one.
        changed: Logs that are gone and of which not the same is kept any more.
        changed_count: All of those.
        derived: What is derived and is not what it should be.
        derived_count: All of that.
        differences: Where ledger and logs differ.
        difference_count: All of those.
        compared: Sessions that were compared with their logs.
        writing: Sessions left out: their logs were written to meanwhile.
    """

    path: str
    broken: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    changed_count: int = 0
    derived: tuple[Difference, ...] = ()
    derived_count: int = 0
    differences: tuple[Difference, ...] = ()
    difference_count: int = 0
    compared: int = 0
    writing: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.broken or self.changed_count or self.derived_count or self.difference_count)

    def to_dict(self) -> dict[str, Any]:
        """The document `sessionlog.ledger.verify/1`."""
        return {
            "schema": SCHEMA,
            "path": self.path,
            "whole": self.is_whole,
            "broken": list(self.broken),
            "changed": {"count": self.changed_count, "first": list(self.changed)},
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
    """Look at a ledger's file and at all that it holds of logs that are there.

    Raises:
        LedgerUnusable: There is nothing to look at, or it is not ours to look at.
    """
    if not os.path.lexists(path):
        raise LedgerUnusable(f"{path}: there is no ledger yet")
    try:
        book = open_ledger(path, prices)
    except LedgerUnusable as error:
        if not is_damaged(error):
            raise
        return Verified(path=path, broken=(str(error.__cause__).removeprefix(f"{path}: "),))
    with closing(book):
        broken = _integrity(book)
        if broken:
            return Verified(path=path, broken=broken)
        return _compared(book, path, prices, env, scanner, progress)


def _integrity(book: Book) -> tuple[str, ...]:
    try:
        rows = book.connection.execute(f"PRAGMA integrity_check({NAMED})").fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return (str(error),)
    return tuple(str(row[0]) for row in rows if row[0] != "ok")


def _compared(
    book: Book,
    path: str,
    prices: PriceBook,
    env: Mapping[str, str] | None,
    scanner: Scanner,
    progress: Progress | None,
) -> Verified:
    """Compare in memory: damage must not spread, and what is new in the logs is no difference."""
    scanned = load_book(None, prices, env=env, scanner=scanner, progress=progress)
    try:
        changed = find_changed(book.connection)
        if changed:
            return Verified(path=path, changed=tuple(changed[:NAMED]), changed_count=len(changed))
        copy = book.copy()
        derived = compare_derived(copy)
        if derived:
            return Verified(path=path, derived=tuple(derived[:NAMED]), derived_count=len(derived))
        refresh(copy, env, scanner=scanner, trusting=False)
        copy.forget(copy.missing(GONE, ELSEWHERE, UNREADABLE))
        found = compare_books(copy, scanned)
    except Exception as error:  # noqa: BLE001 - a damaged row may be anything, and whatever it breaks is a finding
        return Verified(path=path, broken=(f"{type(error).__name__}: {error}",))
    return Verified(
        path=path,
        differences=tuple(found.differences[:NAMED]),
        difference_count=len(found.differences),
        compared=found.compared,
        writing=found.writing,
    )
