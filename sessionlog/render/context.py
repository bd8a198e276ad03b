"""Lay out the context report: a headline, a stacked bar with its legend, growth, and the largest items.

The bar is the whole window, to scale, where the window is known. Each part has its own sign, in the legend as in the
bar, so that the bar can be read without colours. A `~` marks what is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from sessionlog.analytics.columns import counted
from sessionlog.context.xray.parts import KINDS, Item, Part, apportion
from sessionlog.context.xray.report import ContextReport
from sessionlog.render.bar import spark
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import damage_note
from sessionlog.render.numbers import human_count, percent
from sessionlog.render.report import csv_text
from sessionlog.render.status_line import short_model
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import stamp

CSV_COLUMNS = ("kind", "name", "tokens", "count", "share")
_TITLES = {
    "system": ("█", "system"), "tools": ("▒", "tools"), "history": ("░", "history"),
    "tool_results": ("▓", "tool results"), "turn": ("▚", "this turn"), "not_in_log": ("╱", "not in the log"),
    "free": ("·", "free"),
}  # fmt: skip
_WIDEST = 100
_FAR = 0.25
_HEIGHT = 22  # lines: a small terminal has 24
_LEAST, _SHOWN = 3, 8
_REPEATS = 2
_NAME = 100

_PARTS = (
    Column("", "part", right=False, least=10),
    Column("TOKENS"),
    Column("SHARE"),
    Column("WHAT", right=False, least=20),
)
_LARGEST = (
    Column("TOKENS"),
    Column("SHARE"),
    Column("LARGEST", right=False, least=20),
    Column("IN", "part", rank=1, right=False),
)
_REPEATED = (
    Column("TOKENS"),
    Column("TIMES"),
    Column("REPEATED", right=False, least=20),
    Column("SPARE", rank=1),
)


def render_context(
    report: ContextReport, *, width: int, zone: tzinfo, now: datetime, full: bool = False
) -> Iterator[Line]:
    """Yield the lines of the terminal view; `full` shows every part, item and repeat."""
    lines = [_headline(report), _subject(report, zone, now), _bar(report, min(width, _WIDEST))]
    lines += fit_table(_PARTS, list(_part_rows(report, full=full)), width=width).lines
    lines += _growth(report, min(width, _WIDEST))
    repeats = list(_repeats(report, width, full=full))
    room = _HEIGHT - len(lines) - len(repeats) - len(list(_notes(report, width, left=1))) - 3  # blanks, a heading
    shown = len(report.items) if full else min(_SHOWN, max(_LEAST, room))
    yield from lines
    yield Line()
    yield from _largest(report.items[:shown], report, width)
    yield from repeats
    yield Line()
    yield from _notes(report, width, left=len(report.items) - shown)


def _headline(report: ContextReport) -> Line:
    line = Line(f"Context at request {report.request} of {report.requests}", "title")
    estimated = report.reported_tokens is None
    total = f"{'~' if estimated else ''}{human_count(report.total_tokens)}"
    style = "estimated" if estimated else ""
    if report.window_tokens:
        line.append(" · ")
        window = human_count(report.window_tokens).replace(".0", "")
        line.append(f"{total} of {window} tokens ({percent(report.window_share)})", style)
    else:
        line.append(" · ")
        line.append(f"{total} tokens", style)
        line.append(", window unknown")
    if report.cached_share:
        line.append(" · ")
        line.append(f"{percent(report.cached_share)} cached", "cached")
    return line


def _subject(report: ContextReport, zone: tzinfo, now: datetime) -> Line:
    words = [one_line(model_name(report.model), 60), one_line(report.session, 60)]
    words += [] if report.time_ns is None else [stamp(report.time_ns, zone, now=now)]
    return Line(" · ".join(word for word in words if word), "secondary")


def model_name(model: str) -> str:
    """Return a model's name without region and date: `claude-opus-4-5`."""
    short = short_model(model)
    return f"claude-{short}" if "claude-" in model and not short.startswith("claude-") else short


def _bar(report: ContextReport, cells: int) -> Line:
    sizes = {kind: sum(part.tokens for part in report.parts if part.kind == kind) for kind in KINDS}
    sizes["free"] = _free(report)
    line = Line(no_wrap=True)
    for kind, count in zip(sizes, _cells(list(sizes.values()), cells), strict=True):
        line.append(_TITLES[kind][0] * count, f"in.{kind}")
    return line


def _cells(sizes: Sequence[int], cells: int) -> list[int]:
    """Distribute the cells by size; every size above 0 gets at least one."""
    counts = apportion(sizes, cells)
    for place, size in enumerate(sizes):
        if size and not counts[place] and max(counts, default=0) > 1:
            counts[counts.index(max(counts))] -= 1
            counts[place] = 1
    return counts


def _free(report: ContextReport) -> int:
    return max(0, (report.window_tokens or 0) - report.total_tokens)


