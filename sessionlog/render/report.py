"""Lay out any report by its columns: one function per format.

A table begins with the report's title, has a line of totals where rows add up, and ends with notes. Markdown has the
table without its rarest columns; CSV and JSON have every column with exact numbers.
"""

from __future__ import annotations

from sessionlog.analytics.columns import counted
from sessionlog.analytics.window import describe_window
from sessionlog.analytics.zones import PERIOD_KEYS, day_key, period_words, resolve_zone
from sessionlog.render.bar import bar
from sessionlog.render.currency import currency
from sessionlog.render.escape import csv_cell, markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import damage_note, limit_note
from sessionlog.render.numbers import UNKNOWN, cost_text, duration, exact, human_count, percent, price_text, rate, size
from sessionlog.render.table import Cell, Column, FittedTable, fit_table, is_empty
from sessionlog.render.times import home_path, stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, tzinfo
    from typing import Any

    from sessionlog.analytics import columns as data
    from sessionlog.analytics.report import Report

FIRST_ROW = 3
"""The line of a report's first row in `render_table`, below the title, a blank line and the headings."""

_FOLDERS = ("project", "repository")
_KEY_WIDTH = 60
_NAME = 40
_TEXT = 80
_SHARE_BAR = 10
_ROOMY = 100
_WIDE = "--wide"
_NOTE = 1000
_MONEY = ("usd", "whole_usd", "list_usd", "before_usd", "amount")
_MARKDOWN_RANK = 8
"""The highest rank of columns in Markdown; those above it are the first that a narrow table hides."""

_TEXTS = ("text", "texts", "sentences", "time", "second", "day", "days", "flag")


class View:
    """Settings of a report's layout.

    Attributes:
        width: Columns of the terminal.
        tz: The time zone of days and hours.
        now: The current time.
        wide: Whether all columns are shown, regardless of the width.
        home: The home folder, which tables shorten to `~`.
        more: What shows hidden columns.
    """

    __slots__ = ("_zone", "home", "more", "now", "tz", "wide", "width")

    def __init__(
        self, *, tz: str, now: datetime, width: int = 80, wide: bool = False, home: str = "", more: str = _WIDE
    ) -> None:
        self.width = width
        self.tz = tz
        self.now = now
        self.wide = wide
        self.home = home
        self.more = more
        self._zone: tzinfo | None = None

    @property
    def zone(self) -> tzinfo:
        """The time zone of days and hours, found once: to find the machine's takes longer than to lay out a row."""
        if self._zone is None:
            self._zone = resolve_zone(self.tz)
        return self._zone

    def stamp(self, time_ns: int | None, *, with_seconds: bool = False) -> str:
        """Return date and time of day, a dash for None."""
        return UNKNOWN if time_ns is None else stamp(time_ns, self.zone, now=self.now, with_seconds=with_seconds)


def render_table(report: Report, view: View, notes: Iterable[Line] = ()) -> Iterator[Line]:
    """Yield the lines of the terminal view; `notes` follow the table, before the report's own notes."""
    yield title_line(report, view)
    if not report.rows:
        yield from closing_notes(report)
        return
    yield Line()
    columns = table_columns(report)
    keys = [
        Column(one_line(key.upper(), _KEY_WIDTH), key, right=False, least=report.least_key, keeps_end=key in _FOLDERS)
        for key in report.group_by
    ]
    rows = [[*_keys(report, row, view), *(cell(column, row, view) for column in columns)] for row in report.rows]
    total = None
    if report.total_row:
        total = [Cell(text) for text in _total_keys(report, "total")]
        total += [cell(column, report.totals, view) for column in columns]
    table = fit_table([*keys, *map(heading, columns)], rows, width=view.width, total=total, wide=view.wide)
    yield from table.lines
    yield Line()
    yield from heading_notes(columns, table)
    yield from notes
    yield from closing_notes(report, table.hidden, more=view.more)


