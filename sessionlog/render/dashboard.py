"""Lay out a dashboard: a line for each period, running session and budget, and the commands to type next."""

from __future__ import annotations

from sessionlog._version import __version__
from sessionlog.analytics.columns import counted
from sessionlog.analytics.zones import date_words, local_time
from sessionlog.render.bar import bar, spark
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN, duration, human_count, percent
from sessionlog.render.report import cost_cell, row_cost
from sessionlog.render.status_line import (
    amount_of,
    at_least,
    budget_name,
    level_word,
    severity,
    short_model,
    until_words,
)
from sessionlog.render.table import GAP, Cell, Column, fit_table
from sessionlog.render.times import home_path
from sessionlog.render.trend import change_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.dashboard import Dashboard
    from sessionlog.analytics.trend import PeriodUsage
    from sessionlog.analytics.watch.snapshot import RunningSession
    from sessionlog.render.report import View

RUNNING_SHOWN, BUDGETS_SHOWN = 5, 4
_INDENT = "  "
_LABEL = 9
"""Cells of the labels at the left: the longest is `this week`."""

_ROOMY = 100
_NAME, _PROJECT, _NOTE = 24, 40, 400

_PERIODS = (
    Column("", "cost"),
    Column("", "sessions"),
    Column("", "tokens", rank=2),
    Column("", "trend", rank=1, right=False),
)
_RUNNING = (
    Column("", "model", right=False, least=20),
    Column("", "source", rank=5, right=False),
    Column("", "project", rank=2, right=False, least=12),
    Column("", "bar", rank=4, right=False),
    Column("", "context", rank=1),
    Column("", "cost"),
    Column("", "time", rank=3),
)
_BUDGETS = (
    Column("", "budget", right=False, least=16),
    Column("", "bar", rank=4, right=False),
    Column("", "percent"),
    Column("", "level", rank=1, right=False),
    Column("", "used", rank=2, right=False),
    Column("", "until", rank=3, right=False),
)

COMMANDS = (
    ("usage --since 7d", "what it cost"),
    ("sessions", "what was done"),
    ("replay", "the last session"),
    ("find WORDS", "search sessions"),
    ("watch", "what runs now"),
    ("ui", "browse everything"),
    ("help", "all commands"),
)
"""What to type next, each with what it shows."""

FIRST_STEPS = (
    ("demo", "see it on made-up logs"),
    ("sources", "folders that are read"),
    ("run -- COMMAND", "record any agent"),
    ("help", "all commands"),
)
"""What to type where no session is known."""


def render_dashboard(seen: Dashboard, view: View, *, hidden: Sequence[str] = ()) -> Iterator[Line]:
    """Yield the lines; `hidden` are commands that cannot be used here."""
    yield _title(seen, view)
    yield Line()
    if not seen.whole.sessions:
        yield Line("No agent has left logs here yet, or they are in other folders. To begin:", "secondary")
        yield Line()
        yield from _commands(FIRST_STEPS, view.width)
        return
    room = max(1, view.width - len(_INDENT) - _LABEL - GAP)
    yield from _block(("today", "this week"), _PERIODS, _periods(seen), room)
    running = [_running(one, view) for one in seen.running[:RUNNING_SHOWN]]
    yield from _block(("running",), _RUNNING, running, room)
    yield from _more(len(seen.running) - RUNNING_SHOWN, "running session", "watch")
    budgets = [_budget(*item, view) for item in list(seen.budgets.items())[:BUDGETS_SHOWN]]
    yield from _block(("budgets",), _BUDGETS, budgets, room)
    yield from _more(len(seen.budgets) - BUDGETS_SHOWN, "budget", "budget")
    yield Line()
    yield from _commands([pair for pair in COMMANDS if pair[0] not in hidden], view.width)
    notes = list(_notes(seen))
    if notes:
        yield Line()
        yield from notes


def _title(seen: Dashboard, view: View) -> Line:
    line = Line.of((f"sessionlog {__version__}", "title"))
    if not seen.whole.sessions:
        line.append(" · no sessions yet")
        return line
    line.append(f" · {counted(seen.whole.sessions, 'session')} of {counted(seen.sources, 'agent')}")
    if seen.whole.first_ns is not None:
        zone = view.zone
        first = local_time(seen.whole.first_ns, zone).date()
        line.append(f" since {date_words(first, this_year=view.now.astimezone(zone).year)}")
    if seen.running:
        line.append(" · ")
        line.append(f"{len(seen.running)} running", "unfinished")
    return line


def _block(
    labels: Sequence[str], columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int
) -> Iterator[Line]:
    """Yield a table without headings in `room` cells, with labels at the left of its first rows."""
    if not rows:
        return
    for number, row in enumerate(fit_table(columns, rows, width=room).lines[1:]):
        label = labels[number] if number < len(labels) else ""
        yield Line.of(_INDENT, (f"{label:<{_LABEL}}", "secondary"), " " * GAP, *row.parts)


