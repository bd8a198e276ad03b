"""Lay out cache misses: a line on the session, then a row for each miss with its reason and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

from sessionlog.analytics.columns import counted
from sessionlog.context.cache_misses import CacheMiss, CacheReport
from sessionlog.events.money import usd as dollars
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import damage_note
from sessionlog.render.numbers import UNKNOWN, cost_text, human_count
from sessionlog.render.report import csv_text
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import stamp

CSV_COLUMNS = (
    "request", "time", "reason", "detail", "expected_tokens", "cached_tokens", "missed_tokens", "cost_usd",
)  # fmt: skip
_WHY = {
    "model": "another model", "tools": "tools changed", "system": "system prompt changed",
    "message": "messages changed", "compaction": "compaction", "expired": "expired",
    "provider": "the provider's side", "not_in_log": "not in the log",
}  # fmt: skip
_COLUMNS = (
    Column("REQUEST"),
    Column("TIME", rank=2, right=False),
    Column("MISSED"),
    Column("OF", "expected", rank=1),
    Column("COST"),
    Column("WHY", right=False),
    Column("WHAT", right=False, least=16),
)


def render_cache_misses(report: CacheReport, *, width: int, zone: tzinfo, now: datetime) -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    line = Line(f"Cache of {one_line(report.session, 60)}", "title")
    line.append(f" · {counted(report.requests, 'request')} · {human_count(report.cached_tokens)} tokens from the cache")
    yield line
    if report.problem_count:
        yield Line(damage_note(report.problem_count, report.problems), "secondary")
    if not report.misses:
        found = "no request missed what the request before it had cached"
        yield Line(found if report.cached_tokens else "the provider reports no tokens from a cache", "secondary")
        return
    count, missed = len(report.misses), human_count(report.missed_tokens)
    cost = "" if report.cost_nano is None else f", {cost_text(dollars(report.cost_nano))} more than from the cache"
    yield Line(f"{count:,} miss{'' if count == 1 else 'es'} of {missed} tokens{cost}")
    yield Line()
    yield from fit_table(_COLUMNS, [_row(miss, zone, now) for miss in report.misses], width=width).lines
    unknown = report.requests - report.known_prompts
    if unknown:
        yield Line()
        yield Line(f"the log does not hold the prompt of {counted(unknown, 'request')}", "secondary")


def render_cache_misses_csv(report: CacheReport) -> str:
    """Return the misses as CSV."""
    rows = (miss.to_dict() for miss in report.misses)
    return csv_text(CSV_COLUMNS, ([row[name] for name in CSV_COLUMNS] for row in rows))


def _row(miss: CacheMiss, zone: tzinfo, now: datetime) -> list[Cell]:
    texts = (
        str(miss.request),
        UNKNOWN if miss.time_ns is None else stamp(miss.time_ns, zone, now=now),
        human_count(miss.missed_tokens),
        human_count(miss.expected_tokens),
        UNKNOWN if miss.cost_nano is None else cost_text(dollars(miss.cost_nano)),
        _WHY[miss.reason],
        one_line(miss.detail, 200),
    )
    return [Cell(text) for text in texts]
