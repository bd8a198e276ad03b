"""How the list of sessions looks: a day's heading, then one line a session, newest first.

As a tree, forks are below their parents within each day, with branches before their time. A parent of another day, or
one that is not in the list, is named above them: days keep their sums, and no fork loses where it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise, takewhile

from sessionlog.analytics.session_tree import GENERATIONS, Branch, Key, grow_tree, key_of
from sessionlog.analytics.sessions import COLUMNS, SessionList, SessionSummary
from sessionlog.analytics.window import describe_window
from sessionlog.analytics.zones import day_key, resolve_zone
from sessionlog.events.money import usd as dollars
from sessionlog.render.cells import cell_len
from sessionlog.render.escape import markdown_cell, one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import counted
from sessionlog.render.numbers import UNKNOWN, duration, human_count, usd
from sessionlog.render.report import closing_notes, cost_cell, csv_text, first_model
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import clock, day_title, home_path, stamp
from sessionlog.sources.record import UNKNOWN as MISSING
from sessionlog.transcript.seen import shared

MARKS: Mapping[str, tuple[str, str]] = {
    "success": ("✔", "cached"),
    "running": ("●", "unfinished"),
    "unfinished": ("◌", "unfinished"),
    "cancelled": ("⊘", "unfinished"),
    "unknown": ("·", "secondary"),
}
_FAILED = ("✘", "failed")

_COLUMNS = (
    Column(title="TIME", name="time"),
    Column(title="", name="status", right=False),
    Column(title="TOOK", name="duration", rank=3),
    Column(title="MODEL", name="model", right=False, least=16),
    Column(title="CALLS", name="calls", rank=2),
    Column(title="TOKENS", name="tokens", rank=5),
    Column(title="COST", name="cost"),
    Column(title="PROJECT", name="project", rank=6, right=False, least=10),
    Column(title="PROMPT", name="prompt", right=False, least=20),
    Column(title="WHY", name="error", rank=1, right=False, least=15),
    Column(title="SESSION", name="session", rank=7, right=False, least=25),
)

_TREE_COLUMNS = (
    Column(title="TIME", name="time", right=False),
    *_COLUMNS[1:-1],
    Column(title="SESSION", name="session", right=False),  # what can be resumed, compared and replayed
)
_TYPED = 7
"""Characters of an id that are shown at least, and one."""

_WHOLE = 16  # an id of no more is not cut


def render_sessions(
    found: SessionList, *, width: int, tz: str, now: datetime, wide: bool = False, home: str = "", tree: bool = False
) -> Iterator[Line]:
    """Yield the lines of the terminal view; `tree` with forks below their parents."""
    if not found.sessions:
        yield Line(f"No sessions · {describe_window(found.window, tz, now=now)}")
        yield from _notes(found, ())
        return
    days = [(day, list(group)) for day, group in groupby(found.sessions, key=lambda session: _day(session, tz))]
    branches = [(grow_tree if tree else _in_order)(sessions) for _, sessions in days]
    ids = _short_ids((*found.sessions, *found.left_out)) if tree and not wide else {}
    generations = min(GENERATIONS, max(2, width // 14))
    rows = [
        _row(branch, tz, home, ids, wide=wide, generations=generations)
        for day in branches for branch in day if branch.session is not None
    ]  # fmt: skip
    columns = _TREE_COLUMNS if tree else _COLUMNS
    table = fit_table(columns, rows, width=width, wide=wide)
    laid_out, known = iter(table.lines[1:]), _known(found) if tree else {}
    estimated = unpriced = False
    for (day, sessions), listed in zip(days, branches, strict=True):
        whole = [*sessions, *_rest_of_day(found, day, tz)]
        estimated = estimated or any(session.estimated_nano for session in whole)
        unpriced = unpriced or bool(_more(whole))
        yield _heading(whole, len(sessions), tz, now, max(table.width, 40))
        for branch in listed:
            yield _elsewhere(branch.key, known, tz, now) if branch.session is None else next(laid_out)
        yield Line()
    yield from _notes(found, table.hidden, estimated=estimated, unpriced=unpriced)


def _in_order(sessions: Sequence[SessionSummary]) -> list[Branch]:
    return [Branch(key=key_of(session), session=session) for session in sessions]


def _known(found: SessionList) -> dict[Key, SessionSummary]:
    return {key_of(session): session for session in (*found.left_out, *reversed(found.sessions))}


def _elsewhere(key: Key, known: Mapping[Key, SessionSummary], tz: str, now: datetime) -> Line:
    """The line of a parent that is not in this day's list: its name, and what else is known of it."""
    session = known.get(key)
    words = [one_line(key[1], 60)]
    if session is None:
        words.append("not in this list")
    else:
        words += [] if session.start_ns is None else [stamp(session.start_ns, resolve_zone(tz), now=now)]
        words += [f"“{one_line(session.prompt, 40)}”"] if session.prompt else []
    return Line(" · ".join(words), "secondary")


def _branch(branch: Branch, generations: int) -> str:
    """The lines before a fork; a generation that has no place of its own is below the last that has one."""
    lasts = branch.lasts[:generations]
    above = "".join("  " if last else "│ " for last in lasts[:-1])
    sign = "⋮" if branch.depth > generations else "└" if lasts and lasts[-1] else "├"
    return f"{above}{sign} " if lasts else ""


