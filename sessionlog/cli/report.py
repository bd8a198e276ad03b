"""`sessionlog report`: the usage of a period as one HTML page."""

from __future__ import annotations

from sessionlog.analytics.budgets.report import BudgetReport
from sessionlog.analytics.overview import Overview, overview
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.zones import resolve_zone
from sessionlog.cli import reporting as r
from sessionlog.cli.options import SESSIONS_LISTED
from sessionlog.cli.output import fail, note
from sessionlog.cli.pages import page_view, write_page
from sessionlog.cli.session_pages import addresses_from, write_session_pages
from sessionlog.render.html.report import render_overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def report(**settings: Any) -> None:
    """Write the usage of a period as one HTML page: days, models, projects, agents, tools, limits, sessions, a year.

    The page needs no network, and reads without its script. Without --since it is about the last 30 days. With --pages
    the sessions that it lists have pages, too, which it links to.

    Example: sessionlog report --html usage.html --since 7d --pages sessions
    """
    arguments = r.ReportArguments(settings)
    context = arguments.context()
    if arguments.html is None:
        fail("name the page with --html FILE; - is stdout")
    if arguments.html == "-" and arguments.pages is not None:
        fail("--pages needs a report in a file, from which the links lead: name one with --html FILE")
    with r.scan_progress() as progress:
        options = arguments.options(context, progress)
        most = SESSIONS_LISTED if arguments.limit is None else arguments.limit
        found = overview(context.paths, most_sessions=most, **options)
    pages = _pages(found, arguments, context)
    page = render_overview(found, context.view(80), budgets=_budgets(context), pages=pages)
    write_page(arguments.html, page, force=arguments.force)
    for sentence in found.usage.notes:
        note(sentence)


def _pages(found: Overview, arguments: r.ReportArguments, context: r.ReportContext) -> dict[tuple[str, str], str]:
    """Write the pages of the listed sessions if they are asked for; return their addresses for the report."""
    if arguments.pages is None or arguments.html is None:
        return {}
    options = arguments.options(context, None) | {"window": None, "until": None, "filters": None, "limit": None}
    whole = list_sessions(context.paths, **options).rows
    written = write_session_pages(
        found.sessions.rows, arguments.pages, totals={(one.source, one.session): one for one in whole},
        view=page_view(resolve_zone(context.zone), context.now),
        price=r.price_book(context.settings, arguments.prices).price, env=context.env, force=arguments.force,
    )  # fmt: skip
    return addresses_from(arguments.html, written)


def _budgets(context: r.ReportContext) -> BudgetReport | None:
    """Return the user's budgets; they are those of the ledger."""
    if context.ledger is None or not context.settings.budgets:
        return None
    from sessionlog.cli.budget import report_of

    return report_of(context)