def render_csv(report: Report) -> str:
    """Return a report as CSV: group keys and columns, exact numbers, a TOTAL row last where rows add up."""
    rows = [[*_key_values(report, row), *(_exact(column, row) for column in report.columns)] for row in report.rows]
    if report.total_row:
        rows.append([*_total_keys(report, "TOTAL"), *(_exact(column, report.totals) for column in report.columns)])
    return csv_text([*report.group_by, *(column.name for column in report.columns)], rows)


def render_markdown(report: Report, view: View) -> str:
    """Return a report as a Markdown table in its short form, with a row of totals where rows add up."""
    columns = [column for column in table_columns(report) if column.rank <= _MARKDOWN_RANK]
    if report.rows:
        columns = [c for c in columns if not (c.rank and is_empty(cell(c, row, view).text for row in report.rows))]
    keys = [Column(markdown_cell(key), key, right=False) for key in report.group_by]
    named = [(list(map(markdown_cell, _key_values(report, row))), row) for row in report.rows]
    named += [(_total_keys(report, "**total**"), report.totals)] if report.total_row else []
    rows = [[*names, *(_markdown(column, row, view) for column in columns)] for names, row in named]
    return markdown_text([*keys, *map(heading, columns)], rows)


def title_line(report: Report, view: View, title: str = "") -> Line:
    """Return a report's first line: its title (or `title`), the time window, and its summary."""
    span = f" · {describe_window(report.window, view.tz, now=view.now)}" if report.is_timed else ""
    return Line.of((title or report.title, "title"), f"{span} · {one_line(report.summary, _NOTE)}")


def closing_notes(
    report: Report, hidden: Sequence[str] = (), footnotes: Iterable[str] | None = None, *, more: str = _WIDE
) -> Iterator[Line]:
    """Yield the notes on marks, the currency, skipped damage, rows beyond a limit, and hidden columns.

    `footnotes` explain the marks; a layout with other marks than the report's table passes its own.
    """
    for sentence in report.footnotes() if footnotes is None else footnotes:
        yield Line(one_line(sentence, _NOTE), "note")
    if (rate_note := currency().note) and any(column.unit in _MONEY for column in report.columns):
        yield Line(rate_note, "note")
    if report.problem_count:
        yield Line(damage_note(report.problem_count, report.problems), "note")
    if report.hidden_rows:
        yield Line(limit_note(report.hidden_rows, report.thing), "note")
    if hidden:
        yield Line(f"hidden columns: {', '.join(hidden)} ({more})", "note")


def heading_notes(columns: Iterable[data.Column], table: FittedTable) -> Iterator[Line]:
    """Yield the explanations of a table's headings; headings with equal explanations share a line."""
    titles: dict[str, list[str]] = {}
    for column in columns:
        if column.note and column.label in table.shown:
            titles.setdefault(column.note, []).append(column.title or "")
    for meaning, named in titles.items():
        yield Line(f"{', '.join(named)}: {meaning}", "note")


def table_columns(report: Report) -> list[data.Column]:
    """Return the columns that have a title, in the order of tables."""
    titled = {column.name: column for column in report.columns if column.title is not None}
    return [titled.pop(name) for name in report.table] + list(titled.values())


def key_text(key: str, value: str, view: View) -> str:
    """Return the value of a group key as tables show it: periods in words, projects with `~` for the home folder."""
    if key in PERIOD_KEYS:
        zone = view.zone
        return period_words(key, value, zone, this_year=view.now.astimezone(zone).year)
    if key in _FOLDERS:
        path = home_path(value, view.home)
        value = path if len(path) <= _KEY_WIDTH else f"…{path[1 - _KEY_WIDTH :]}"
    return one_line(value, _KEY_WIDTH)


def heading(column: data.Column) -> Column:
    """Return the table column of a report's column."""
    right = column.unit not in _TEXTS
    return Column(column.title or "", column.label, rank=column.rank, right=right, least=column.least)


