"""How the list of agents looks: those with logs as a table, then where each was looked for, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.survey import DUE_DAYS, FoundSource, SourceReport
from sessionlog.analytics.zones import day_key, resolve_zone
from sessionlog.render.escape import markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import counted
from sessionlog.render.numbers import UNKNOWN, human_count, size
from sessionlog.render.report import csv_text
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path

COLUMNS = (
    "source", "title", "places", "files", "bytes", "sessions", "requests", "oldest", "newest", "kept_days", "kept_by",
    "due_within_7_days", "problems",
)  # fmt: skip
"""What CSV says of a source, in this order."""

_TABLE = (
    Column(title="AGENT", name="agent", right=False),
    Column(title="FILES", name="files"),
    Column(title="SIZE", name="size", rank=3),
    Column(title="SESSIONS", name="sessions", rank=2),
    Column(title="REQUESTS", name="requests"),
    Column(title="OLDEST", name="oldest", right=False),
    Column(title="NEWEST", name="newest", rank=1, right=False),
    Column(title="KEPT", name="kept", right=False),
)
_PROBLEMS = 3


def render_sources(report: SourceReport, *, width: int, tz: str, home: str = "") -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    found = [source for source in report.sources if source.files or source.problem_count]
    having = sum(1 for source in report.sources if source.files)
    yield Line.of(("Sources", "title"), f" · {having} of {len(report.sources)} agents have logs here")
    yield Line()
    if found:
        table = fit_table(_TABLE, [_row(source, tz) for source in found], width=width)
        yield from table.lines
        if table.hidden:
            yield Line(f"hidden columns: {', '.join(table.hidden)} (in --json and --csv)", "note")
        yield Line()
    yield Line("looked in", "note")
    longest = max(len(source.source) for source in report.sources)
    for source in report.sources:
        yield from _places(source, longest, width, home)
    yield Line()
    for source in found:
        yield from _warnings(source, home)
    for problem in report.problems:
        yield Line(f"✘ {one_line(str(problem), 200)}", "failed")


def _row(source: FoundSource, tz: str) -> list[Cell]:
    return [
        Cell(text=one_line(source.source, 30)),
        Cell(text=human_count(source.files)),
        Cell(text=size(source.bytes)),
        Cell(text=human_count(source.sessions)),
        Cell(text=human_count(source.requests)),
        Cell(text=_day(source.oldest_ns, tz), style="secondary"),
        Cell(text=_day(source.newest_ns, tz), style="secondary"),
        Cell(text=UNKNOWN if source.kept_days is None else counted(source.kept_days, "day"), style="secondary"),
    ]


def _day(time_ns: int | None, tz: str) -> str:
    return UNKNOWN if time_ns is None else day_key(time_ns, resolve_zone(tz))


def _places(source: FoundSource, longest: int, width: int, home: str) -> Iterator[Line]:
    """The places that are there, as many on a line as fit; those that are not only when none is."""
    there = [path for path, exists in source.places if exists]
    shown = [one_line(home_path(path, home), 120) for path in there or [path for path, _ in source.places]]
    style = "" if there else "note"
    line = f"  {'✔' if there else UNKNOWN} {one_line(source.source, 30).ljust(longest)}"
    indent = " " * len(line)
    gap = "  "
    for place in shown or ["wherever a PATH names one"]:
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
        kept = one_line(" ".join(home_path(word, home) for word in source.kept_by.split(" ")), 120)
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


def render_sources_csv(report: SourceReport) -> str:
    """Return one row a source, exact."""
    rows = []
    for source in report.sources:
        values = source.to_dict()
        values["places"] = " ".join(path for path, exists in source.places if exists)
        values["problems"] = source.problem_count
        rows.append([values[name] for name in COLUMNS])
    return csv_text(COLUMNS, rows)


def render_sources_markdown(report: SourceReport, *, tz: str) -> str:
    """Return the table as Markdown."""
    lines = [f"| {' | '.join(column.title for column in _TABLE)} |", f"|{'---|' * len(_TABLE)}"]
    lines += [f"| {' | '.join(markdown_cell(cell.text) for cell in _row(one, tz))} |" for one in report.sources]
    return "\n".join(lines) + "\n"
