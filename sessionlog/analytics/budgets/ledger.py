"""The ledger as budgets query it: with their SQL functions, sealed before a call is allowed, and waited for."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from sessionlog import files
from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.caveats import unreadable_places
from sessionlog.analytics.budgets.states import FUNCTIONS
from sessionlog.errors import SessionLogError
from sessionlog.ledger.keep_open import KeptBook
from sessionlog.ledger.opening import WAIT_SECONDS, next_step
from sessionlog.ledger.refreshing import refresh

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionlog.analytics.budgets.clock import Clock
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.sync import Progress, Scanner
    from sessionlog.pricing.book import PriceBook

LEDGER_ERRORS = (OSError, sqlite3.Error, ValueError, TypeError)
"""What a query of a damaged ledger may raise."""


def keep_open(path: str, prices: PriceBook | None, env: Mapping[str, str], clock: Clock) -> KeptBook:
    """Return a ledger that any thread can query for budgets; it is sealed when it is opened."""

    def prepare(book: Book) -> None:
        for name, function in FUNCTIONS.items():
            book.define(name, function)
        tamper_check.seal(book, path, env, clock())

    return KeptBook(path, prices, env, prepare=prepare, shared=True)


def bring_up_to_date(
    book: Book, env: Mapping[str, str], *, scanner: Scanner | None = None, progress: Progress | None = None
) -> list[str]:
    """Read new log content into the ledger; return the reasons why usage may be incomplete."""
    refresh(book, env, wait=WAIT_SECONDS, scanner=scanner, progress=progress)
    return [*book.notes, *unreadable_places(book)]


def ledger_error_text(error: Exception) -> str:
    """Return why a ledger could not be queried."""
    if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error)):
        return "another process has been writing to the ledger for too long"
    if isinstance(error, SessionLogError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'the ledger'}: {files.reason_of(error)}"
    return f"{type(error).__name__}: {error}; {next_step(error)}"
