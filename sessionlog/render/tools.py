"""How tools look: table, CSV and Markdown. Most calls first; what a column means is said where its name cannot."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from sessionlog.analytics.tool_row import COLUMNS, ToolReport, ToolRow
from sessionlog.analytics.window import describe_window
from sessionlog.render.escape import csv_cell, markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import counted, damage_note, limit_note
from sessionlog.render.numbers import UNKNOWN, duration, exact, human_count, percent, size
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path

_KEY_WIDTH = 60
_LEAST_KEY = 14
_MANY_ERRORS = 0.2


def _error_rate(row: ToolRow) -> Cell:
    rate = row.error_rate
    return Cell(text=percent(rate), style="failed" if rate is not None and rate > _MANY_ERRORS else "")


def _mean(row: ToolRow) -> Cell:
    mean = row.output_bytes_mean
    return Cell(text=UNKNOWN if mean is None else size(round(mean)))


def _count(count: int, style: str = "") -> Cell:
    return Cell(text=human_count(count), style=style if count else "")


_COLUMNS: Sequence[tuple[Column, Callable[[ToolRow], Cell]]] = (
    (Column(title="CALLS", name="calls"), lambda r: _count(r.calls)),
    (Column(title="OPEN", name="open calls", rank=8), lambda r: _count(r.open_calls, "unfinished")),
    (Column(title="ERRORS", name="errors", rank=4), lambda r: _count(r.errors)),
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
    """Yield the lines of the terminal view."""
    span = describe_window(report.window, tz, now=now)
    yield Line.of(("Tools", "title"), f" · {span} · {_calls(report.totals)}")
    if not report.rows:
        yield from _notes(report, (), wide=wide)
        return
    yield Line()
    keys = [Column(title=key.upper(), name=key, right=False, least=_LEAST_KEY) for key in report.group_by]
    columns = [*keys, *(column for column, _ in _COLUMNS)]
    rows = [[*_keys(row, home), *(cell(row) for _, cell in _COLUMNS)] for row in report.rows]
    blank = [Cell(text="total" if index == 0 else "") for index in range(len(keys))]
    total = [*blank, *(cell(report.totals) for _, cell in _COLUMNS)]
    table = fit_table(columns, rows, width=width, total=total, wide=wide)
    yield from table.lines
    yield Line()
    yield from _notes(report, table.hidden, wide=wide)


def _calls(totals: ToolRow) -> str:
    errors = f" · {counted(totals.errors, 'error')}" if totals.errors else ""
    return f"{counted(totals.calls, 'call')}{f', {totals.open_calls:,} open' if totals.open_calls else ''}{errors}"


def _keys(row: ToolRow, home: str) -> list[Cell]:
    return [
        Cell(text=one_line(home_path(value, home) if key == "project" else value, _KEY_WIDTH))
        for key, value in row.keys.items()
    ]


def _notes(report: ToolReport, hidden: Sequence[str], *, wide: bool) -> Iterator[Line]:
    if report.rows and report.totals.output_bytes:
        yield _note("SHARE: of all bytes that these calls gave back into the context")
    if report.rows and report.totals.open_calls:
        have = "open call has" if report.totals.open_calls == 1 else "open calls have"
        yield _note(f"{report.totals.open_calls:,} {have} no result in the log: not in rates, times and means")
    if report.problem_count:
        yield _note(damage_note(report.problem_count, report.problems))
    if report.hidden_rows:
        yield _note(limit_note(report.hidden_rows, "row"))
    if hidden and not wide:
        yield _note(f"hidden columns: {', '.join(hidden)} (--wide)")


def _note(text: str) -> Line:
    return Line(text, "note")


def render_tools_csv(report: ToolReport) -> str:
    """Return the report as CSV: group keys and `COLUMNS`, exact numbers, a TOTAL row last."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*report.group_by, *COLUMNS])
    for row in report.rows:
        writer.writerow([*map(csv_cell, row.keys.values()), *(exact(getattr(row, name)) for name in COLUMNS)])
    blank = ["TOTAL", *[""] * (len(report.group_by) - 1)] if report.group_by else []
    writer.writerow([*blank, *(exact(getattr(report.totals, name)) for name in COLUMNS)])
    return out.getvalue()


def render_tools_markdown(report: ToolReport) -> str:
    """Return the table as Markdown, with the same numbers."""
    lines = [
        f"| {' | '.join([*report.group_by, *(column.title for column, _ in _COLUMNS)])} |",
        f"|{'---|' * len(report.group_by)}{'---:|' * len(_COLUMNS)}",
    ]
    total = ["**total**", *[""] * (len(report.group_by) - 1)] if report.group_by else []
    named = [([markdown_cell(value) for value in row.keys.values()], row) for row in report.rows]
    for names, row in [*named, (total, report.totals)]:
        cells = [*names, *(markdown_cell(cell(row).text) for _, cell in _COLUMNS)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
