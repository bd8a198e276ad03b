"""What reports share: CSV and Markdown, rows that have group keys, and the notes that tables end with."""

from __future__ import annotations

import csv
import io

from sessionlog.render.escape import csv_cell, markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import damage_note, limit_note
from sessionlog.render.numbers import exact, human_count, usd
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path

TYPE_CHECKING = False  # what makes the reports costs a start 80 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from sessionlog.analytics.block import BlockReport
    from sessionlog.analytics.sessions import SessionList
    from sessionlog.analytics.tool_row import ToolReport, ToolRow
    from sessionlog.analytics.usage_row import UsageReport, UsageRow

    Columns = Sequence[tuple[Column, Callable[[Any], Cell]]]
    """Columns of a table, and what makes the cell of a row."""

    Grouped = UsageReport | ToolReport
    """A report whose rows have group keys."""

_KEY_WIDTH = 60
_NAME = 40


def render_grouped(
    report: Grouped,
    title: Line,
    columns: Columns,
    notes: Callable[[Sequence[str]], Iterator[Line]],
    *,
    least_key: int,
    width: int,
    wide: bool,
    home: str,
) -> Iterator[Line]:
    """Yield a report's title, its table with a line of totals, and the notes, given the names of hidden columns."""
    yield title
    if not report.rows:
        yield from notes(())
        return
    yield Line()
    keys = [
        Column(title=one_line(key.upper(), _KEY_WIDTH), name=key, right=False, least=least_key)
        for key in report.group_by
    ]
    rows = [[*_keys(row, home), *(cell(row) for _, cell in columns)] for row in report.rows]
    blank = [Cell(text="total" if index == 0 else "") for index in range(len(keys))]
    total = [*blank, *(cell(report.totals) for _, cell in columns)]
    table = fit_table([*keys, *(column for column, _ in columns)], rows, width=width, total=total, wide=wide)
    yield from table.lines
    yield Line()
    yield from notes(table.hidden)


def _keys(row: UsageRow | ToolRow, home: str) -> list[Cell]:
    return [
        Cell(text=one_line(home_path(value, home) if key == "project" else value, _KEY_WIDTH))
        for key, value in row.keys.items()
    ]


def cost_cell(amount: float | None, *, estimated: bool, partial: bool) -> Cell:
    """A cost in US dollars: `~` for a part that is estimated, `+` for a part that has no price.

    Known money is never hidden by unknown.
    """
    more = "+" if partial and amount is not None else ""
    return Cell(text=usd(amount, estimated=estimated) + more, style="estimated" if estimated else "")


def count_cell(count: int, style: str = "") -> Cell:
    """A count; 0 has no style."""
    return Cell(text=human_count(count), style=style if count else "")


def first_model(models: Sequence[str]) -> str:
    """The first of several models, and how many more there are."""
    more = f" +{len(models) - 1}" if len(models) > 1 else ""
    return one_line(models[0] if models else "", _NAME) + more


def grouped_csv(report: Grouped, names: Sequence[str]) -> str:
    """Return a report as CSV: group keys and these columns, exact numbers, a TOTAL row last."""
    rows = [(*row.keys.values(), *(getattr(row, name) for name in names)) for row in report.rows]
    total = (*_total_keys(report, "TOTAL"), *(getattr(report.totals, name) for name in names))
    return csv_text([*report.group_by, *names], [*rows, total])


def grouped_markdown(report: Grouped, columns: Columns, text: Callable[[str], str] = markdown_cell) -> str:
    """Return a report as a Markdown table with a row of totals; `text` makes the text of a number harmless."""
    keys = [Column(title=markdown_cell(key), name=key, right=False) for key in report.group_by]
    named = [([markdown_cell(value) for value in row.keys.values()], row) for row in report.rows]
    rows = [
        [*names, *(text(cell(row).text) for _, cell in columns)]
        for names, row in [*named, (_total_keys(report, "**total**"), report.totals)]
    ]
    return markdown_text([*keys, *(column for column, _ in columns)], rows)


def _total_keys(report: Grouped, word: str) -> list[str]:
    return [word, *[""] * (len(report.group_by) - 1)] if report.group_by else []


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return CSV: exact numbers, and texts that no spreadsheet computes."""
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


def closing_notes(
    report: Grouped | BlockReport | SessionList, left_out: int, thing: str, hidden: Sequence[str]
) -> Iterator[Line]:
    """Say what was skipped for damage, how many rows a limit left out, and which columns had no room."""
    if report.problem_count:
        yield Line(damage_note(report.problem_count, report.problems), "note")
    if left_out:
        yield Line(limit_note(left_out, thing), "note")
    if hidden:
        yield Line(f"hidden columns: {', '.join(hidden)} (--wide)", "note")
