"""Gaps: why what is known of a budget may not be all of it, a sentence each.

A number with a gap is a lower bound of what was used, and what is left is not known.
"""

from __future__ import annotations

import sqlite3

from sessionlog import files
from sessionlog.analytics.budgets.book import BudgetBook
from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.budgets.sums import Use, unpriced_models, unreadable_logs
from sessionlog.errors import SessionLogError
from sessionlog.ledger import seal
from sessionlog.ledger.book import Book
from sessionlog.ledger.moment import Moment

_FEW = 3


def find_gaps(
    place: BudgetBook, book: Book, rule: BudgetRule, now: Moment, start_ns: int | None, use: Use, *, session: str | None
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
    gaps = seal.doubts(book.query, place.path, place.env, now)
    logs = unreadable_logs(book.query, rule)
    if logs:
        more = f" and {len(logs) - 1:,} more" if len(logs) > 1 else ""
        gaps.append(f"{logs[0]}{more} cannot be read")
    if rule.unit == "usd" and use.unpriced:
        names = unpriced_models(book.query, rule, start_ns, session=session)
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        gaps.append(
            f"there is no price for {', '.join(names[:_FEW])}{more} (requests: {use.unpriced:,}), so at least "
            f"{amount_words(rule, use.amount)} was used; `sessionlog pricing MODEL` says how to set one"
        )
    return gaps


def amount_words(rule: BudgetRule, amount: int) -> str:
    """An amount in a sentence, exact: `$0.031`, `1,200 tokens`."""
    if rule.unit != "usd":
        return f"{amount:,} {rule.unit}"
    whole, _, cents = f"{rule.in_unit(amount):,.9f}".partition(".")
    return f"${whole}.{cents.rstrip('0').ljust(2, '0')}"


def error_words(error: Exception) -> str:
    """Say why a ledger could not be asked."""
    if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error)):
        return "another process has been writing to the ledger for too long"
    if isinstance(error, SessionLogError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'the ledger'}: {files.reason_of(error)}"
    return f"{type(error).__name__}: {error}; `sessionlog ledger verify` says more"
