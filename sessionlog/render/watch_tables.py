"""Lay out the tables of a watch: running sessions, budgets, and the last events; each counts its hidden rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from sessionlog.analytics.budgets.states import BudgetState
from sessionlog.analytics.columns import counted
from sessionlog.analytics.limits import RateLimit, stamp
from sessionlog.analytics.watch.snapshot import Pace, RunningSession, WatchEvent, WatchSnapshot
from sessionlog.analytics.zones import local_time
from sessionlog.events.money import usd as dollars
from sessionlog.events.names import UNKNOWN as MISSING
from sessionlog.render.bar import bar, spark
from sessionlog.render.budget import amount_words, level_words, percent_words, used_words
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN, cost_text, duration, human_count, percent
from sessionlog.render.report import cost_cell
from sessionlog.render.sessions import MARKS
from sessionlog.render.status_line import severity, short_model, until_words
from sessionlog.render.table import GAP, Cell, Column, fit_table
from sessionlog.render.times import home_path

ROOMY = 120
"""The width from which bars and sparklines are long."""

_RUNNING = MARKS["running"]
_QUIET_NS = 60 * 1_000_000_000
_SHORT_ID, _TAIL = 12, 8
_STYLES = {"ok": "", "warn": "unfinished", "exceeded": "failed"}
_LENGTHS = {300: "5h", 10080: "7d"}

_COLUMNS = (
    Column("  SESSION", "session", right=False, least=11),
    Column("SOURCE", rank=6, right=False),
    Column("MODEL", right=False, least=9),
    Column("PROJECT", rank=5, right=False, least=10),
    Column("TURNS", rank=7),
    Column("CALLS", rank=4),
    Column("TOKENS"),
    Column("COST"),
    Column("TOK/MIN", "tokens a minute"),
    Column("PER MIN", "cost a minute", rank=2),
    Column("CONTEXT"),
    Column("LAST", rank=8),
)
_BUDGETS = (
    Column("BUDGET", right=False, least=10),
    Column("", "bar", right=False),
    Column("%", "percent"),
    Column("", "level", rank=4, right=False),
    Column("USED", rank=1),
    Column("OF", "limit", rank=1),
    Column("RUNS OUT", rank=2, right=False),
    Column("RESETS", rank=3, right=False),
)
_EVENTS = (
    Column("TIME"),
    Column("SESSION", right=False),
    Column("EVENT", right=False, least=12),
    Column("", "detail", right=False, least=20),
)


_WIDTHS = {
    "session": 11, "source": 11, "model": 9, "project": 10, "turns": 5, "calls": 5, "tokens": 6, "cost": 8,
    "tokens a minute": 7, "cost a minute": 8, "context": 6, "last": 4,
    "budget": 10, "bar": 0, "percent": 6, "level": 8, "used": 8, "limit": 8, "runs out": 9, "resets": 9,
}  # fmt: skip
"""The usual width of each column. It decides which columns are shown, so that columns do not appear and vanish with
their content from one picture to the next."""


def _lay_out(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int, cells: int) -> tuple[Line, ...]:
    """Lay out rows in the columns that fit the width; `cells` is the width of bars and sparklines."""
    wide = {"tokens a minute": cells, "context": cells, "bar": cells}
    shown = [(index, one, _WIDTHS[one.name] + wide.get(one.name, 0)) for index, one in enumerate(columns)]
    while sum(size + GAP for *_, size in shown) - GAP > width and any(one.rank for _, one, _ in shown):
        shown.remove(max(shown, key=lambda each: (each[1].rank, each[0])))
    kept = [Column(one.title, one.name, right=one.right, least=one.least) for _, one, _ in shown]
    return fit_table(kept, [[row[index] for index, *_ in shown] for row in rows], width=width).lines


def session_lines(snapshot: WatchSnapshot, most: int, width: int, home: str) -> list[Line]:
    """Return the running sessions, at most `most`."""
    if not snapshot.sessions:
        return [Line("No session is running.", "secondary")]
    cells = 10 if width >= ROOMY else 5
    rows = [_session(one, snapshot.now_ns, cells, home) for one in snapshot.sessions[:most]]
    lines = _lay_out(_COLUMNS, rows, width, cells)
    return [*lines, *_more(len(snapshot.sessions) - len(rows), "session")]


def _session(one: RunningSession, now_ns: int, cells: int, home: str) -> list[Cell]:
    quiet = now_ns - one.last_ns >= _QUIET_NS
    project = "" if one.project == MISSING else one_line(home_path(one.project, home), 30)
    share = one.context_percent
    filled = UNKNOWN if share is None else f"{bar(share / 100, cells)} {percent(share / 100):>5}"
    if share is None and one.context_tokens is not None:
        filled = human_count(one.context_tokens)
    return [
        Cell(f"{_RUNNING[0]} {short_id(one.session)}", style="secondary" if quiet else _RUNNING[1]),
        Cell(one_line(one.source, 14), style="secondary"),
        Cell(one_line(short_model(one.model), 24) or UNKNOWN),
        Cell(project, style="secondary"),
        Cell(UNKNOWN if one.turns is None else human_count(one.turns)),
        Cell(human_count(one.requests)),
        Cell(human_count(one.total_tokens)),
        _cost(one.cost_nano, estimated=one.estimated, partial=one.cost_is_partial),
        Cell(f"{spark(one.pace.steps, cells)} {tokens_pace(one.pace):>6}" if one.pace.total_tokens else "0"),
        Cell(cost_pace(one.pace) if one.pace.total_tokens else "0", style="estimated" if one.pace.estimated else ""),
        Cell(filled, style="" if share is None else severity(share)),
        Cell(_ago(now_ns - one.last_ns), style="secondary"),
    ]


def budget_lines(snapshot: WatchSnapshot, most: int, width: int, zone: tzinfo) -> list[Line]:
    """Return the budgets and the providers' rate limits, at most `most`, the fullest first."""
    own = [(one.percent, _budget(one, snapshot.now_ns, zone, width)) for one in snapshot.budgets]
    own += [(one.used_percent or 0, _limit(one, snapshot.now_ns, zone, width)) for one in snapshot.limits]
    if not own:
        return []
    own.sort(key=lambda pair: -pair[0])
    rows = [row for _, row in own[:most]]
    columns = _BUDGETS if snapshot.budgets else _BUDGETS[:3] + _BUDGETS[-1:]
    if not snapshot.budgets:
        rows = [[*row[:3], row[-1]] for row in rows]
    return [*_lay_out(columns, rows, width, _bar_cells(width)), *_more(len(own) - len(rows), "budget")]


