"""Lay out the report of blocks: the active block and its pace, then the providers' rate limits, then all blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from sessionlog.analytics.block import ActiveBlock, Block, BlockReport
from sessionlog.analytics.columns import counted
from sessionlog.analytics.limits import RateLimit
from sessionlog.analytics.window import describe_window
from sessionlog.render.bar import bar
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import duration, human_count, percent
from sessionlog.render.report import View, cell, closing_notes, cost_cell, heading, row_cost, table_columns
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import clock

_NAME = 40
_LABEL = 9
_FEW = 3
_BAR = 10
_NEARLY_USED = 80
_MINUTE_MS = 60_000
_TIMES = ("start", "end", "is_active", "last")
"""Columns that the table of blocks merges into its first three."""


_LIMIT_COLUMNS = (
    Column("LIMIT", right=False, least=18),
    Column("", "limit bar", rank=3, right=False),
    Column("USED"),
    Column("WINDOW", "limit window", rank=2),
    Column("RESETS", right=False),
    Column("AGE", "limit age", rank=1),
    Column("PLAN", "limit plan", rank=4, right=False, least=6),
)


def render_blocks(report: BlockReport, view: View, *, gaps: bool = False) -> Iterator[Line]:
    """Yield the lines of the terminal view; `gaps` adds a line for each pause between blocks."""
    hidden: list[str] = []
    yield _title(report, view)
    if report.active is not None:
        yield Line()
        yield from _active(report.active, view.zone)
    if report.limits:
        yield Line()
        rows = [_limit(one, view) for one in report.limits]
        limits = fit_table(_LIMIT_COLUMNS, rows, width=view.width, wide=view.wide)
        hidden += limits.hidden
        yield from limits.lines
    if report.rows:
        yield Line()
        sums = [column for column in table_columns(report) if column.name not in _TIMES]
        columns = (
            Column("BLOCK", right=False),
            Column("", "active", rank=1),
            Column("LAST", rank=7),
            *map(heading, sums),
        )
        rows = [[*_times(block, view), *(cell(column, block, view) for column in sums)] for block in report.rows]
        table = fit_table(columns, rows, width=view.width, wide=view.wide)
        hidden += table.hidden
        yield from _with_gaps(report, table.lines) if gaps else table.lines
    yield Line()
    yield from closing_notes(report, hidden)


def limit_rows(report: BlockReport, view: View) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of the table of rate limits, without its bars."""
    named = [n for n, column in enumerate(_LIMIT_COLUMNS) if column.title]
    rows = [_limit(one, view) for one in report.limits]
    return [_LIMIT_COLUMNS[n].title for n in named], [[row[n].text for n in named] for row in rows]


def _title(report: BlockReport, view: View) -> Line:
    who = ", ".join(one_line(source, _NAME) for source in report.sources)
    if len(report.sources) > _FEW:
        who = f"{len(report.sources)} agents"
    many = counted(report.found_blocks, "block") + ("" if report.active is not None else ", none active")
    parts = [who] if who else []
    span = describe_window(report.window, view.tz, now=view.now)
    return Line.of((f"Blocks of {report.hours} h", "title"), *(f" · {part}" for part in (*parts, span, many)))


def _active(active: ActiveBlock, zone: tzinfo) -> Iterator[Line]:
    """Yield the active block in four short lines."""
    block = active.block
    end = clock(block.end_ns, zone)
    begun = f"{clock(block.start_ns, zone)} – {end} · {duration(active.left_ms)} left"
    yield _labelled("now", begun, "title")
    parts = [f"{human_count(block.total_tokens)} tokens", *([] if block.cost_nano is None else [row_cost(block).text])]
    parts += [counted(block.requests, "request"), counted(block.sessions, "session")]
    yield _labelled("used", " · ".join(parts))
    pace, fresh, tokens = active.tokens_per_minute, active.uncached_tokens_per_minute, active.projected_tokens
    if pace is None or fresh is None or tokens is None:
        yield _labelled("pace", "unknown before the first request is a minute old", "secondary")
        return
    costs = (active.cost_usd_per_hour, active.projected_cost_usd)
    hourly, at_end = ("" if cost is None else f" · {_cost(cost, block)}" for cost in costs)
    uncached = f"{human_count(round(fresh))} without cache"
    yield _labelled("pace", f"{human_count(round(pace))} tokens a minute, {uncached}{hourly and f'{hourly} an hour'}")
    yield _labelled(f"by {end}", f"{human_count(tokens)} tokens{at_end} if it goes on like this")


def _cost(usd: float, block: Block) -> str:
    return cost_cell(usd, estimated=bool(block.estimated_nano), partial=block.cost_is_partial).text


def _labelled(label: str, text: str, style: str = "") -> Line:
    return Line.of((f"{label:<{_LABEL}} ", "secondary"), (text, style))


def _limit(one: RateLimit, view: View) -> list[Cell]:
    used, minutes, resets = one.used_percent, one.window_minutes, view.stamp(one.resets_ns)
    over = "window over" if one.resets_ns is None else f"window over since {resets}"
    faded = "secondary" if one.has_reset else ""
    style = faded if used is None or used < _NEARLY_USED else "unfinished" if used < 100 else "failed"
    return [
        Cell(one_line(f"{one.source} {one.name}", _NAME), style=faded),
        Cell(bar(None if used is None else min(1.0, max(0.0, used / 100)), _BAR).rstrip(), style=style),
        Cell(percent(None if used is None else used / 100), style=style),
        Cell(duration(None if minutes is None else minutes * _MINUTE_MS), style="secondary"),
        Cell(over if one.has_reset else resets, style=faded),
        Cell(duration(one.age_ms), style="secondary"),
        Cell(one_line(one.plan, _NAME), style="secondary"),
    ]


def _times(block: Block, view: View) -> list[Cell]:
    return [
        Cell(_span(block, view)),
        Cell("●" if block.is_active else "", style="unfinished"),
        Cell(clock(block.last_ns, view.zone), style="secondary"),
    ]


def _span(block: Block, view: View) -> str:
    """Return start and end; the end has a date only where the block is a day or longer."""
    ends = view.stamp(block.end_ns) if _is_long(block) else clock(block.end_ns, view.zone)
    return f"{view.stamp(block.start_ns)} – {ends}"


def _is_long(block: Block) -> bool:
    return (block.end_ns - block.start_ns) // 1_000_000 >= 24 * 60 * _MINUTE_MS


def _with_gaps(report: BlockReport, lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines of the table, and the pauses between blocks that are longer than a block."""
    yield lines[0]
    newer: Block | None = None
    for block, line in zip(report.rows, lines[1:], strict=True):
        if newer is not None and newer.first_ns - block.last_ns > block.end_ns - block.start_ns:
            pause = duration((newer.first_ns - block.last_ns) // 1_000_000)
            yield Line(f"  {pause} without a request", "secondary", no_wrap=True)
        yield line
        newer = block
