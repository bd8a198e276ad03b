"""Lay out a watch: running sessions and their pace, budgets, and the last events.

With a height, every part is shortened to fit, and hidden rows are counted. Lines are never wider than the terminal, so
that painting needs no measuring.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from sessionlog.analytics.watch.snapshot import Pace, RunningSession, WatchSnapshot
from sessionlog.analytics.zones import local_time, resolve_zone, zone_name
from sessionlog.render.bar import spark
from sessionlog.render.cells import cell_len
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import ESTIMATED
from sessionlog.render.table import GAP
from sessionlog.render.times import stamp
from sessionlog.render.watch_tables import budget_lines, cost_pace, event_lines, session_lines, tokens_pace

SESSIONS_SHOWN, BUDGETS_SHOWN, EVENTS_SHOWN = 50, 20, 12
"""The most rows of each part without a height."""

_EVENTS_LEAST = 5
_WITH_ZONE = 100
_SPAN = "last 5 min"
"""The time window of every pace, in words."""


def render_watch(
    snapshot: WatchSnapshot, *, width: int, tz: str, height: int | None = None, home: str = ""
) -> Iterator[Line]:
    """Yield the lines, at most `height`."""
    zone = resolve_zone(tz)
    notes = [Line(one_line(note, 400 if height is None else width), "unfinished") for note in snapshot.notes]
    notes += _marks(snapshot)
    shown = _RowLimits(snapshot, height, len(notes))
    blocks = [
        [_title(snapshot, zone, width)],
        session_lines(snapshot, shown.sessions, width, home),
        budget_lines(snapshot, shown.budgets, width, zone),
        event_lines(snapshot, shown.events, width, zone),
        notes,
    ]
    lines = [line for block in blocks if block for line in (Line(), *block)][1:]
    yield from lines[:height]


class _RowLimits:
    """The most rows of sessions, budgets and events, so that all parts fit the height."""

    def __init__(self, snapshot: WatchSnapshot, height: int | None, notes: int) -> None:
        sessions, budgets, events = (
            len(snapshot.sessions),
            len(snapshot.budgets) + len(snapshot.limits),
            len(snapshot.events),
        )
        if height is None:
            self.sessions, self.budgets, self.events = SESSIONS_SHOWN, BUDGETS_SHOWN, EVENTS_SHOWN
            return
        free = height - 1 - (notes + 1 if notes else 0)
        self.budgets = min(budgets, max(1, free // 6))
        free -= _taken(budgets, self.budgets)
        least = _taken(events, min(events, _EVENTS_LEAST), more=0)
        self.sessions = min(sessions, max(1, free - least - 2))
        if self.sessions < sessions:
            self.sessions = max(1, self.sessions - 1)
        free -= _taken(max(1, sessions), max(1, self.sessions))
        self.events = max(0, free - 2)


def _taken(there: int, shown: int, *, more: int = 1) -> int:
    """Return the lines of a table: a blank, its heading, its rows, and `more` for the count of hidden ones."""
    return (2 + shown + (more if shown < there else 0)) if there else 0


def _title(snapshot: WatchSnapshot, zone: tzinfo, width: int) -> Line:
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=snapshot.now_ns // 1000)
    at = f"{stamp(snapshot.now_ns, zone, now=now)}:{local_time(snapshot.now_ns, zone):%S}"
    where = f" ({zone_name(zone)})" if width >= _WITH_ZONE else ""
    whole = snapshot.pace
    steps = spark(whole.steps, len(whole.steps))
    pace = f"{tokens_pace(whole)} tok/min" + (f"  {cost_pace(whole)}/min" if whole.total_tokens else "")
    for time, trend in (
        (f" · {at}{where}", f"{steps}  {_SPAN}  "), (f" · {at}", f"{_SPAN}  "), (f" · {at}", ""), ("", ""),
    ):  # fmt: skip
        left = f"{time} · {len(snapshot.sessions)} running"
        gap = width - sum(map(cell_len, ("Watch", left, trend, pace)))
        if gap >= GAP:
            break
    line = Line.of(("Watch", "title"), left, " " * max(GAP, gap), (trend, "secondary"), pace)
    line.no_wrap = True
    return line


def _marks(snapshot: WatchSnapshot) -> list[Line]:
    """Return a line that explains the marks that occur."""
    meanings = []
    shown: list[RunningSession | Pace] = [*snapshot.sessions, snapshot.pace]
    if any(one.estimated for one in [*shown, *snapshot.budgets, *snapshot.events]):
        meanings.append(ESTIMATED)
    if any(one.cost_is_partial and one.cost_nano is not None for one in shown) or any(
        b.unpriced for b in snapshot.budgets
    ):
        meanings.append("+ a part of it has no price")
    return [Line(" · ".join(meanings), "note")] if meanings else []