def _budget(one: BudgetState, now_ns: int, zone: tzinfo, width: int) -> list[Cell]:
    style = _STYLES[one.level] or ("unfinished" if one.unpriced else "")
    return [
        Cell(one_line(one.name, 24)),
        Cell(bar(None if one.is_unknown else min(1.0, one.percent / 100), _bar_cells(width)), style=style),
        Cell(percent_words(one), style=style),
        Cell(level_words(one), style=style),
        Cell(used_words(one, unit=False), style="estimated" if one.estimated else ""),
        Cell(amount_words(one.rule, one.limit)),
        Cell(_until(one.runs_out_ns, now_ns, zone), style="" if one.runs_out_ns is None else "unfinished"),
        Cell(_until(one.resets_ns, now_ns, zone), style="secondary"),
    ]


def _limit(one: RateLimit, now_ns: int, zone: tzinfo, width: int) -> list[Cell]:
    share = one.used_percent or 0
    minutes = one.window_minutes
    length = _LENGTHS.get(round(minutes / 10) * 10) if minutes else None
    style = severity(share)
    return [
        Cell(f"{one_line(one.source, 14)} {length or one_line(one.name, 14)}"),
        Cell(bar(min(1.0, max(0.0, share / 100)), _bar_cells(width)), style=style),
        Cell(percent(share / 100), style=style),
        Cell(""),
        Cell(""),
        Cell(""),
        Cell(""),
        Cell(_until(one.resets_ns, now_ns, zone), style="secondary"),
    ]


def _bar_cells(width: int) -> int:
    return 20 if width >= ROOMY else 8


def event_lines(snapshot: WatchSnapshot, most: int, width: int, zone: tzinfo) -> list[Line]:
    """Return the last events, at most `most`, newest first."""
    rows = [_event(one, zone) for one in snapshot.events[:most]]
    return list(fit_table(_EVENTS, rows, width=width).lines) if rows else []


def _event(one: WatchEvent, zone: tzinfo) -> list[Cell]:
    style = "failed" if one.failed else ""
    took = [] if one.duration_ms is None or not one.finished else [_took(one.duration_ms)]
    details: list[str] = []
    match one.kind:
        case "response":
            what = "request failed" if one.failed else "response"
            if one.tokens is not None and any(one.tokens):
                details.append(f"{human_count(one.tokens[1])} tokens out, {human_count(one.tokens[0])} in")
            if one.cost_nano is not None:
                details.append(cost_text(dollars(one.cost_nano), estimated=one.estimated))
            details += [*took, one_line(short_model(one.name), 30)]
        case "tool":
            what = f"tool {one_line(one.name, 30)}"
            details = [*(["failed"] if one.failed else [] if one.finished else ["no result yet"]), *took]
        case "end":
            what, details = "session ended", [one_line(one.name, 30).replace("_", " ")]
        case _:
            what, details = "session began", [one_line(one.source, 20)]
    return [
        Cell(f"{local_time(one.time_ns, zone):%H:%M:%S}", style="secondary"),
        Cell(short_id(one.session), style="secondary"),
        Cell(what, style=style),
        Cell(" · ".join(details), style=style or "secondary"),
    ]


def _more(count: int, thing: str) -> list[Line]:
    return [Line(f"+{counted(count, f'more {thing}')}", "note")] if count > 0 else []


def short_id(session: str) -> str:
    """Return an id that `status` and `replay` accept: whole, or its end if it is long."""
    if len(session) <= _SHORT_ID:
        return one_line(session, _SHORT_ID)
    tail = session[-_TAIL:]
    return f"…{one_line(tail, _SHORT_ID - 1)}"


def _cost(nano: int | None, *, estimated: bool, partial: bool) -> Cell:
    return cost_cell(None if nano is None else dollars(nano), estimated=estimated, partial=partial)


def cost_pace(pace: Pace) -> str:
    """Return the cost per minute with its marks."""
    return cost_cell(pace.cost_per_minute, estimated=pace.estimated, partial=pace.cost_is_partial).text


def tokens_pace(pace: Pace) -> str:
    """Return the tokens per minute."""
    return human_count(round(pace.tokens_per_minute))


def _until(time_ns: int | None, now_ns: int, zone: tzinfo) -> str:
    return until_words(stamp(time_ns), now_ns, zone).removeprefix("until ")


def _took(milliseconds: float) -> str:
    """Format a duration; 0 is `<1 ms`, since some logs round to whole milliseconds."""
    return "<1 ms" if 0 <= milliseconds < 1 else duration(milliseconds)


def _ago(span_ns: int) -> str:
    seconds = max(0, span_ns) // 1_000_000_000
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60}m"
