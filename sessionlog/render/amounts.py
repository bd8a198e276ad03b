"""What bars and maps of usage draw: cost where any is known, else tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sessionlog.analytics.usage_row import UsageRow

Amount = Callable[[UsageRow], int]


def amount_of(rows: Iterable[UsageRow]) -> Amount:
    """Return what rows are compared by."""
    if any(row.cost_nano for row in rows):
        return lambda row: row.cost_nano or 0
    return lambda row: row.total_tokens
