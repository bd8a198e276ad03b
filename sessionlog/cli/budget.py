"""`sessionlog budget`: what is left to spend, for a person and for a script."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sessionlog.analytics.budgets.book import BudgetBook
from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.gaps import error_words
from sessionlog.analytics.budgets.report import IDLE, BudgetReport, report_budgets
from sessionlog.analytics.budgets.rules import BudgetRule, parse_each_budget
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, UNREADABLE, USAGE, Leave, fail, note, print_json, print_text
from sessionlog.engine.scanner import scanner
from sessionlog.errors import LedgerUnusable, LogNotReadable, SessionLogError
from sessionlog.render.budget import (
    confirmed_document,
    finding,
    gap_notes,
    no_budgets,
    render_budgets,
    render_confirmed,
    render_sentences,
)
from sessionlog.render.stream import PLAIN_WIDTH, plain_width


def budget(
    *,
    ledger: str | None,
    jobs: int | None,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
    tz: str | None,
    now: str | None,
) -> None:
    """Show every budget of config.toml: what is used and reserved, how fast, when it runs out and when it resets.

    Example: sessionlog budget
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(None, tz=tz, now=now, ledger=ledger, jobs=jobs)
    rules, flaws = parse_each_budget(where.settings.budgets, path=where.settings.config_path)
    report = _report(where, rules)
    if report.rows or form != "table":
        r.print_report(report, form, where, table=render_budgets)
    if not where.settings.budgets:
        _say(no_budgets(where.settings.config_path))
    elif form != "table":
        _say(gap_notes(report))
    _leave_for(flaws)


def check(
    *,
    names: list[str] | None,
    warn: bool,
    ledger: str | None,
    jobs: int | None,
    as_json: bool,
    tz: str | None,
    now: str | None,
) -> None:
    """Exit with 1 if a budget is exceeded, and name it: for cron, CI and hooks.

    Exit codes: 0 no budget is exceeded; 1 one is; 2 a budget in config.toml is mistaken, or there is none; 3 none is
    known to be exceeded, but not all is known (a model without a price, a ledger that cannot be read): the reason is
    named.

    Example: sessionlog budget check daily --warn
    """
    where = r.reporting(None, tz=tz, now=now, ledger=ledger, jobs=jobs)
    rules, flaws = parse_each_budget(where.settings.budgets, path=where.settings.config_path)
    if not rules and not flaws:
        _say(no_budgets(where.settings.config_path))
        raise Leave(USAGE)
    asked, flaws = _chosen(rules, flaws, names) if names else (rules, flaws)
    report = _report(where, asked)
    if as_json:
        print_json(report.to_dict())
    found = report.names("exceeded", "warn") if warn else report.names("exceeded")
    _say(finding(one, tz=where.zone, now=where.now) for one in report.rows if one.state.name in found)
    _say(gap_notes(report))
    _say(f"{one.state.name}: {IDLE}" for one in report.rows if one.state.is_idle)
    _leave_for(flaws, FOUND if found else USAGE)
    if found:
        raise Leave(FOUND)
    if report.unknown:
        raise Leave(UNREADABLE)


def reset(*, ledger: str | None, as_json: bool) -> None:
    """Confirm the clock and the ledger as they are now, after the one was set or the other deleted or replaced.

    Until then budgets answer that they do not know what is left. Use and limits stay as they are.

    Example: sessionlog budget reset
    """
    where = r.reporting(None, ledger=ledger)
    path = str(where.ledger)
    place = BudgetBook(path, r.price_book(where.settings), where.env, read_clock)
    with _usable(path):
        confirmed = place.confirm()
        place.close()
    if as_json:
        print_json(confirmed_document(path, confirmed))
    else:
        print_text(render_confirmed(confirmed))


def _report(where: r.Reporting, rules: Sequence[BudgetRule]) -> BudgetReport:
    if not rules:
        return BudgetReport()
    path = str(where.ledger)
    prices = r.price_book(where.settings)
    with _usable(path), r.scan_progress() as progress:
        return report_budgets(
            path, rules, prices, env=where.env, zone=where.zone, now=where.now, scanner=scanner(jobs=where.jobs),
            progress=progress,
        )  # fmt: skip


def _chosen(
    rules: Sequence[BudgetRule], flaws: Mapping[str, str], names: Sequence[str]
) -> tuple[Sequence[BudgetRule], Mapping[str, str]]:
    known = [*(rule.name for rule in rules), *flaws]
    for name in names:
        if name not in known:
            fail(f"there is no budget {name!r}; there are {', '.join(known)}", USAGE)
    return [rule for rule in rules if rule.name in names], {name: flaws[name] for name in names if name in flaws}


def _leave_for(flaws: Mapping[str, str], code: int = USAGE) -> None:
    """A budget that cannot be used is no reason to hide the others, and none to pass."""
    if flaws:
        _say(f"sessionlog: {flaw}" for flaw in flaws.values())
        raise Leave(code)


def _say(sentences: Iterable[str]) -> None:
    width = plain_width(sys.stderr) or shutil.get_terminal_size().columns
    if width == PLAIN_WIDTH:  # there is no edge: a line each, for those who search in it
        width = sys.maxsize
    for line in render_sentences(sentences, width):
        note(line)


@contextmanager
def _usable(path: str) -> Iterator[None]:
    """A ledger that cannot be asked is a sentence and an exit code, and never a budget that is kept."""
    try:
        yield
    except (LedgerUnusable, LogNotReadable) as error:
        fail(f"what is left is not known: {error}", UNREADABLE)
    except SessionLogError:
        raise
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:  # a damaged row may be anything
        fail(f"what is left is not known: {path}: {error_words(error)}", UNREADABLE)
