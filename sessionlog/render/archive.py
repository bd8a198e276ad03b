"""Lay out a run of the archive: new logs by agent, logs left for later, and logs that could not be archived."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.columns import counted
from sessionlog.archive.entry import Entry
from sessionlog.archive.keep import Archived
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN, human_count, size
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path

_TABLE = (
    Column("AGENT", right=False),
    Column("LOGS"),
    Column("SESSIONS"),
    Column("SIZE"),
    Column("PACKED"),
)
_PROBLEMS = 20


def render_archived(done: Archived, *, width: int, home: str = "", closed: str = "1d") -> Iterator[Line]:
    """Yield the lines; `closed` is the age from which a log is archived, as `--older-than` takes it."""
    would = "would archive" if done.dry_run else "archived"
    place = one_line(home_path(done.folder, home), 200)
    yield Line.of((f"{would} {counted(len(done.kept), 'log')}", "title"), f" · {place}")
    if done.kept:
        yield Line()
        sources = sorted({entry.source for entry in done.kept})
        rows = [_row(name, [entry for entry in done.kept if entry.source == name], done) for name in sources]
        total = _row("total", done.kept, done) if len(sources) > 1 else None
        yield from fit_table(_TABLE, rows, width=width, total=total).lines
    yield Line()
    if done.replaced:
        yield Line(f"{counted(done.replaced, 'older version')} replaced: a newer one begins with it", "note")
    if done.unchanged:
        yield Line(f"{counted(done.unchanged, 'log')} unchanged since it was archived", "note")
    if done.open:
        yield Line(f"{counted(done.open, 'log')} written to within {closed}: left for later (--older-than)", "note")
    for problem in done.problems[:_PROBLEMS]:
        yield Line(f"✘ {one_line(home_path(problem.path, home), 200)}: {one_line(problem.detail, 200)}", "failed")
    if len(done.problems) > _PROBLEMS:
        yield Line(f"  … and {len(done.problems) - _PROBLEMS:,} more", "note")


def _row(name: str, entries: list[Entry], done: Archived) -> list[Cell]:
    packed = UNKNOWN if done.dry_run else size(sum(entry.packed for entry in entries))
    return [
        Cell(one_line(name, 30)),
        Cell(human_count(len(entries))),
        Cell(human_count(len({session for entry in entries for session in entry.sessions}))),
        Cell(size(sum(entry.bytes for entry in entries))),
        Cell(packed),
    ]
