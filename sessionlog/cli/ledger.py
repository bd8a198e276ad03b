"""`sessionlog ledger`: where the ledger is, what is in it, and which of its logs are gone."""

from __future__ import annotations

from contextlib import contextmanager

from sessionlog.analytics.ledger_report import LedgerReport
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, fail
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.summary import summarise_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from sessionlog.ledger.book import Book
    from sessionlog.render.line import Line
    from sessionlog.render.report import View


def ledger(**settings: Any) -> None:
    """Show where the ledger is, what is in it, and which of its logs are gone. It reads no log.

    $SESSIONLOG_LEDGER, or `ledger` in config.toml, names another file.

    Example: sessionlog ledger
    """
    arguments = r.ReportArguments(settings)
    context = arguments.context()
    path = str(context.ledger)
    with usable(path):
        report = LedgerReport.of(summarise_ledger(path))
    r.print_report(report, arguments.form, context, table=_table)


def _table(report: LedgerReport, view: View) -> Iterable[Line]:
    from sessionlog.render.ledger import render_summary

    return render_summary(report, view)


def ledger_context(ledger: str | None, *, tz: str | None = None, now: str | None = None) -> tuple[r.ReportContext, str]:
    """Return the context of a command on the ledger, and the ledger's path."""
    context = r.report_context(None, tz=tz, now=now, ledger=ledger)
    return context, str(context.ledger)


@contextmanager
def opened_ledger(context: r.ReportContext, path: str) -> Iterator[Book]:
    """Yield the ledger, opened for writing; an unusable one ends the command."""
    from sessionlog.ledger.opening import open_ledger

    with usable(path), open_ledger(path, r.own_prices(context.settings, None)) as book:
        yield book


@contextmanager
def usable(path: str) -> Iterator[None]:
    """Report an unusable ledger in one line, with exit code 3."""
    try:
        yield
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except Exception as error:
        from sqlite3 import DatabaseError

        from sessionlog.ledger.opening import next_step

        if not isinstance(error, DatabaseError):
            raise
        fail(f"{path}: {error}; {next_step(error)}", UNREADABLE)