def _short_ids(sessions: Iterable[SessionSummary]) -> dict[str, str]:
    """As much of the end of each id as tells it from all others: that can be typed instead of it."""
    ids = sorted({session.session[::-1] for session in sessions})
    alike = [0, *(shared(*pair) for pair in pairwise(ids)), 0]
    ends = (one[: max(_TYPED, *pair) + 1] for one, pair in zip(ids, pairwise(alike), strict=True))
    return {one[::-1]: (one if len(one) <= _WHOLE else end)[::-1] for one, end in zip(ids, ends, strict=True)}


def _row(branch: Branch, tz: str, home: str, ids: Mapping[str, str], *, wide: bool, generations: int) -> list[Cell]:
    session = branch.session
    assert session is not None
    mark, style = MARKS.get(session.status, _FAILED)
    start = clock(session.start_ns, resolve_zone(tz)) if session.start_ns is not None else UNKNOWN
    prompt = one_line(session.prompt, 200 if wide else 80)
    return [
        Cell(text=_branch(branch, generations) + start, style="secondary"),
        Cell(text=mark, style=style),
        Cell(text=duration(session.duration_ms or None), style="secondary"),
        Cell(text=first_model(session.models)),
        Cell(text=human_count(session.requests)),
        Cell(text=human_count(session.total_tokens)),
        _cost(session),
        Cell(text=_project(session.project, home), style="secondary"),
        Cell(text=f"“{prompt}”" if prompt else ""),
        Cell(text=one_line(_why(session), 60), style="failed" if style == "failed" else "unfinished"),
        Cell(text=one_line(ids.get(session.session, session.session), 60), style="secondary"),
    ]


def _project(folder: str, home: str) -> str:
    return "" if folder == MISSING else one_line(home_path(folder, home), 40)


def _why(session: SessionSummary) -> str:
    if session.status == "unfinished":
        return "no end: killed?" if session.counted else session.error
    if session.status in ("success", "running"):
        return ""
    if session.error:
        return session.error
    return session.status.replace("_", " ")


def _cost(session: SessionSummary) -> Cell:
    return cost_cell(session.cost_usd, estimated=bool(session.estimated_nano), partial=session.cost_is_partial)


def _more(sessions: Sequence[SessionSummary]) -> str:
    """The mark beside money that is not all of it."""
    is_known = any(session.cost_nano is not None for session in sessions)
    return "+" if is_known and any(session.cost_is_partial for session in sessions) else ""


def _day(session: SessionSummary, tz: str) -> str:
    return "" if session.start_ns is None else day_key(session.start_ns, resolve_zone(tz))


def _rest_of_day(found: SessionList, day: str, tz: str) -> Iterator[SessionSummary]:
    """What a limit left out of a day: it cuts the list at its old end, so that the rest follows at once."""
    return takewhile(lambda session: _day(session, tz) == day, found.left_out)


def _heading(sessions: Sequence[SessionSummary], shown: int, tz: str, now: datetime, width: int) -> Line:
    """A day with the sum of all its sessions, also of those that a limit left out."""
    start = sessions[0].start_ns
    title = "NO TIME" if start is None else day_title(start, resolve_zone(tz), now=now)
    costs = [session.cost_nano for session in sessions if session.cost_nano is not None]
    estimated = any(session.estimated_nano for session in sessions)
    count = counted(len(sessions), "session") + (f", {shown} shown" if shown < len(sessions) else "")
    money = f" · {usd(dollars(sum(costs)), estimated=estimated)}{_more(sessions)}" if costs else ""
    right = f"{count}{money}"
    return Line.of((title, "title"), " " * max(2, width - cell_len(title) - cell_len(right)), (right, "note"))


def _notes(
    found: SessionList, hidden: Sequence[str], *, estimated: bool = False, unpriced: bool = False
) -> Iterator[Line]:
    if estimated:
        yield Line("~ estimated from list prices", "note")
    if unpriced:
        yield Line("+ a part of it has no price: `sessionlog pricing MODEL` says why", "note")
    yield from closing_notes(found, found.hidden, "session", hidden)


def render_sessions_csv(found: SessionList) -> str:
    """Return the list as CSV with exact numbers; models are joined by a space."""
    rows = (session.to_dict() | {"models": " ".join(session.models)} for session in found.sessions)
    return csv_text(COLUMNS, (row.values() for row in rows))


def render_sessions_markdown(found: SessionList, *, tz: str, now: datetime) -> str:
    """Return the list as a Markdown table."""
    lines = [
        "| TIME | STATUS | MODEL | CALLS | TOKENS | COST | PROMPT | SESSION |",
        "|---|---|---|---:|---:|---:|---|---|",
    ]
    for s in found.sessions:
        start = UNKNOWN if s.start_ns is None else stamp(s.start_ns, resolve_zone(tz), now=now)
        cells = [start, s.status, " ".join(s.models), human_count(s.requests), human_count(s.total_tokens)]
        cells += [_cost(s).text, s.prompt[:80], s.session]
        lines.append(f"| {' | '.join(markdown_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"