def _part_rows(report: ContextReport, *, full: bool) -> Iterator[list[Cell]]:
    for kind in KINDS:
        parts = [part for part in report.parts if part.kind == kind]
        if not parts:
            continue
        sign, title = _TITLES[kind]
        tokens = sum(part.tokens for part in parts)
        what = ", ".join(map(_size, parts)) if len(parts) > 1 else _name(parts[0]).removeprefix(f"{title} ").strip("()")
        listed = parts if full and len(parts) > 1 else []
        yield [
            Cell(f"{sign} {title}", style=f"in.{kind}"), _tokens(tokens), Cell(_share(tokens, report)),
            Cell("" if listed else what, style="secondary"),
        ]  # fmt: skip
        for part in listed:
            count = f" ({part.count})" if part.count > 1 else ""
            yield [Cell(""), _tokens(part.tokens), Cell(_share(part.tokens, report)),
                   Cell(f"{_name(part)}{count}", style="secondary")]  # fmt: skip
    if report.window_tokens:
        sign, title = _TITLES["free"]
        free = _tokens(_free(report), estimated=report.reported_tokens is None)
        yield [Cell(f"{sign} {title}", style="in.free"), free, Cell(""), Cell("")]


def _size(part: Part) -> str:
    return f"{_name(part)} ~{human_count(part.tokens)}"


def _name(part: Part) -> str:
    return one_line(part.name, _NAME)


def _tokens(tokens: int, *, estimated: bool = True) -> Cell:
    return Cell(f"{'~' if estimated else ''}{human_count(tokens)}", style="estimated" if estimated else "")


def _share(tokens: int, report: ContextReport) -> str:
    return percent(tokens / report.total_tokens if report.total_tokens else None)


def _growth(report: ContextReport, width: int) -> Iterator[Line]:
    points = report.growth
    if len(points) < 2:
        return
    cut = f" (compacted at {_numbers(report.compactions)})" if report.compactions else ""
    estimated = not (points[0].reported and points[-1].reported)
    ends = [f"{'' if point.reported else '~'}{human_count(point.tokens)}" for point in (points[0], points[-1])]
    line = Line.of(("growth ", "secondary"))
    room = max(10, width - len("growth ") - len(ends[0]) - len(ends[1]) - len(cut) - 4)
    line.append(spark([point.tokens for point in points], room))
    line.append(f" {ends[0]} → {ends[1]}", "estimated" if estimated else "secondary")
    line.append(cut, "note")
    yield line


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return shown if len(numbers) <= 5 else f"{shown} and {len(numbers) - 5} more"


def _largest(items: Sequence[Item], report: ContextReport, width: int) -> Iterator[Line]:
    rows = [
        [_tokens(item.tokens), Cell(_share(item.tokens, report)), Cell(one_line(item.name, 160)),
         Cell(_TITLES[item.kind][1], style="secondary")]
        for item in items
    ]  # fmt: skip
    if rows:
        yield from fit_table(_LARGEST, rows, width=width).lines


def _repeats(report: ContextReport, width: int, *, full: bool) -> Iterator[Line]:
    repeats = report.repeats if full else report.repeats[:_REPEATS]
    rows = [
        [_tokens(repeat.tokens), Cell(f"×{repeat.count}"), Cell(one_line(repeat.name, 160)),
         _tokens(repeat.spare_tokens)]
        for repeat in repeats
    ]  # fmt: skip
    if rows:
        yield Line()
        yield from fit_table(_REPEATED, rows, width=width).lines


def _notes(report: ContextReport, width: int, *, left: int) -> Iterator[Line]:
    """Yield what the numbers mean and what is not shown; `left` counts the hidden items."""
    if not report.is_answered:
        basis = "~ estimated: this request has no answer yet, so status does not count it"
    elif report.reported_tokens is None:
        basis = "~ estimated: the log has no token count by the provider for this request"
    elif _is_scaled_far(report):
        estimate = human_count(report.estimated_tokens)
        basis = f"~ estimated: the parts were {estimate}, scaled to the provider's count"
    else:
        basis = "~ estimated; the total is the provider's count"
    more = f"{counted(left, 'smaller item')} (--full)" if left > 0 else ""
    is_one_line = bool(more) and len(basis) + len(more) + len(" · ") <= min(width, _WIDEST)
    yield Line(f"{basis} · {more}" if is_one_line else basis, "note")
    if more and not is_one_line:
        yield Line(more, "note")
    yield from _request_note(report)
    if report.problem_count:
        yield Line(damage_note(report.problem_count, report.problems), "note")


def _request_note(report: ContextReport) -> Iterator[Line]:
    """Explain why the status of the session has another number of requests."""
    own = report.requests - report.is_waiting
    whole = own if report.session_requests is None else report.session_requests
    if whole > own:
        yield Line(f"{counted(whole - own, 'more request')} by sub-agents or in other logs of this session", "note")
    elif whole < own:
        copied = counted(own - whole, "request")
        yield Line(f"{copied} of this log copied from another session, which counts them", "note")


def _is_scaled_far(report: ContextReport) -> bool:
    return (report.reported_tokens or 0) < report.estimated_tokens * (1 - _FAR)


def render_context_csv(report: ContextReport) -> str:
    """Return one row per part, with exact numbers."""
    return csv_text(CSV_COLUMNS, ((p.kind, p.name, p.tokens, p.count, p.share) for p in report.parts))
