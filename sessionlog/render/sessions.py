"""Lay out the list of sessions: a heading per day, then a line per session, newest first.

As a tree, forks are below their parents within each day, with branch lines before their time. A parent of another day,
or one that is not in the list, is named above its forks, so that each day keeps its own sum.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby

from sessionlog.analytics import columns as data
from sessionlog.analytics.columns import counted
from sessionlog.analytics.report import SummedRows, add_up, cost_footnotes
from sessionlog.analytics.session_tree import GENERATIONS, Branch, Key, grow_tree, key_of
from sessionlog.analytics.sessions import SessionList, SessionSummary, reason
from sessionlog.analytics.window import describe_window
from sessionlog.analytics.zones import day_key
from sessionlog.events.money import usd as dollars
from sessionlog.events.names import UNKNOWN as MISSING
from sessionlog.render.cells import cell_len
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN, cost_text
from sessionlog.render.report import View, cell, closing_notes, first_model, heading, table_columns, title_line
from sessionlog.render.status_line import short_model
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import clock, day_title, home_path

MARKS: Mapping[str, tuple[str, str]] = {
    "success": ("✔", "cached"),
    "running": ("●", "unfinished"),
    "unfinished": ("◌", "unfinished"),
    "cancelled": ("⊘", "unfinished"),
    "unknown": ("·", "secondary"),
}
_FAILED = ("✘", "failed")

_LEAST_ID = 7
"""The least characters of a shortened id, without the one that distinguishes it."""

_WHOLE_ID = 16  # ids up to this length are not shortened


def render_sessions(found: SessionList, view: View, *, tree: bool = False) -> Iterator[Line]:
    """Yield the lines of the terminal view; `tree` puts forks below their parents."""
    return (line for line, _ in session_lines(found, view, tree=tree))


def session_lines(
    found: SessionList, view: View, *, tree: bool = False
) -> Iterator[tuple[Line, SessionSummary | None]]:
    """Yield the lines of `render_sessions`, each with the session that it shows; None for headings and notes."""
    if not found.rows:
        none = Line(f"No sessions · {describe_window(found.window, view.tz, now=view.now)}")
        yield none if found.is_empty else title_line(found, view), None
        for line in closing_notes(found):
            yield line, None
        return
    days = [(day, list(group)) for day, group in groupby(found.rows, key=lambda session: _day(session, view))]
    branches = [(grow_tree if tree else _in_order)(sessions) for _, sessions in days]
    ids = {} if view.wide else _short_ids(found)
    generations = min(GENERATIONS, max(2, view.width // 14))
    columns = table_columns(found)
    rows = [
        _row(columns, branch, view, ids, generations)
        for day in branches for branch in day if branch.session is not None
    ]  # fmt: skip
    table = fit_table([_heading_of(column, tree=tree) for column in columns], rows, width=view.width, wide=view.wide)
    laid_out, known = iter(table.lines[1:]), _known(found) if tree else {}
    sums = []
    for (day, sessions), listed in zip(days, branches, strict=True):
        whole = [*sessions, *_rest_of_day(found, day, view)]
        sums.append(add_up(SummedRows, whole))
        yield _day_line(whole, len(sessions), view, max(table.width, 40)), None
        for branch in listed:
            line = _parent_line(branch.key, known, view) if branch.session is None else next(laid_out)
            yield line, branch.session
        yield Line(), None
    footnotes = chain(cost_footnotes(found.priced_from, sums), found.window_footnotes())
    for line in closing_notes(found, table.hidden, footnotes, more=view.more):
        yield line, None


def _in_order(sessions: Sequence[SessionSummary]) -> list[Branch]:
    return [Branch(key=key_of(session), session=session) for session in sessions]


def _known(found: SessionList) -> dict[Key, SessionSummary]:
    return {key_of(session): session for session in (*found.left_out, *reversed(found.rows))}


def _parent_line(key: Key, known: Mapping[Key, SessionSummary], view: View) -> Line:
    """Return the line of a parent that is not listed on this day: its id, and its time and prompt if known."""
    session = known.get(key)
    words = [one_line(key[1], 60)]
    if session is None:
        words.append("not in this list")
    else:
        words += [] if session.start_ns is None else [view.stamp(session.start_ns)]
        words += [f"“{one_line(session.prompt, 40)}”"] if session.prompt else []
    return Line(" · ".join(words), "secondary")


def _branch(branch: Branch, generations: int) -> str:
    """Return the branch lines before a fork, at most `generations` deep; deeper forks are marked with `⋮`."""
    lasts = branch.lasts[:generations]
    above = "".join("  " if last else "│ " for last in lasts[:-1])
    sign = "⋮" if branch.depth > generations else "└" if lasts and lasts[-1] else "├"
    return f"{above}{sign} " if lasts else ""


def _short_ids(found: SessionList) -> dict[str, str]:
    """Return id → the shortest end that is unique among all of a list; commands take it as the id."""
    ends = sorted({name[::-1] for name in found.ids})
    return {name: _short_id(name, ends) for name in {session.session for session in found.rows}}


def _short_id(name: str, ends: Sequence[str]) -> str:
    """Return the shortest end of an id that is unique among `ends`, which are sorted and read from right to left."""
    if len(name) <= _WHOLE_ID:
        return name
    place = bisect_left(ends, name[::-1])
    beside = (ends[other] for other in (place - 1, place + 1) if 0 <= other < len(ends))
    alike = max((len(os.path.commonprefix((ends[place], other))) for other in beside), default=0)  # noqa: RUF071 - no paths
    return ends[place][: max(_LEAST_ID, alike) + 1][::-1]


def _heading_of(column: data.Column, *, tree: bool) -> Column:
    made = heading(column)
    if column.name == "start":
        made.right = not tree
    elif column.name == "status":
        made.title = ""
    elif column.name == "session" and tree:
        made.rank = 0  # other commands take the id
    return made


def _row(
    columns: Sequence[data.Column], branch: Branch, view: View, ids: Mapping[str, str], generations: int
) -> list[Cell]:
    session = branch.session
    assert session is not None
    mark, style = MARKS.get(session.status, _FAILED)
    start = clock(session.start_ns, view.zone) if session.start_ns is not None else UNKNOWN
    prompt = one_line(session.prompt, 200 if view.wide else 80)
    own = {
        "start": Cell(_branch(branch, generations) + start, style="secondary"),
        "status": Cell(mark, style=style),
        "models": Cell(first_model(session.models if view.wide else list(map(short_model, session.models)))),
        "project": Cell(_project(session.project, view), style="secondary"),
        "prompt": Cell(f"“{prompt}”" if prompt else ""),
        "error": Cell(one_line(reason(session), 60), style="failed" if style == "failed" else "unfinished"),
        "session": Cell(one_line(ids.get(session.session, session.session), 60), style="secondary"),
    }
    return [own.get(column.name) or cell(column, session, view) for column in columns]


def _project(folder: str, view: View) -> str:
    """Return a project's folder: its whole path if `wide`, else its last part."""
    if folder == MISSING:
        return ""
    path = home_path(folder, view.home)
    return one_line(path if view.wide else os.path.basename(path.rstrip("/\\")) or path, 40)