def cell(column: data.Column, row: Any, view: View) -> Cell:
    """Return the cell of a column in a row."""
    value = column.shown(row)
    if column.unit in ("usd", "whole_usd"):
        partial = row.cost_is_partial and column.unit == "usd"
        return cost_cell(value, estimated=bool(row.estimated_nano), partial=partial)
    if column.unit == "before_usd":
        return cost_cell(value, estimated=bool(row.before_estimated_nano), partial=False)
    if column.name == "project" and value:
        value = home_path(value, view.home)
    if column.unit == "amount" and value is not None:
        return Cell(cost_text(value) if row.unit == "usd" else f"{human_count(round(value))} {row.unit}")
    text = UNKNOWN if value is None else _FORMATTERS[column.unit](value, view)
    return Cell(text, style=column.style(value))


def _share(value: float, view: View) -> str:
    """Format a rate, behind a bar on a wide terminal."""
    text = percent(value)
    if view.width < _ROOMY:
        return text
    return f"{bar(min(1, max(0, value)), _SHARE_BAR).rstrip('░'):<{_SHARE_BAR}} {text:>5}"


_FORMATTERS: Mapping[str, Callable[[Any, View], str]] = {
    "count": lambda value, _: human_count(value),
    "bytes": lambda value, _: size(round(value)),
    "list_usd": lambda value, _: cost_text(value),
    "price": lambda value, _: price_text(value),
    "ms": lambda value, _: duration(value),
    "ratio": lambda value, _: percent(value),
    "share": _share,
    "percent": lambda value, _: percent(value / 100),
    "rate": lambda value, _: rate(value),
    "text": lambda value, view: one_line(value, 200 if view.wide else _TEXT),
    "texts": lambda value, _: first_model(value),
    "sentences": lambda value, _: one_line("; ".join(value), _NOTE),
    "time": lambda value, view: view.stamp(value),
    "second": lambda value, view: view.stamp(value, with_seconds=True),
    "day": lambda value, view: day_key(value, view.zone),
    "days": lambda value, _: counted(value, "day"),
    "flag": lambda value, _: "yes" if value else "",
}
"""Unit → formatter of known values in a table."""


def _keys(report: Report, row: Any, view: View) -> list[Cell]:
    return [
        Cell(key_text(key, value, view)) for key, value in zip(report.group_by, _key_values(report, row), strict=True)
    ]


def _key_values(report: Report, row: Any) -> list[str]:
    return list(row.keys.values()) if report.group_by else []


def _total_keys(report: Report, word: str) -> list[str]:
    return [word, *[""] * (len(report.group_by) - 1)] if report.group_by else []


def _exact(column: data.Column, row: Any) -> object:
    """Return a value for CSV; lists are joined."""
    value = column.data(row)
    if column.unit == "objects":
        import json

        return json.dumps(value)
    return ("; " if column.unit == "sentences" else " ").join(value) if isinstance(value, list) else value


def _markdown(column: data.Column, row: Any, view: View) -> str:
    text = cell(column, row, view).text
    return markdown_cell(text) if column.unit in ("text", "texts") else text.replace("<", "&lt;")


def cost_cell(amount: float | None, *, estimated: bool, partial: bool) -> Cell:
    """Return the cell of a cost in US dollars: `~` for a part that is estimated, `+` for a part without a price.

    An unknown part never hides the known amount.
    """
    more = "+" if partial and amount is not None else ""
    return Cell(cost_text(amount, estimated=estimated) + more, style="estimated" if estimated else "")


def row_cost(row: Any) -> Cell:
    """Return the cell of a row's cost."""
    return cost_cell(row.cost_usd, estimated=bool(row.estimated_nano), partial=row.cost_is_partial)


def first_model(models: Sequence[str]) -> str:
    """Return the first of several models, and the number of others."""
    more = f" +{len(models) - 1}" if len(models) > 1 else ""
    return one_line(models[0] if models else "", _NAME) + more


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return CSV: exact numbers, and texts escaped for spreadsheets."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in ([*header], *rows):
        writer.writerow([csv_cell(value) if isinstance(value, str) else exact(value) for value in row])
    return out.getvalue()


def markdown_text(columns: Iterable[Column], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of finished cells."""
    columns = list(columns)
    lines = [
        f"| {' | '.join(column.title for column in columns)} |",
        f"|{''.join('---:|' if column.right else '---|' for column in columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"
