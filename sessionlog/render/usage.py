"""How usage looks: table, CSV and Markdown. The answer first; marks are explained below, only when they occur."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial

from sessionlog.analytics.usage_row import COLUMNS, UsageReport, UsageRow
from sessionlog.analytics.window import describe_window
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import counted
from sessionlog.render.numbers import duration, percent, rate
from sessionlog.render.report import closing_notes, cost_cell, count_cell, grouped_csv, grouped_markdown, render_grouped
from sessionlog.render.table import Cell, Column

_LEAST_KEY = 20


def _time(milliseconds: float | None) -> Cell:
    """A time span; 0 is unknown, for no session and no call of a model takes no time."""
    return Cell(text=duration(milliseconds or None))


def _rate(value: float | None, style: str, *, below: float = -1.0, above: float = 2.0) -> Cell:
    marked = value is not None and (value < below or value > above)
    return Cell(text=percent(value), style=style if marked else "")


def _cost(row: UsageRow) -> Cell:
    return cost_cell(row.cost_usd, estimated=bool(row.estimated_nano), partial=bool(row.unknown_cost_sessions))


def _per_success(row: UsageRow) -> Cell:
    partial = bool(row.unknown_cost_sessions)
    return cost_cell(row.cost_per_success, estimated=bool(row.estimated_nano), partial=partial)


def _more(row: UsageRow) -> str:
    return "+" if row.cost_usd is not None and row.unknown_cost_sessions else ""


def _has_usage(row: UsageRow) -> bool:
    """Whether the log has tokens; each request that did not fail has used some."""
    return bool(row.total_tokens) or row.requests <= row.failed_requests


def _tokens(row: UsageRow, count: int) -> Cell:
    return count_cell(count) if _has_usage(row) else Cell(text="–", style="dim")


def _speed(row: UsageRow) -> Cell:
    return Cell(text=rate(row.generation_tokens_per_second if _has_usage(row) else None))


_COLUMNS: Sequence[tuple[Column, Callable[[UsageRow], Cell]]] = (
    (Column(title="SESSIONS", name="sessions", rank=1), lambda r: count_cell(r.sessions)),
    (Column(title="OK", name="success", rank=2), lambda r: _rate(r.success_rate, "failed", below=0.5)),
    (Column(title="FAILED", name="failed", rank=9), lambda r: count_cell(r.failed_sessions)),
    (Column(title="OPEN", name="unfinished", rank=10), lambda r: count_cell(r.unfinished_sessions, "unfinished")),
    (Column(title="REQUESTS", name="requests", rank=7), lambda r: count_cell(r.requests)),
    (Column(title="INPUT", name="input", rank=3), lambda r: _tokens(r, r.input_tokens)),
    (Column(title="CACHED", name="cached", rank=4), lambda r: _tokens(r, r.cache_read_tokens)),
    (Column(title="WRITTEN", name="cache writes", rank=11), lambda r: _tokens(r, r.cache_write_tokens)),
    (Column(title="OUTPUT", name="output"), lambda r: _tokens(r, r.output_tokens)),
    (Column(title="REASONING", name="reasoning", rank=12), lambda r: _tokens(r, r.reasoning_tokens)),
    (Column(title="HIT", name="cache hit", rank=5), lambda r: _rate(r.cache_hit_rate, "cached", above=0.5)),
    (Column(title="COST", name="cost"), _cost),
    (Column(title="PER OK", name="cost per success", rank=6), _per_success),
    (Column(title="TOK/S", name="tok/s", rank=8), _speed),
    (Column(title="DURATION", name="duration", rank=13), lambda r: _time(r.duration_ms)),
    (Column(title="P50", name="latency p50", rank=14), lambda r: _time(r.latency_p50_ms)),
    (Column(title="P95", name="latency p95", rank=15), lambda r: _time(r.latency_p95_ms)),
)


def render_usage(
    report: UsageReport, *, width: int, tz: str, now: datetime, wide: bool = False, home: str = ""
) -> Iterator[Line]:
    """Return the lines of the terminal view."""
    span = describe_window(report.window, tz, now=now)
    title = Line.of(("Usage", "title"), f" · {span} · {_sessions(report.totals)}")
    return render_grouped(
        report, title, _COLUMNS, partial(_notes, report), least_key=_LEAST_KEY, width=width, wide=wide, home=home
    )


def _sessions(totals: UsageRow) -> str:
    text = counted(totals.sessions, "session")
    return f"{text}, {totals.running_sessions} running" if totals.running_sessions else text


def _notes(report: UsageReport, hidden: Sequence[str]) -> Iterator[Line]:
    rows = [report.totals, *report.rows] if report.rows else []
    if any(row.estimated_nano for row in rows):
        yield _note(f"~ estimated from {report.priced_from}")
    unknown = report.totals.unknown_cost_sessions
    if unknown:
        have = "has" if unknown == 1 else "have"
        mark = "+ " if any(map(_more, rows)) else ""
        yield _note(f"{mark}{counted(unknown, 'session')} {have} parts {_without_cost(report)}")
    for word in ("partial", "estimated", "session"):
        count = report.provenance.get(word, 0)
        if count:
            yield _note(f"{count:,} of {report.totals.requests:,} requests: {_PROVENANCE[word]}")
    yield from closing_notes(report, report.hidden_rows, "row", hidden)


def _without_cost(report: UsageReport) -> str:
    """Which parts these are, and what to do."""
    silent = f"without tokens in the log ({_models(report.without_usage)})"
    if report.without_usage and not report.unpriced:
        return silent
    price = f"without a price ({_models(report.unpriced)})"
    named = f"{price} or {silent}" if report.without_usage else price
    return f"{named}: `sessionlog pricing MODEL` says why"


def _models(pairs: Sequence[tuple[str, str]]) -> str:
    more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return ", ".join(one_line(f"{provider}/{model}", 48) for provider, model in pairs[:3]) + more


_PROVENANCE = {
    "partial": "their numbers are known to be incomplete",
    "estimated": "their numbers are estimates",
    "session": "only the session's totals are in the log, counted as one request",
}


def _note(text: str) -> Line:
    return Line(text, "note")


def render_usage_csv(report: UsageReport) -> str:
    """Return the report as CSV: group keys and `COLUMNS`, exact numbers, a TOTAL row last."""
    return grouped_csv(report, COLUMNS)


def render_usage_markdown(report: UsageReport) -> str:
    """Return the short table as Markdown, with the same numbers."""
    picked = [(column, cell) for column, cell in _COLUMNS if column.name in _MARKDOWN]
    return grouped_markdown(report, picked, text=str)


_MARKDOWN = frozenset(
    {"sessions", "success", "input", "cached", "output", "cache hit", "cost", "cost per success", "tok/s"}
)
