"""Gaps: why what is known of a budget may not be all of it, a sentence each.

A number with a gap is a lower bound of what was used, and what is left is not known.
"""

from __future__ import annotations

import sqlite3

from sessionlog import files
from sessionlog.analytics.budgets import tamper_check
from sessionlog.analytics.budgets.book import BudgetBook
from sessionlog.analytics.budgets.clock import ClockReading
from sessionlog.analytics.budgets.doubts import use_doubts
from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.budgets.sums import Use
from sessionlog.errors import SessionLogError
from sessionlog.ledger.book import Book


def find_gaps(
    place: BudgetBook,
    book: Book,
    rule: BudgetRule,
    now: ClockReading,
    start_ns: int | None,
    use: Use,
    *,
    session: str | None,
) -> list[str]:
    """Return what speaks against `use` being all that was used of a budget since its start.

    Args:
        place: The ledger as budgets ask it.
        book: The same, open.
        rule: The budget.
        now: The present.
        start_ns: Where its time began.
        use: What is known to be used.
        session: The session that was asked for alone; None for all.
    """
    doubts = tamper_check.warnings(book.query, place.path, place.env, now)
    return [*doubts, *use_doubts(book.query, rule, start_ns, use.amount, session=session)]


def error_words(error: Exception) -> str:
    """Say why a ledger could not be asked."""
    if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error)):
        return "another process has been writing to the ledger for too long"
    if isinstance(error, SessionLogError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'the ledger'}: {files.reason_of(error)}"
    return f"{type(error).__name__}: {error}; `sessionlog ledger verify` says more"
