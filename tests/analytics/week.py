"""A week of small logs, each named for its lesson, its report, and the texts it is meant to give.

`SESSIONLOG_UPDATE_GOLDEN=1` writes the texts anew; the diff is what is reviewed.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.usage import aggregate_usage
from tests.ledger.entries import PRICES

DATA = Path(__file__).parents[2] / "testdata" / "usage"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def week_report(**options):
    """Usage of the week's logs."""
    return aggregate_usage(DATA / "week", **({"prices": PRICES, "now": NOW} | options))


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
