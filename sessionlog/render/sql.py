"""Lay out the result of a SQL query: exact values in every format.

Values are shortened only to fit a terminal, and never rounded; BLOBs are written as in SQL, `X'00FF'`.
"""

from __future__ import annotations

import math

from sessionlog.analytics.columns import counted
from sessionlog.render.cells import cell_len
from sessionlog.render.escape import markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN
from sessionlog.render.report import csv_text
from sessionlog.render.table import GAP, Cell, Column, fit_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from sessionlog.analytics.sql.result_stream import QueryResult
    from sessionlog.analytics.sql.views import View

SCHEMA = "sessionlog.sql/2"

_LEAST = 12
_WIDEST = 400


def render_query_result(result: QueryResult, *, width: int, wide: bool = False) -> Iterator[Line]:
    """Yield the lines of the table; the last columns are hidden where not all of them fit."""
    rows = [[Cell(_text(value), style="note" if value is None else "") for value in row] for row in result.rows]
    columns = [
        Column(one_line(name, _WIDEST), name, right=is_number, least=None if is_number else _LEAST)
        for name, is_number in zip(result.columns, _numeric(result), strict=True)
    ]
    shown = len(columns) if wide else _fitting(columns, rows, width)
    yield from fit_table(columns[:shown], [row[:shown] for row in rows], width=width, wide=wide).lines
    if result.more:
        yield Line(
            f"only the first {counted(len(rows), 'row')}: --csv and --json have all, LIMIT sets the number", "note"
        )
    if shown < len(columns):
        hidden = ", ".join(one_line(column.name, 40) for column in columns[shown:])
        yield Line(f"hidden columns: {hidden} (--wide)", "note")


def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> int:
    """Return the number of columns that fit, counted from the left; at least 1."""
    used = -GAP
    for index, column in enumerate(columns):
        natural = max([cell_len(column.title), *(cell_len(row[index].text) for row in rows)])
        used += GAP + min(natural, column.least or natural)
        if used > width and index:
            return index
    return len(columns)


def _numeric(result: QueryResult) -> list[bool]:
    """Return for each column whether it has numbers alone."""
    columns = ([row[index] for row in result.rows if row[index] is not None] for index in range(len(result.columns)))
    return [bool(values) and all(type(value) in (int, float) for value in values) for values in columns]


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return one_line(_plain(value), _WIDEST)


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def render_query_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the result as CSV, row by row; NULL is an empty cell."""
    yield csv_text(columns, ())
    for row in rows:
        yield csv_text([_plain(value) if isinstance(value, bytes | bool) else value for value in row], ())


def render_query_markdown(result: QueryResult) -> str:
    """Return the result as a Markdown table."""
    marks = ["---:" if is_number else "---" for is_number in _numeric(result)]
    lines = [f"| {' | '.join(map(markdown_cell, result.columns))} |", f"|{'|'.join(marks)}|"]
    for row in result.rows:
        cells = [UNKNOWN if value is None else markdown_cell(_plain(value)) for value in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def query_document(columns: Sequence[str]) -> dict[str, Any]:
    """Return the JSON document `sessionlog.sql/2` without its rows."""
    return {"schema": SCHEMA, "columns": list(columns), "rows": []}


def row_document(columns: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """Return a row of the JSON document: an object; infinities and NaN are null."""
    return dict(zip(columns, map(_json, row), strict=True))


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return _plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def render_views(width: int, *, views: Sequence[View], last: Sequence[str]) -> Iterator[Line]:
    """Yield the views and their columns, each with its description, and `last` below them."""
    longest = max(len(name) for view in views for name in view.column_names)
    for view in views:
        yield Line.of((view.name, "title"), f"  {view.description}")
        for column in view.columns:
            head = f"  {column.name.ljust(longest)}  "
            first, *rest = Line(column.description).wrapped(max(20, width - len(head)))
            yield Line.of(head, (first.plain.rstrip(), "note"))
            for line in rest:
                yield Line.of(" " * len(head), (line.plain.rstrip(), "note"))
        yield Line()
    for sentence in last:
        yield Line(sentence, "note")


def views_document(views: Sequence[View]) -> dict[str, Any]:
    """Return the views as a JSON document."""
    described = [
        {
            "name": view.name,
            "description": view.description,
            "columns": {column.name: column.description for column in view.columns},
        }
        for view in views
    ]
    return {"schema": SCHEMA, "views": described}


def column_lines(views: Sequence[View]) -> Iterator[str]:
    """Yield a line for each view that names its columns."""
    for view in views:
        yield f"{view.name}: {', '.join(view.column_names)}"
