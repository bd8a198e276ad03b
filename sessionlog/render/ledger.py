"""Lay out the state of the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.columns import counted
from sessionlog.analytics.ledger_report import LedgerReport
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import size
from sessionlog.render.report import View, cell, closing_notes, heading, table_columns
from sessionlog.render.table import fit_table
from sessionlog.render.times import home_path


def render_summary(report: LedgerReport, view: View) -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    summary = report.file
    path = one_line(home_path(summary.path, view.home), 400)
    yield Line.of((report.title, "title"), f" · {path}")
    if not summary.exists:
        yield Line("there is none yet: the first report makes it, and so does `sessionlog ledger sync`", "note")
        return
    facts = [size(summary.bytes), f"schema version {summary.version}", f"{counted(summary.tool_calls, 'tool call')}"]
    if summary.oldest_ns is not None:
        facts.append(f"oldest record {view.stamp(summary.oldest_ns)}")
    facts.append("not synced yet" if summary.synced_ns is None else f"synced {view.stamp(summary.synced_ns)}")
    yield Line(" · ".join(facts))
    yield Line()
    columns = table_columns(report)
    rows = [[cell(column, one, view) for column in columns] for one in (*report.rows, report.totals)]
    rows[-1][0].text = "TOTAL"
    table = fit_table([heading(column) for column in columns], rows[:-1], width=view.width, total=rows[-1])
    yield from table.lines
    yield from closing_notes(report, table.hidden)
