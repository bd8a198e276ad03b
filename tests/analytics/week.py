"""A week of small logs, each named for its lesson, its report, and the texts it is meant to give.

Reports of other logs, and of sessions made by hand, are at the prices of the week.

`SESSIONLOG_UPDATE_GOLDEN=1` writes the texts anew; the diff is what is reviewed.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.usage import aggregate_usage, fold_usage
from sessionlog.analytics.window import UsageWindow
from tests.ledger.entries import NOON, PRICES, book_of

DATA = Path(__file__).parents[2] / "testdata" / "usage"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def fold(*sessions, by=("provider", "model"), start_ns=None, end_ns=None, **fields):
    """The report of sessions made by hand."""
    window = None if start_ns is None and end_ns is None else UsageWindow(start_ns=start_ns, end_ns=end_ns)
    known = {"window": window, "by": by, "filters": {}, "zone": UTC, "now_ns": NOON}
    return fold_usage(book_of(*sessions), Selection(**(known | fields)))


def usage(paths, **options):
    """Usage of any logs."""
    return aggregate_usage(paths, **({"prices": PRICES, "now": NOW} | options))


def week_report(**options):
    """Usage of the week's logs."""
    return usage(DATA / "week", **options)


def week_sessions(**options):
    """The week's sessions."""
    return list_sessions(DATA / "week", **({"prices": PRICES, "now": NOW} | options))


def check_golden(name, text):
    """Compare a text with the file it is meant to be."""
    text = text.replace(str(DATA / "week"), "week")
    path = DATA / name
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
