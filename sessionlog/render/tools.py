"""How tools look: table, CSV and Markdown. Most calls first; what a column means is said where its name cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

from sessionlog.analytics.tool_row import COLUMNS, ToolReport, ToolRow
from sessionlog.analytics.window import describe_window
from sessionlog.render.line import Line
from sessionlog.render.notes import counted
from sessionlog.render.numbers import UNKNOWN, duration, percent, size
from sessionlog.render.report import closing_notes, count_cell, grouped_csv, grouped_markdown, render_grouped
from sessionlog.render.table import Cell, Column

_LEAST_KEY = 14
_MANY_ERRORS = 0.2


def _error_rate(row: ToolRow) -> Cell:
    rate = row.error_rate
    return Cell(text=percent(rate), style="failed" if rate is not None and rate > _MANY_ERRORS else "")


def _mean(row: ToolRow) -> Cell:
    mean = row.output_bytes_mean
    return Cell(text=UNKNOWN if mean is None else size(round(mean)))


_COLUMNS: Sequence[tuple[Column, Callable[[ToolRow], Cell]]] = (
    (Column(title="CALLS", name="calls"), lambda r: count_cell(r.calls)),
    (Column(title="OPEN", name="open calls", rank=8), lambda r: count_cell(r.open_calls, "unfinished")),
    (Column(title="ERRORS", name="errors", rank=4), lambda r: count_cell(r.errors)),
    (Column(title="RATE", name="error rate", rank=1), _error_rate),
    (Column(title="P50", name="duration p50", rank=3), lambda r: Cell(text=duration(r.duration_p50_ms))),
    (Column(title="P95", name="duration p95", rank=2), lambda r: Cell(text=duration(r.duration_p95_ms))),
    (Column(title="TIME", name="total time", rank=6), lambda r: Cell(text=duration(r.duration_ms))),
    (Column(title="OUTPUT", name="output", rank=5), lambda r: Cell(text=size(r.output_bytes))),
    (Column(title="MEAN", name="mean output", rank=7), _mean),
    (Column(title="SHARE", name="share of context"), lambda r: Cell(text=percent(r.context_share))),
)


def render_tools(
    report: ToolReport, *, width: int, tz: str, now: datetime, wide: bool = False, home: str = ""
) -> Iterator[Line]:
    """Return the lines of the terminal view."""
    span = describe_window(report.window, tz, now=now)
    title = Line.of(("Tools", "title"), f" · {span} · {_calls(report.totals)}")
    return render_grouped(
        report, title, _COLUMNS, partial(_notes, report), least_key=_LEAST_KEY, width=width, wide=wide, home=home
    )


def _calls(totals: ToolRow) -> str:
    errors = f" · {counted(totals.errors, 'error')}" if totals.errors else ""
    return f"{counted(totals.calls, 'call')}{f', {totals.open_calls:,} open' if totals.open_calls else ''}{errors}"


def _notes(report: ToolReport, hidden: Sequence[str]) -> Iterator[Line]:
    if report.rows and report.totals.output_bytes:
        yield _note("SHARE: of all bytes that these calls gave back into the context")
    if report.rows and report.totals.open_calls:
        have = "open call has" if report.totals.open_calls == 1 else "open calls have"
        yield _note(f"{report.totals.open_calls:,} {have} no result in the log: not in rates, times and means")
    yield from closing_notes(report, report.hidden_rows, "row", hidden)


def _note(text: str) -> Line:
    return Line(text, "note")


def render_tools_csv(report: ToolReport) -> str:
    """Return the report as CSV: group keys and `COLUMNS`, exact numbers, a TOTAL row last."""
    return grouped_csv(report, COLUMNS)


def render_tools_markdown(report: ToolReport) -> str:
    """Return the table as Markdown, with the same numbers."""
    return grouped_markdown(report, _COLUMNS)
