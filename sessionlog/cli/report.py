"""`sessionlog report`: the usage of a period as one HTML page."""

from __future__ import annotations

from sessionlog.analytics.budgets.report import BudgetReport
from sessionlog.analytics.overview import overview
from sessionlog.cli import reporting as r
from sessionlog.cli.output import fail, note
from sessionlog.cli.pages import write_page
from sessionlog.render.html.report import render_overview
from sessionlog.render.report import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SESSIONS = 20
"""Sessions that a page lists by default."""


def report(**settings: Any) -> None:
    """Write the usage of a period as one HTML page: days, models, projects, agents, tools, limits, sessions, a year.

    The page needs no network, and reads without its script. Without --since it is about the last 30 days.

    Example: sessionlog report --html usage.html --since 7d
    """
    arguments = r.ReportArguments(settings)
    context = arguments.context()
    if arguments.html is None:
        fail("name the page with --html FILE; - is stdout")
    with r.scan_progress() as progress:
        options = arguments.options(context, progress)
        found = overview(
            context.paths, most_sessions=_SESSIONS if arguments.limit is None else arguments.limit, **options
        )
    view = View(tz=context.zone, now=context.now, home=context.home)
    pages = render_overview(found, view, budgets=_budgets(context), pages={})
    write_page(arguments.html, pages, force=arguments.force)
    for sentence in found.usage.notes:
        note(sentence)


def _budgets(context: r.ReportContext) -> BudgetReport | None:
    """Return the user's budgets; they are those of the ledger."""
    if context.ledger is None or not context.settings.budgets:
        return None
    from sessionlog.cli.budget import report_of

    return report_of(context)
