"""Verify: whether the ledger agrees with the logs, and its rows of logs that are gone are unchanged.

Four checks, none of which writes: SQLite's own check of the file; the rows of logs that are gone, against their
checksums; derived values, against recomputed ones; and the rows of existing logs, against a full scan of these.
Together they find any damage that affects a number; other bytes are not checked.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.ask import load_book
from sessionlog.ledger.book import Book
from sessionlog.ledger.checksums import find_changed
from sessionlog.ledger.compare import Difference, compare_books, compare_derived
from sessionlog.ledger.opening import is_damaged, open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import ELSEWHERE, GONE, UNREADABLE
from sessionlog.ledger.sync import Progress, Scanner, scan_here
from sessionlog.pricing.book import PriceBook

SCHEMA = "sessionlog.ledger.verify/2"
NAMED = 20
"""Differences that are named; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of a verification; of each list the first items.

    Attributes:
        path: The ledger's file.
        broken: Errors of SQLite's check, or of using the file; empty without any.
        changed: Logs that are gone and whose rows do not match their checksum.
        changed_count: Their number.
        derived: Derived values that are wrong.
        derived_count: Their number.
        differences: Where ledger and logs differ.
        difference_count: Their number.
        compared: Sessions that were compared with their logs.
        writing: Sessions left out, because their logs were written to meanwhile.
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
        """Whether no check has found anything."""
        return not (self.broken or self.changed_count or self.derived_count or self.difference_count)

    def to_dict(self) -> dict[str, Any]:
        """The document `sessionlog.ledger.verify/2`."""
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
    """Check a ledger's file, and its rows against the logs that exist.

    Raises:
        LedgerUnusable: There is no ledger, or it is not the user's alone.
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


def _without_names(book: Book) -> tuple[str, ...]:
    """Return which names are missing that rows refer to."""
    missing = []
    for table, column, names in ("responses", "label_id", "labels"), ("calls", "name_id", "names"):
        sql = f"SELECT DISTINCT {column} FROM {table} WHERE {column} NOT IN (SELECT id FROM {names})"  # noqa: S608 - names of the schema
        missing += [f"row {number} of {names}, to which {table} refer, is missing" for (number,) in book.query(sql, {})]
    return tuple(missing[:NAMED])


def _compared(
    book: Book,
    path: str,
    prices: PriceBook,
    env: Mapping[str, str] | None,
    scanner: Scanner,
    progress: Progress | None,
) -> Verified:
    """Compare a copy in memory, which is synced first: nothing is written, and new rows of logs are no difference."""
    book.release_memory()
    scanned = load_book(None, prices, env=env, scanner=scanner, progress=progress)
    try:
        scanned.release_memory()
        changed = find_changed(book.connection)
        if changed:
            return Verified(path=path, changed=tuple(changed[:NAMED]), changed_count=len(changed))
        missing = _without_names(book)
        if missing:
            return Verified(path=path, broken=missing)
        copy = book.copy()
        book.release_memory()
        derived = compare_derived(copy)
        if derived:
            return Verified(path=path, derived=tuple(derived[:NAMED]), derived_count=len(derived))
        copy.release_memory()
        refresh(copy, env, scanner=scanner, trusting=False)
        copy.forget(copy.missing(GONE, ELSEWHERE, UNREADABLE))
        found = compare_books(copy, scanned)
    except Exception as error:  # noqa: BLE001 - a damaged row can raise anything, and that is a finding
        return Verified(path=path, broken=(f"{type(error).__name__}: {error}",))
    return Verified(
        path=path,
        differences=tuple(found.differences[:NAMED]),
        difference_count=len(found.differences),
        compared=found.compared,
        writing=found.writing,
    )
