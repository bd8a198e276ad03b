"""`sessionlog` alone on a terminal: the short overview, and what to type next."""

from __future__ import annotations

from importlib.util import find_spec

from sessionlog.analytics.dashboard import read_dashboard
from sessionlog.cli import reporting as r
from sessionlog.cli.output import note
from sessionlog.render.dashboard import render_dashboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.settings import Settings


def dashboard() -> None:
    """Show today, this week, what runs, what is left of budgets, and what to type next."""
    context = r.report_context(None)
    rules, config_errors = _budget_rules(context.settings)
    with r.scan_progress() as progress:
        seen = read_dashboard(
            rules=rules, tz=context.zone, now=context.now, env=context.env, ledger=context.ledger,
            prices=r.own_prices(context.settings, None), progress=progress,
        )  # fmt: skip
    hidden = () if find_spec("textual") else ("ui",)
    r.print_lines(lambda width: render_dashboard(seen, context.view(width), hidden=hidden))
    for error in config_errors:
        note(f"sessionlog: {error}")


def _budget_rules(settings: Settings) -> tuple[Sequence[BudgetRule], Sequence[str]]:
    """Return the valid budgets, and the errors of the others."""
    if not settings.budgets:
        return (), ()
    from sessionlog.analytics.budgets.rules import parse_each_budget

    rules, errors = parse_each_budget(settings.budgets, path=settings.config_path)
    return rules, list(errors.values())
