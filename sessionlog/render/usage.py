"""How usage looks: table, CSV and Markdown. The answer first; marks are explained below, only when they occur."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from sessionlog.analytics.usage_row import COLUMNS, UsageReport, UsageRow
from sessionlog.analytics.window import describe_window
from sessionlog.render.escape import csv_cell, markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import counted, damage_note, limit_note
from sessionlog.render.numbers import duration, exact, human_count, percent, rate, usd
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path

_KEY_WIDTH = 60
_LEAST_KEY = 20


def _count(count: int, style: str = "") -> Cell:
    return Cell(text=human_count(count), style=style if count else "")


def _time(milliseconds: float | None) -> Cell:
    return Cell(text=duration(milliseconds))


def _rate(value: float | None, style: str, *, below: float = -1.0, above: float = 2.0) -> Cell:
    marked = value is not None and (value < below or value > above)
    return Cell(text=percent(value), style=style if marked else "")


def _cost(row: UsageRow) -> Cell:
    """`~` for a part that is estimated, `+` for a part that has no price: known money is never hidden by unknown."""
    estimated = bool(row.estimated_nano)
    text = usd(row.cost_usd, estimated=estimated)
    return Cell(text=text + _more(row), style="estimated" if estimated else "")


def _per_success(row: UsageRow) -> Cell:
    estimated = bool(row.estimated_nano)
    text = usd(row.cost_per_success, estimated=estimated)
    more = _more(row) if row.success_sessions else ""
    return Cell(text=text + more, style="estimated" if estimated else "")


def _more(row: UsageRow) -> str:
    return "+" if row.cost_usd is not None and row.unknown_cost_sessions else ""


_COLUMNS: Sequence[tuple[Column, Callable[[UsageRow], Cell]]] = (
    (Column(title="SESSIONS", name="sessions", rank=1), lambda r: Cell(text=human_count(r.sessions))),
    (Column(title="OK", name="success", rank=2), lambda r: _rate(r.success_rate, "failed", below=0.5)),
    (Column(title="FAILED", name="failed", rank=9), lambda r: _count(r.failed_sessions)),
    (Column(title="OPEN", name="unfinished", rank=10), lambda r: _count(r.unfinished_sessions, "unfinished")),
    (Column(title="REQUESTS", name="requests", rank=7), lambda r: _count(r.requests)),
    (Column(title="INPUT", name="input", rank=3), lambda r: Cell(text=human_count(r.input_tokens))),
    (Column(title="CACHED", name="cached", rank=4), lambda r: _count(r.cache_read_tokens)),
    (Column(title="WRITTEN", name="cache writes", rank=11), lambda r: _count(r.cache_write_tokens)),
    (Column(title="OUTPUT", name="output"), lambda r: Cell(text=human_count(r.output_tokens))),
    (Column(title="REASONING", name="reasoning", rank=12), lambda r: _count(r.reasoning_tokens)),
    (Column(title="HIT", name="cache hit", rank=5), lambda r: _rate(r.cache_hit_rate, "cached", above=0.5)),
    (Column(title="COST", name="cost"), _cost),
    (Column(title="PER OK", name="cost per success", rank=6), _per_success),
    (Column(title="TOK/S", name="tok/s", rank=8), lambda r: Cell(text=rate(r.generation_tokens_per_second))),
    (Column(title="DURATION", name="duration", rank=13), lambda r: _time(r.duration_ms or None)),
    (Column(title="P50", name="latency p50", rank=14), lambda r: _time(r.latency_p50_ms)),
    (Column(title="P95", name="latency p95", rank=15), lambda r: _time(r.latency_p95_ms)),
)


def render_usage(
    report: UsageReport, *, width: int, tz: str, now: datetime, wide: bool = False, home: str = ""
) -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    span = describe_window(report.window, tz, now=now)
    title = Line.of(("Usage", "title"), f" · {span} · {_sessions(report.totals)}")
    yield title
    if not report.rows:
        yield from _notes(report, (), wide=wide)
        return
    yield Line()
    keys = [
        Column(title=one_line(key.upper(), _KEY_WIDTH), name=key, right=False, least=_LEAST_KEY)
        for key in report.group_by
    ]
    columns = [*keys, *(column for column, _ in _COLUMNS)]
    rows = [[*_keys(row, home), *(cell(row) for _, cell in _COLUMNS)] for row in report.rows]
    blank = [Cell(text="total" if index == 0 else "") for index in range(len(keys))]
    total = [*blank, *(cell(report.totals) for _, cell in _COLUMNS)]
    table = fit_table(columns, rows, width=width, total=total, wide=wide)
    yield from table.lines
    yield Line()
    yield from _notes(report, table.hidden, wide=wide)


def _sessions(totals: UsageRow) -> str:
    text = counted(totals.sessions, "session")
    return f"{text}, {totals.running_sessions} running" if totals.running_sessions else text


def _keys(row: UsageRow, home: str) -> list[Cell]:
    return [
        Cell(text=one_line(home_path(value, home) if key == "project" else value, _KEY_WIDTH))
        for key, value in row.keys.items()
    ]


def _notes(report: UsageReport, hidden: Sequence[str], *, wide: bool) -> Iterator[Line]:
    rows = [report.totals, *report.rows] if report.rows else []
    if any(row.estimated_nano for row in rows):
        yield _note(f"~ estimated from {report.priced_from}")
    unknown = report.totals.unknown_cost_sessions
    if unknown:
        pairs = ", ".join(one_line(f"{p}/{m}", 48) for p, m in report.unpriced[:3])
        rest = f" and {len(report.unpriced) - 3} more" if len(report.unpriced) > 3 else ""
        have = "session has" if unknown == 1 else "sessions have"
        mark = "+ " if any(map(_more, rows)) else ""
        yield _note(
            f"{mark}{unknown} {have} parts without a price ({pairs}{rest}): `sessionlog pricing MODEL` says why"
        )
    for word in ("partial", "estimated", "session"):
        count = report.provenance.get(word, 0)
        if count:
            yield _note(f"{count:,} of {report.totals.requests:,} requests: {_PROVENANCE[word]}")
    if report.problem_count:
        yield _note(damage_note(report.problem_count, report.problems))
    if report.hidden_rows:
        yield _note(limit_note(report.hidden_rows, "row"))
    if hidden and not wide:
        yield _note(f"hidden columns: {', '.join(hidden)} (--wide)")


_PROVENANCE = {
    "partial": "their numbers are known to be incomplete",
    "estimated": "their numbers are estimates",
    "session": "only the session's totals are in the log, counted as one request",
}


def _note(text: str) -> Line:
    return Line(text, "note")


def render_usage_csv(report: UsageReport) -> str:
    """Return the report as CSV: group keys and `COLUMNS`, exact numbers, a TOTAL row last."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*map(csv_cell, report.group_by), *COLUMNS])
    for row in report.rows:
        writer.writerow([*map(csv_cell, row.keys.values()), *(exact(getattr(row, name)) for name in COLUMNS)])
    blank = ["TOTAL", *[""] * (len(report.group_by) - 1)] if report.group_by else []
    writer.writerow([*blank, *(exact(getattr(report.totals, name)) for name in COLUMNS)])
    return out.getvalue()


def render_usage_markdown(report: UsageReport) -> str:
    """Return the short table as Markdown, with the same numbers."""
    picked = [(column, cell) for column, cell in _COLUMNS if column.name in _MARKDOWN]
    lines = [
        f"| {' | '.join([*(markdown_cell(key) for key in report.group_by), *(c.title for c, _ in picked)])} |",
        f"|{'---|' * len(report.group_by)}{'---:|' * len(picked)}",
    ]
    for row in report.rows:
        cells = [*(markdown_cell(value) for value in row.keys.values()), *(cell(row).text for _, cell in picked)]
        lines.append(f"| {' | '.join(cells)} |")
    blank = ["**total**", *[""] * (len(report.group_by) - 1)] if report.group_by else []
    lines.append(f"| {' | '.join([*blank, *(cell(report.totals).text for _, cell in picked)])} |")
    return "\n".join(lines) + "\n"


_MARKDOWN = frozenset(
    {"sessions", "success", "input", "cached", "output", "cache hit", "cost", "cost per success", "tok/s"}
)
