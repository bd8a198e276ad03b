"""Lay out a comparison of two sessions: their figures, where they diverge, and the messages from there.

Side by side where there is room, A at the left and B at the right; else below each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from sessionlog.analytics.columns import counted
from sessionlog.analytics.diff.align import Pair, Pairs
from sessionlog.analytics.diff.report import SessionDiff
from sessionlog.render.diff_head import figure_lines, tool_lines
from sessionlog.render.diff_message import bodies, side_by_side, text_bodies, title
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import ESTIMATED, damage_note

WIDE = 120
"""The width from which the sides stand beside each other."""

_CELL = 96  # wider columns are hard to read
_SHOWN = 40  # pairs of messages
_REASON = 400  # characters


def render_diff(diff: SessionDiff, *, width: int, full: bool = False) -> Iterator[Line]:
    """Yield the lines of the terminal view; `full` shows every message, text and tool."""
    yield _headline(diff)
    yield from _gate_lines(diff)
    yield Line()
    yield from figure_lines(diff, width)
    yield from tool_lines(diff, width, full=full)
    if diff.is_same_system is False:
        left, right = diff.left.transcript.system, diff.right.transcript.system
        yield Line()
        yield Line("SYSTEM PROMPT", "title")
        cell = _cell(width)
        yield from _beside(*text_bodies(left, right, cell, full=full), width)
    if diff.rest:
        yield Line()
        yield _parting(diff)
        if diff.dropped:
            parent = "A" if diff.fork == "right" else "B"
            what = counted(diff.dropped, "message")
            yield Line(f"{what} that {parent} had dropped before the fork are not compared", "note")
        yield from _messages(diff.rest, width, full=full)
    notes = list(_notes(diff))
    if notes:
        yield Line()
        yield from notes


def _headline(diff: SessionDiff) -> Line:
    line = Line("No difference" if diff.is_equal else "They differ", "title")
    relation = {"right": "B is a fork of A", "left": "A is a fork of B"}.get(diff.fork or "")
    if diff.fork == "both":
        relation = f"both are forks of {one_line(diff.left.parent, 60)}"
    counts = diff.counts
    words = [f"{counted(counts['same'], 'message')} alike" if diff.pairs else "no messages"]
    words += [f"{counts['changed']:,} changed"] if counts["changed"] else []
    words += [f"{counts[side]:,} only in {name}" for side, name in (("left", "A"), ("right", "B")) if counts[side]]
    words += ["another system prompt"] if diff.is_same_system is False and not diff.rest else []
    line.append(" · ")
    line.append(", ".join(words))
    if relation:
        line.append(" · ")
        line.append(relation, "note")
    return line


def _gate_lines(diff: SessionDiff) -> Iterator[Line]:
    for gate in diff.gates:
        name = f"{gate.gate} {gate.limit}".rstrip()
        if gate.has_passed:
            yield Line(f"passed  {name}")
        else:
            yield Line.of(("FAILED", "failed"), f"  {name}: {one_line(gate.reason, _REASON)}")


def _parting(diff: SessionDiff) -> Line:
    """Return the heading where they diverge: the message, its turn, and how many messages before are alike."""
    left, right = diff.first("left"), diff.first("right")
    first = left or right
    words = "THEY DIVERGE AT THE BEGINNING"
    if left is not None and right is not None and left.number != right.number:
        words = f"THEY DIVERGE AT MESSAGE {left.number:,} OF A, {right.number:,} OF B"
    elif diff.common and left is not None and right is not None:
        words = f"THEY DIVERGE AT MESSAGE {left.number:,}"
    elif first is not None and (diff.common or diff.dropped):
        words = f"{'A' if left else 'B'} CONTINUES AT MESSAGE {first.number:,}"
    line = Line(words, "title")
    line.append(f" · turn {first.turn}" if first else "")
    before = "the message before is" if diff.common == 1 else f"the {diff.common:,} messages before are"
    line.append(f" · {before} alike" if diff.common else "", "note")
    return line


def _messages(rest: Pairs, width: int, *, full: bool) -> Iterator[Line]:
    left = len(rest) if full else _SHOWN
    end = 0
    for is_same, group in groupby(rest.kinds(), key=lambda kind: kind == "same"):
        start, end = end, end + sum(1 for _ in group)
        pairs = rest[start:end]
        if is_same:
            yield Line()
            yield _alike(pairs)
            continue
        for pair in pairs[:left]:
            yield Line()
            yield from _pair(pair, width, full=full)
        left -= min(left, len(pairs))
        if not left:
            break
    differing = sum(kind != "same" for kind in rest.kinds())
    if not full and differing > _SHOWN:
        yield Line()
        yield Line(f"… {counted(differing - _SHOWN, 'message')} more that differ (--full)", "note")


def _alike(pairs: Sequence[Pair]) -> Line:
    places = [
        f"{name} {first.number}" + (f"–{last.number}" if last.number != first.number else "")
        for name, first, last in (("A", pairs[0].left, pairs[-1].left), ("B", pairs[0].right, pairs[-1].right))
        if first is not None and last is not None
    ]
    return Line(f"= {counted(len(pairs), 'message')} alike ({', '.join(places)})", "note")


def _pair(pair: Pair, width: int, *, full: bool) -> Iterator[Line]:
    left, right = bodies(pair, _cell(width), full=full)
    titles = [[] if message is None else [title(message)] for message in (pair.left, pair.right)]
    yield from _beside([*titles[0], *left], [*titles[1], *right], width)


def _cell(width: int) -> int:
    """Return the cells that a message may take."""
    return min(_CELL, (width - 3) // 2) if width >= WIDE else max(width - 2, 1)


def _beside(left: Sequence[Line], right: Sequence[Line], width: int) -> Iterator[Line]:
    """Yield two sides beside each other, or below each other, then each with its letter in front."""
    if width >= WIDE:
        yield from side_by_side(left, right, _cell(width))
        return
    for name, lines in (("A", left), ("B", right)):
        for index, line in enumerate(lines):
            yield _prefixed(line, "  " if index else f"{name} ")


def _prefixed(line: Line, prefix: str) -> Line:
    whole = Line(no_wrap=True)
    whole.append(prefix, "title")
    for text, style in line.parts:
        whole.append(text, style)
    return whole


def _notes(diff: SessionDiff) -> Iterator[Line]:
    summaries = [side.summary for side in (diff.left, diff.right) if side.summary is not None]
    if any(summary.estimated_nano for summary in summaries):
        yield Line(ESTIMATED, "note")
    if any(summary.cost_is_partial and summary.cost_nano is not None for summary in summaries):
        yield Line("+ a part of it has no price: `sessionlog pricing MODEL` shows why", "note")
    if diff.problem_count:
        yield Line(damage_note(diff.problem_count, diff.problems), "note")
