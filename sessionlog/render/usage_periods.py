"""Lay out usage by hour, day, week or month: a bar for each period, stacked where there are further groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby

from sessionlog.analytics import columns as data
from sessionlog.analytics.columns import counted
from sessionlog.analytics.report import sum_fields
from sessionlog.analytics.usage_row import UsageReport, UsageRow
from sessionlog.analytics.usage_sums import ADDED
from sessionlog.analytics.window import utc_nanoseconds
from sessionlog.analytics.zones import PERIOD_KEYS
from sessionlog.render.bar import STACKED, bar, stacked
from sessionlog.render.cells import cell_len
from sessionlog.render.heatmap import Amount, amount_of
from sessionlog.render.line import Line
from sessionlog.render.report import (
    View,
    cell,
    closing_notes,
    heading_notes,
    key_text,
    table_columns,
    title_line,
)
from sessionlog.render.status_line import short_model
from sessionlog.render.table import Cell, Column, fit_table

_FIRST = ("cost_usd", "cache_hit_rate", "cache_savings_usd", "requests", "output_tokens", "input_tokens")
"""The first columns beside bars, the most useful first."""

_SUMMED = frozenset({
    *_FIRST, "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_per_request", "searches",
    "extra_cost_usd",
})  # fmt: skip
_LEAST_BAR, _MOST_BAR, _BAR_SHARE = 8, 30, 5
_LONGEST_LABEL = 24
_NAMED_COLUMNS = 3


def render_periods(report: UsageReport, view: View, notes: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of a report whose rows are sorted by their period, which is the first group key."""
    key, *others = report.group_by
    periods = [(name, list(rows)) for name, rows in groupby(report.rows, key=lambda row: row.keys[key])]
    named = {column.name: column for column in table_columns(report) if not others or column.name in _SUMMED}
    columns = [*(named.pop(name) for name in _FIRST), *named.values()]
    bars = _Bars(report, [rows for _, rows in periods], view.width)
    lines: list[tuple[str, list[Cell]]] = []
    for name, rows in periods:
        texts = [cell(column, _sum(rows), view) for column in columns]
        lines.append((name, [Cell(key_text(key, name, view)), bars.of(rows), *texts, _so_far(key, name, report, view)]))
        lines += [("", [bars.label(row, view), Cell(), *(cell(c, row, view) for c in columns), Cell()])
                  for row in rows if others]  # fmt: skip
    total = [Cell("total"), Cell(), *(cell(column, report.totals, view) for column in columns), Cell()]
    table = fit_table(
        _headings(key, columns, min(_LONGEST_LABEL, max(cell_len(cells[0].text) for _, cells in lines))),
        [cells for _, cells in lines], width=view.width, total=total, wide=view.wide,
    )  # fmt: skip
    yield title_line(report, view, f"Usage by {key}")
    yield Line()
    yield table.lines[0]
    yield from _with_gaps(key, [name for name, _ in lines], table.lines[1:])
    yield Line()
    yield from heading_notes(columns, table)
    yield from notes
    hidden = table.hidden
    if len(hidden) > _NAMED_COLUMNS:
        hidden = (*hidden[:_NAMED_COLUMNS], f"{len(hidden) - _NAMED_COLUMNS} more")
    yield from closing_notes(report, hidden)


def _headings(key: str, columns: Sequence[data.Column], least: int) -> list[Column]:
    """Return the period, its bar and the columns; later columns are hidden first."""
    return [
        Column(key.upper(), right=False, least=least),
        Column("", "bar", rank=1, right=False),
        *(Column(column.title or "", column.label, rank=2 * n) for n, column in enumerate(columns)),
        Column("", "so far", rank=3, right=False),
    ]


def _sum(rows: Sequence[UsageRow]) -> UsageRow:
    """Return the sum of rows; a single row is returned as it is."""
    if len(rows) == 1:
        return rows[0]
    # not its sessions, since one can be in several rows
    return UsageRow(keys={}, **sum_fields(rows, (*ADDED, "unknown_cost_sessions")))