def _partial_mark(sessions: Sequence[SessionSummary]) -> str:
    """Return the mark of an incomplete cost."""
    is_known = any(session.cost_nano is not None for session in sessions)
    return "+" if is_known and any(session.cost_is_partial for session in sessions) else ""


def _day(session: SessionSummary, view: View) -> str:
    return "" if session.start_ns is None else day_key(session.start_ns, view.zone)


def _rest_of_day(found: SessionList, day: str, view: View) -> Iterator[SessionSummary]:
    """Yield the sessions of the last listed day that a limit left out: it cuts the list at its old end."""
    return (session for session in found.left_out if _day(session, view) == day)


def _day_line(sessions: Sequence[SessionSummary], shown: int, view: View, width: int) -> Line:
    """Return the heading of a day with the sum of all its sessions, including those that a limit left out."""
    start = sessions[0].start_ns
    title = "NO TIME" if start is None else day_title(start, view.zone, now=view.now)
    costs = [session.cost_nano for session in sessions if session.cost_nano is not None]
    estimated = any(session.estimated_nano for session in sessions)
    count = counted(len(sessions), "session") + (f", {shown} shown" if shown < len(sessions) else "")
    money = f" · {cost_text(dollars(sum(costs)), estimated=estimated)}{_partial_mark(sessions)}" if costs else ""
    right = f"{count}{money}"
    return Line.of((title, "title"), " " * max(2, width - cell_len(title) - cell_len(right)), (right, "note"))