def _more(count: int, thing: str, command: str) -> Iterator[Line]:
    if count > 0:
        yield Line.of(
            " " * (len(_INDENT) + _LABEL + GAP), (f"+{counted(count, thing)} (`sessionlog {command}`)", "note")
        )


def _periods(seen: Dashboard) -> list[list[Cell]]:
    drawn = spark(seen.days, len(seen.days)) if any(seen.days) else ""
    trend = "" if seen.week_before is None else _trend(seen.week, seen.week_before)
    days = Cell(parts=((drawn, ""), (f" last {len(seen.days)} days", "secondary")) if drawn else ())
    return [[*_sums(seen.today), days], [*_sums(seen.week), Cell(trend)]]


def _sums(used: PeriodUsage) -> list[Cell]:
    return [
        row_cost(used) if used.requests else Cell("nothing yet", style="secondary"),
        Cell(counted(used.sessions, "session") if used.requests else ""),
        Cell(f"{human_count(used.total_tokens)} tokens" if used.requests else ""),
    ]


def _trend(week: PeriodUsage, before: PeriodUsage) -> str:
    by_cost = all(one.cost_nano and not one.cost_is_partial for one in (week, before))
    now, then = (one.cost_nano if by_cost else one.total_tokens for one in (week, before))
    if not now or not then:
        return ""
    return change_text(now, then, "last week by this time", "" if by_cost else "tokens")


def _running(one: RunningSession, view: View) -> list[Cell]:
    share = one.context_percent
    project = "" if one.project == "unknown" else home_path(one.project, view.home)
    now_ns = int(view.now.timestamp()) * 1_000_000_000
    cost = None if one.cost_nano is None else one.cost_nano / 1_000_000_000
    style = "" if share is None else severity(share)
    return [
        Cell(parts=(("● ", "unfinished"), (one_line(short_model(one.model), _NAME) or UNKNOWN, ""))),
        Cell(one_line(one.source, _NAME), style="secondary"),
        Cell(one_line(project, _PROJECT), style="secondary"),
        Cell("" if share is None else bar(min(share, 100) / 100, 10), style=style),
        Cell("" if share is None else f"ctx {percent(share / 100)}", style=style),
        cost_cell(cost, estimated=one.estimated, partial=one.cost_is_partial),
        Cell("" if one.start_ns is None else duration((now_ns - one.start_ns) / 1_000_000), style="secondary"),
    ]


def _budget(name: str, entry: Mapping[str, Any], view: View) -> list[Cell]:
    share = entry["percent"]
    style = severity(share, entry)
    is_percent = entry["unit"] == "percent"
    estimate = "~" if entry.get("estimated") else ""
    of = f"{estimate}{amount_of(entry, 'used')}{at_least(entry)} of {amount_of(entry, 'limit', with_unit=True)}"
    now_ns = int(view.now.timestamp()) * 1_000_000_000
    label = f"{one_line(str(entry['source']), _NAME)} " if is_percent else ""
    return [
        Cell(label + budget_name(name, entry)),
        Cell(bar(min(share, 100) / 100, 10), style=style),
        Cell(percent(share / 100) + at_least(entry), style=style),
        Cell(level_word(entry), style=style),
        Cell("" if is_percent else of, style="estimated" if estimate else ""),
        Cell(until_words(entry["resetsAt"], now_ns, view.zone), style="secondary"),
    ]


def _commands(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[Line]:
    """Yield commands with what they show, in two columns where the width allows."""
    words = max(len(command) for command, _ in pairs)
    about = max(len(text) for _, text in pairs)
    whole = len(_INDENT) + words + GAP + about
    half = (len(pairs) + 1) // 2 if 2 * whole + GAP <= width else len(pairs)
    for first, second in zip(pairs[:half], [*pairs[half:], *[("", "")] * half][:half], strict=True):
        line = Line.of(_INDENT, (f"{first[0]:<{words}}", "title"), " " * GAP, first[1])
        if second[0]:
            line.append(" " * (about - len(first[1]) + GAP + len(_INDENT)))
            line.append(f"{second[0]:<{words}}", "title")
            line.append(" " * GAP + second[1])
        yield line


def _notes(seen: Dashboard) -> Iterator[Line]:
    for note in seen.notes:
        yield Line(one_line(note, _NOTE), "unfinished")
    shown = [seen.today, seen.week]
    if any(one.estimated_nano for one in shown) or any(one.estimated for one in seen.running):
        yield Line(f"~ estimated from {one_line(seen.priced_from, _NOTE)}", "note")
    costs: list[PeriodUsage | RunningSession] = [*shown, *seen.running]
    partial = [one.cost_is_partial and one.cost_nano is not None for one in costs]
    if any(partial) or any(entry.get("unknown") for entry in seen.budgets.values()):
        yield Line("+ at least: a part of it has no price", "note")
    if seen.problem_count:
        yield Line(f"{counted(seen.problem_count, 'damaged piece')} skipped: `sessionlog check` shows more", "note")
