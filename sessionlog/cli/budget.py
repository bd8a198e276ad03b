"""`sessionlog budget`: what is left to spend, for a person and for a script."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from sessionlog.analytics.budgets.report import IDLE, BudgetReport, report_budgets
from sessionlog.analytics.budgets.rules import BudgetRule, parse_each_budget
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, UNREADABLE, USAGE, Exit, fail, note, print_json, print_text
from sessionlog.errors import LedgerUnusable, LogNotReadable, SessionLogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.render.line import Line
    from sessionlog.render.report import View


def budget(**settings: Any) -> None:
    """Show every budget of config.toml: what is used and reserved, how fast, when it runs out and when it resets.

    Example: sessionlog budget
    """
    arguments = r.ReportArguments(settings)
    form, context = arguments.form, arguments.context()
    rules, config_errors = parse_each_budget(context.settings.budgets, path=context.settings.config_path)
    report = _report(context, rules)
    if report.rows or form != "table":
        r.print_report(report, form, context, table=_table)
    if not context.settings.budgets:
        _print_first_budget(context)
    elif form != "table":
        _print_caveats(report)
    _exit_for_errors(config_errors)


def check(*, names: list[str] | None, warn: bool, **settings: Any) -> None:
    """Exit with 1 if a budget is exceeded, and name it: for cron, CI and hooks.

    Exit codes: 0 no budget is exceeded; 1 one is; 2 a budget in config.toml is invalid, or there is none; 3 none is
    known to be exceeded, but not all is known (a model without a price, an unreadable ledger): the reason is shown.

    Example: sessionlog budget check daily --warn
    """
    arguments = r.ReportArguments(settings)
    context = arguments.context()
    rules, config_errors = parse_each_budget(context.settings.budgets, path=context.settings.config_path)
    if not rules and not config_errors:
        _print_first_budget(context)
        raise Exit(USAGE)
    chosen, config_errors = _choose(rules, config_errors, names) if names else (rules, config_errors)
    report = _report(context, chosen)
    if arguments.as_json:
        print_json(report.to_dict())
    found = report.names("exceeded", "warn") if warn else report.names("exceeded")
    _print_findings(report, found, context)
    _print_caveats(report)
    _print_notes(f"{one.state.name}: {IDLE}" for one in report.rows if one.state.is_idle)
    _exit_for_errors(config_errors, FOUND if found else USAGE)
    if found:
        raise Exit(FOUND)
    if report.unknown:
        raise Exit(UNREADABLE)


def reset(*, ledger: str | None, as_json: bool) -> None:
    """Confirm the clock and the ledger as they are now, after the clock was set, or the ledger deleted or replaced.

    Until then budgets report that what is left is not known. Use and limits stay as they are.

    Example: sessionlog budget reset
    """
    from sessionlog.analytics.budgets.clock import read_clock
    from sessionlog.analytics.budgets.tamper_check import confirm_ledger
    from sessionlog.ledger.opening import open_ledger
    from sessionlog.render.budget import confirmed_document, render_confirmed

    context = r.report_context(None, ledger=ledger)
    path = str(context.ledger)
    with _usable(path), open_ledger(path, r.price_book(context.settings)) as book:
        confirmed = confirm_ledger(book, path, context.env, read_clock())
    if as_json:
        print_json(confirmed_document(path, confirmed))
    else:
        print_text(render_confirmed(confirmed))


def report_of(context: r.ReportContext) -> BudgetReport:
    """Return the report on the valid budgets of config.toml."""
    rules, _ = parse_each_budget(context.settings.budgets, path=context.settings.config_path)
    return _report(context, rules)


def _report(context: r.ReportContext, rules: Sequence[BudgetRule]) -> BudgetReport:
    if not rules:
        return BudgetReport()
    path = str(context.ledger)
    with _usable(path), r.scan_progress() as progress:
        return report_budgets(
            path, rules, r.own_prices(context.settings, None), env=context.env, zone=context.zone, now=context.now,
            jobs=context.jobs, progress=progress,
        )  # fmt: skip


def _table(report: BudgetReport, view: View) -> Iterable[Line]:
    from sessionlog.render.budget import render_budgets

    return render_budgets(report, view)


def _choose(
    rules: Sequence[BudgetRule], config_errors: Mapping[str, str], names: Sequence[str]
) -> tuple[Sequence[BudgetRule], Mapping[str, str]]:
    known = [*(rule.name for rule in rules), *config_errors]
    for name in names:
        if name not in known:
            fail(f"there is no budget {name!r}; there are {', '.join(known)}", USAGE)
    errors = {name: config_errors[name] for name in names if name in config_errors}
    return [rule for rule in rules if rule.name in names], errors


def _exit_for_errors(config_errors: Mapping[str, str], code: int = USAGE) -> None:
    """Exit with `code` if a budget is invalid; called after the valid ones were shown."""
    if config_errors:
        _print_notes(f"sessionlog: {error}" for error in config_errors.values())
        raise Exit(code)


def _print_first_budget(context: r.ReportContext) -> None:
    """Print how to set a first budget."""
    from sessionlog.render.budget_notes import no_budgets

    _print_notes(no_budgets(context.settings.config_path))


def _print_findings(report: BudgetReport, names: Sequence[str], context: r.ReportContext) -> None:
    """Print the budgets with these names, which are exceeded or nearly so."""
    from sessionlog.render.budget import finding

    _print_notes(finding(one, context.view()) for one in report.rows if one.state.name in names)


def _print_caveats(report: BudgetReport) -> None:
    """Print why amounts are incomplete."""
    if report.unknown:
        from sessionlog.render.budget_notes import caveat_notes

        _print_notes(caveat_notes(report))


def _print_notes(sentences: Iterable[str]) -> None:
    sentences = list(sentences)
    if not sentences:
        return
    from sessionlog.render.budget_notes import render_sentences
    from sessionlog.render.stream import PLAIN_WIDTH, plain_width

    width = plain_width(sys.stderr)
    if width is None:
        import shutil

        width = shutil.get_terminal_size().columns
    if width == PLAIN_WIDTH:  # a pipe or a file: one line each, so that grep finds whole sentences
        width = sys.maxsize
    for line in render_sentences(sentences, width):
        note(line)


@contextmanager
def _usable(path: str) -> Iterator[None]:
    """End the command with exit code 3 if the ledger is unreadable: unknown use must not pass as within budget."""
    try:
        yield
    except (LedgerUnusable, LogNotReadable) as error:
        fail(f"what is left is not known: {error}", UNREADABLE)
    except SessionLogError:
        raise
    except Exception as error:  # a damaged row may raise anything
        from sessionlog.analytics.budgets.ledger import LEDGER_ERRORS, ledger_error_text

        if not isinstance(error, LEDGER_ERRORS):
            raise
        fail(f"what is left is not known: {path}: {ledger_error_text(error)}", UNREADABLE)
