"""Lay out the list of agents: a table of those with logs, then the searched folders, then warnings."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.columns import counted
from sessionlog.analytics.survey import DUE_DAYS, FoundSource, SourceReport
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN
from sessionlog.render.report import View, cell, heading, table_columns
from sessionlog.render.table import fit_table
from sessionlog.render.times import home_path

_PROBLEMS = 3


def render_sources(report: SourceReport, view: View) -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    found = [source for source in report.rows if source.files or source.problem_count]
    yield Line.of((report.title, "title"), f" · {report.summary}")
    yield Line()
    if found:
        columns = table_columns(report)
        rows = [[cell(column, source, view) for column in columns] for source in found]
        table = fit_table([heading(column) for column in columns], rows, width=view.width, wide=view.wide)
        yield from table.lines
        if table.hidden:
            yield Line(f"hidden columns: {', '.join(table.hidden)} (--wide)", "note")
        yield Line()
    yield Line("looked in", "note")
    longest = max(len(source.source) for source in report.rows)
    for source in report.rows:
        yield from _places(source, longest, view.width, view.home)
    yield Line()
    for source in found:
        yield from _warnings(source, view.home)
    for problem in report.problems:
        yield Line(f"✘ {one_line(str(problem), 200)}", "failed")


def _places(source: FoundSource, longest: int, width: int, home: str) -> Iterator[Line]:
    """Yield the existing folders of an agent, as many on a line as fit; all searched ones if none exists."""
    there = source.found_places
    shown = [one_line(home_path(path, home), 120) for path in there or [path for path, _ in source.places]]
    style = "" if there else "note"
    line = f"  {'✔' if there else UNKNOWN} {one_line(source.source, 30).ljust(longest)}"
    indent = " " * len(line)
    gap = "  "
    for place in shown or ["no default folder: give a PATH"]:
        if gap != "  " and len(line) + len(gap) + len(place) > width:
            yield Line(line, style)
            line, gap = indent, "  "
        line += gap + place
        gap = " · "
    yield Line(line, style)


def _warnings(source: FoundSource, home: str) -> Iterator[Line]:
    name = one_line(source.source, 30)
    if source.due:
        what = counted(source.due, "log")
        kept = one_line(" ".join(home_path(word, home) for word in (source.kept_by or "").split(" ")), 120)
        yield Line(
            f"! {name} deletes {what} within {DUE_DAYS} days: it keeps them for {source.kept_days} days ({kept})",
            "unfinished",
        )
    if source.caveat:
        yield Line(f"! {name}: {one_line(source.caveat, 160)}", "note")
    for problem in source.problems[:_PROBLEMS]:
        yield Line(f"✘ {name}: {one_line(home_path(str(problem), home), 200)}", "failed")
    if source.problem_count > _PROBLEMS:
        yield Line(f"  … and {counted(source.problem_count - _PROBLEMS, 'finding')} more in {name}", "note")