class _Bars:
    """Draws a bar for each period, to the scale of the highest; each group has its own sign and colour."""

    def __init__(self, report: UsageReport, periods: Sequence[Sequence[UsageRow]], width: int) -> None:
        self._amount: Amount = amount_of(report.rows)
        self._width = min(_MOST_BAR, max(_LEAST_BAR, width // _BAR_SHARE))
        self._highest = max((sum(map(self._amount, rows)) for rows in periods), default=0)
        self._signs = _signs(report, self._amount) if len(report.group_by) > 1 else {}
        models = {row.keys.get("model", "") for row in report.rows}
        self._same_short = Counter(map(short_model, models))

    def of(self, rows: Sequence[UsageRow]) -> Cell:
        """Return the bar of a period."""
        if not self._signs:
            share = self._amount(rows[0]) / self._highest if self._highest > 0 else 0.0
            return Cell(bar(max(0.0, share), self._width).rstrip("░"))
        amounts = [0.0] * len(STACKED)
        for row in rows:
            amounts[self._signs[_group(row)]] += max(0, self._amount(row))
        taken = stacked(amounts, self._highest, self._width)
        return Cell(parts=[(STACKED[n] * cells, f"part.{n + 1}") for n, cells in enumerate(taken) if cells])

    def label(self, row: UsageRow, view: View) -> Cell:
        """Return the name of a group, behind its sign."""
        number = self._signs[_group(row)]
        names = {key: key_text(key, value, view) for key, value in list(row.keys.items())[1:]}
        if "model" in names and self._same_short[short_model(row.keys["model"])] == 1:
            names["model"] = key_text("model", short_model(row.keys["model"]), view)
        name = " ".join(names.values())
        return Cell(parts=[("  ", ""), (STACKED[number], f"part.{number + 1}"), (f" {name}", "")])


def _group(row: UsageRow) -> tuple[str, ...]:
    return tuple(row.keys.values())[1:]


def _signs(report: UsageReport, amount: Amount) -> Mapping[tuple[str, ...], int]:
    """Return group → index of its sign; the largest have one each, the rest share the last."""
    sums: dict[tuple[str, ...], float] = {}
    for row in report.rows:
        sums[_group(row)] = sums.get(_group(row), 0) + amount(row)
    largest = sorted(sums, key=lambda group: (-sums[group], group))
    return {group: min(n, len(STACKED) - 1) for n, group in enumerate(largest)}


def _so_far(key: str, name: str, report: UsageReport, view: View) -> Cell:
    """Return the mark `so far` for the current period, unless the time window ends before now."""
    now_ns, end_ns = utc_nanoseconds(view.now), None if report.window is None else report.window.end_ns
    is_present = name == PERIOD_KEYS[key](now_ns, view.zone) and (end_ns is None or end_ns >= now_ns)
    return Cell("so far" if is_present else "", style="unfinished")


def _with_gaps(key: str, names: Sequence[str], lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines of a table, with the number of periods without usage between two rows."""
    last: int | None = None
    for index, line in enumerate(lines):
        name = names[index] if index < len(names) else ""
        number = _number(key, name) if name else None
        if number is not None:
            if last is not None and number - last > 1:
                yield Line(f"  {counted(number - last - 1, key)} without usage", "secondary", no_wrap=True)
            last = number
        yield line


def _number(key: str, name: str) -> int | None:
    """Return a period's number, which differs by 1 between neighbours; None for hours and for rows without a time."""
    try:
        match key:
            case "day":
                return date.fromisoformat(name).toordinal()
            case "week":
                return date.fromisocalendar(int(name[:4]), int(name[6:]), 1).toordinal() // 7
            case "month":
                return int(name[:4]) * 12 + int(name[5:7])
    except ValueError:  # rows without a time
        pass
    return None
