"""Lay out budgets: a line with a bar for each, and caveats below.

Yellow marks the warn level and incomplete amounts, red an exceeded budget; a column has the same in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sessionlog.analytics.budgets.report import IDLE, BudgetReport, ReportedBudget
from sessionlog.analytics.budgets.rules import BudgetRule
from sessionlog.analytics.budgets.states import BudgetState
from sessionlog.analytics.zones import day_key, zone_name
from sessionlog.render.bar import BAR_CELLS, bar
from sessionlog.render.budget_notes import NAME, caveat_notes
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import ESTIMATED
from sessionlog.render.numbers import UNKNOWN, cost_text, human_count, percent
from sessionlog.render.report import View
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import clock

_STYLES = {"ok": "", "warn": "unfinished", "exceeded": "failed"}
_SCOPE = 60
_SHORT, _ROOMY = 8, 110
"""Cells of a bar on a narrow terminal, and the columns from which a terminal has room for a full bar."""


_COLUMNS = (
    Column("BUDGET", right=False, least=8),
    Column("PER", "time", rank=1, right=False),
    Column("", "bar", right=False),
    Column("USED"),
    Column("OF", "limit"),
    Column("LEFT"),
    Column("%", "percent"),
    Column("", "level", right=False),
    Column("RESERVED", rank=5),
    Column("AN HOUR", "burn rate", rank=4),
    Column("RUNS OUT", rank=2, right=False),
    Column("RESETS", rank=3, right=False),
    Column("OF WHAT", "scope", rank=6, right=False, least=12),
)


def render_budgets(report: BudgetReport, view: View) -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    at = view.stamp(int(view.now.timestamp()) * 1_000_000_000)
    yield Line.of(("Budgets", "title"), f" · {at} ({zone_name(view.zone)})")
    yield Line()
    rows = [_row(one, view) for one in report.rows]
    table = fit_table(_COLUMNS, rows, width=view.width, wide=view.wide)
    yield from table.lines
    yield Line()
    if any(one.state.estimated for one in report.rows):
        yield Line(ESTIMATED, "note")
    if any(one.state.unpriced for one in report.rows):
        yield Line("+ at least: a part of it has no price", "note")
    for sentence in caveat_notes(report):
        yield Line(sentence, "unfinished")
    if table.hidden:
        yield Line(f"hidden columns: {', '.join(table.hidden)} (in --json)", "note")


def _row(one: ReportedBudget, view: View) -> list[Cell]:
    state = one.state
    style = _STYLES[state.level]
    doubtful = "unfinished" if one.caveats else ""
    filled = None if state.is_unknown else min(1.0, state.percent / 100)
    return [
        Cell(one_line(state.name, NAME)),
        Cell(state.rule.span, style="secondary"),
        Cell(bar(filled, BAR_CELLS if view.width >= _ROOMY else _SHORT), style=style or doubtful),
        Cell(used_words(state), style=doubtful or ("estimated" if state.estimated else "")),
        Cell(_bare(state.rule, state.limit)),
        Cell(_left(one), style=doubtful or ("estimated" if state.estimated else "")),
        Cell(percent_words(state), style=style or doubtful),
        Cell(level_words(state, doubtful=bool(one.caveats)), style=style or doubtful),
        Cell(amount_words(state.rule, state.reserved) if state.reserved else ""),
        Cell(amount_words(state.rule, state.burn_per_hour) if state.burn_per_hour else ""),
        Cell(_when(state.runs_out_ns, view), style="" if state.runs_out_ns is None else "unfinished"),
        Cell(_when(state.resets_ns, view), style="secondary"),
        Cell(one_line(_scope(one), _SCOPE), style="secondary"),
    ]


def used_words(state: BudgetState, *, unit: bool = True) -> str:
    """Return the used amount, with `~` if it is estimated and `+` if a part has no price."""
    if state.is_unknown:
        return UNKNOWN
    words = amount_words if unit else _bare
    return words(state.rule, state.used, estimated=state.estimated) + ("+" if state.unpriced else "")


def percent_words(state: BudgetState) -> str:
    """Return the used part of the limit in percent, with `+` if a part has no price."""
    if state.is_unknown:
        return UNKNOWN
    return percent(state.percent / 100) + ("+" if state.unpriced else "")


def level_words(state: BudgetState, *, doubtful: bool = False) -> str:
    """Return the level in a word; "" for a budget that certainly has enough left."""
    if state.is_idle or state.level != "ok":
        return "" if state.level == "ok" else state.level
    if state.is_unknown:
        return "unknown"
    return "at least" if state.unpriced or doubtful else ""


def _left(one: ReportedBudget) -> str:
    left = one.state.left
    if left is None or (one.caveats and left > 0):
        return UNKNOWN
    return _bare(one.state.rule, left, estimated=one.state.estimated and left > 0)


def amount_words(rule: BudgetRule, amount: float, *, estimated: bool = False) -> str:
    """Return an amount with its unit."""
    unit = {"tokens": " tok", "requests": " req"}.get(rule.unit, "")
    return _bare(rule, amount, estimated=estimated) + unit


def _bare(rule: BudgetRule, amount: float, *, estimated: bool = False) -> str:
    """Return an amount without its unit."""
    return cost_text(amount, estimated=estimated) if rule.unit == "usd" else human_count(round(amount))


def _when(time_ns: int | None, view: View) -> str:
    """Return the time of day, with the date unless it is today."""
    if time_ns is None:
        return ""
    today = day_key(int(view.now.timestamp()) * 1_000_000_000, view.zone)
    return clock(time_ns, view.zone) if day_key(time_ns, view.zone) == today else view.stamp(time_ns)


def _scope(one: ReportedBudget) -> str:
    rule = one.state.rule
    parts = [f"session {one.session}"] if one.session else [IDLE] if one.state.is_idle else []
    parts += [" or ".join(patterns) for patterns in rule.filters.values()]
    parts += [f"{key} {' or '.join(patterns)}" for key, patterns in rule.meta.items()]
    parts += [f"without {', '.join(rule.exclude)}"] if rule.exclude else []
    return ", ".join(parts)


def finding(one: ReportedBudget, view: View) -> str:
    """Return the sentence that a budget is exceeded, or nearly used."""
    state = one.state
    shown = used_words(state), _bare(state.rule, state.limit)
    how = "exceeded" if state.level == "exceeded" else "nearly used"
    words = f"{one_line(state.name, NAME)}: {how}: {shown[0]} of {shown[1]} per {state.rule.span}"
    words += f" ({percent_words(state)})" + (f" in session {one_line(one.session, _SCOPE)}" if one.session else "")
    if state.resets_ns is None:
        return words
    return f"{words}, {'resets' if state.rule.period else 'begins to reset'} {_when(state.resets_ns, view)}"


def confirmed_document(path: str, confirmed: Sequence[str]) -> dict[str, Any]:
    """Return the JSON document `sessionlog.budget.reset/1`; `confirmed` lists the resolved doubts."""
    return {"schema": "sessionlog.budget.reset/1", "path": path, "confirmed": list(confirmed)}


def render_confirmed(confirmed: Sequence[str]) -> str:
    """Return a line for each confirmed sentence."""
    lines = [f"confirmed: {one_line(sentence.partition(': `')[0], 400)}" for sentence in confirmed]
    return "".join(f"{line}\n" for line in lines or ["there was nothing to confirm"])
