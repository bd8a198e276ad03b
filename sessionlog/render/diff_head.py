"""Lay out the head of a comparison: figures of both sessions, marked where they differ, and their tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sessionlog.analytics.diff.report import SessionDiff, ToolPair
from sessionlog.analytics.diff.side import Side
from sessionlog.analytics.diff.transcript import ToolUse
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import UNKNOWN, cost_text, duration, human_count
from sessionlog.render.report import cost_cell, first_model
from sessionlog.render.table import Cell, Column, fit_table

DIFFERS = "≠"
_FIGURES = (
    Column("", "differs", right=False),
    Column("", "what", right=False),
    Column("A", "A", right=False, least=16),
    Column("B", "B", right=False, least=16),
    Column("B − A", "B − A", right=False, rank=1),
)
_TOOLS = (
    Column("", "differs", right=False),
    Column("TOOL", right=False, least=12),
    Column("CALLS A", "calls A"),
    Column("CALLS B", "calls B"),
    Column("ERRORS A", "errors A"),
    Column("ERRORS B", "errors B"),
    Column("TIME A", "time A", rank=1),
    Column("TIME B", "time B", rank=1),
)
_COUNTS = (
    ("turns", "turns"), ("messages", "messages"), ("inherited_messages", "inherited"),
    ("taken_back_messages", "taken back"), ("requests", "requests"), ("failed_requests", "failed requests"),
)  # fmt: skip
_TOKENS = (
    ("input_tokens", "input"), ("cache_read_tokens", "cached"), ("cache_write_tokens", "cache written"),
    ("output_tokens", "output"), ("reasoning_tokens", "reasoning"),
)  # fmt: skip


def figure_lines(diff: SessionDiff, width: int) -> Sequence[Line]:
    """Return the table of figures, without those that are 0 or absent on both sides."""
    return fit_table(_FIGURES, list(_figures(diff)), width=width).lines


def _figures(diff: SessionDiff) -> Iterator[list[Cell]]:
    left, right = diff.left.figures(), diff.right.figures()
    sides, both = (diff.left, diff.right), (left, right)
    yield _row("session", [Cell(one_line(side.session, 60)) for side in sides], differs=False)
    if diff.left.source != diff.right.source:
        yield _row("agent", [Cell(side.source) for side in sides])
    yield _row("model", [Cell(_models(one)) for one in both])
    yield _row("status", [_status(one) for one in both])
    for name, title in (*_COUNTS, *_TOKENS):
        if left[name] or right[name]:
            yield _row(title, [_cell(one[name], human_count) for one in both], _delta(left, right, name))
    yield _row("cost", [_cost(side) for side in sides], _cost_delta(diff), differs="cost_usd" in diff.changed)
    spent = [_cell(one["duration_ms"], _time) for one in both]
    yield _row("time", spent, _delta(left, right, "duration_ms", duration))
    if left["tool_calls"] or right["tool_calls"]:
        calls = [Cell(_tool_calls(one)) for one in both]
        yield _row("tool calls", calls, _delta(left, right, "tool_calls"))
    if any(side.transcript.system for side in sides):
        prompts = [_cell(len(side.transcript.system) or None, _characters) for side in sides]
        yield _row("system prompt", prompts, differs=diff.is_same_system is False)
    if any(diff.offered.values()):
        tools = [Cell(_offered(diff.offered, side)) for side in ("left", "right")]
        yield _row("tools offered", tools, differs=True)


def _row(what: str, sides: Sequence[Cell], delta: str = "", *, differs: bool | None = None) -> list[Cell]:
    left, right = sides
    is_different = left.text != right.text if differs is None else differs
    mark = DIFFERS if is_different else ""
    return [Cell(mark, style="unfinished"), Cell(what, style="secondary"), left, right,
            Cell(delta if is_different else "", style="secondary")]  # fmt: skip


def _cell(value: Any, show: Callable[[Any], str]) -> Cell:
    return Cell(UNKNOWN if value is None else show(value))


def _time(milliseconds: float) -> str:
    return duration(milliseconds or 0.5)  # the list of sessions has whole ones


def _characters(count: int) -> str:
    return f"{count:,} characters"


def _models(figures: Mapping[str, Any]) -> str:
    return first_model(figures["models"] or [UNKNOWN])


def _status(figures: Mapping[str, Any]) -> Cell:
    status = figures["status"] or UNKNOWN
    is_failure = status not in ("success", "running", "unfinished", "cancelled", "unknown", UNKNOWN)
    why = f": {one_line(figures['error'], 60)}" if is_failure and figures["error"] else ""
    return Cell(one_line(status.replace("_", " "), 40) + why, style="failed" if is_failure else "")


def _tool_calls(figures: Mapping[str, Any]) -> str:
    failed = figures["failed_tool_calls"]
    return human_count(figures["tool_calls"]) + (f", {human_count(failed)} failed" if failed else "")


def _cost(side: Side) -> Cell:
    figures = side.figures()
    estimated = figures["estimated_cost_usd"] is not None and figures["estimated_cost_usd"] > 0
    return cost_cell(figures["cost_usd"], estimated=estimated, partial=bool(figures["cost_is_partial"]))


def _cost_delta(diff: SessionDiff) -> str:
    """Return what B costs more than A; "" unless both costs are complete."""
    left, right = diff.left.figures(), diff.right.figures()
    if None in (left["cost_usd"], right["cost_usd"]) or left["cost_is_partial"] or right["cost_is_partial"]:
        return ""
    more = right["cost_usd"] - left["cost_usd"]
    estimated = bool(left["estimated_cost_usd"] or right["estimated_cost_usd"])
    share = _share(left["cost_usd"], right["cost_usd"])
    return f"{'~' if estimated else ''}{_sign(more)}{cost_text(abs(more))}{share}"


def _delta(
    left: Mapping[str, Any], right: Mapping[str, Any], name: str, show: Callable[[Any], str] = human_count
) -> str:
    one, other = left[name], right[name]
    if one is None or other is None or one == other:
        return ""
    share = "" if name in dict(_COUNTS) or name == "tool_calls" else _share(one, other)
    return f"{_sign(other - one)}{show(abs(other - one))}{share}"


def _sign(value: float) -> str:
    return "−" if value < 0 else "+"


def _share(one: float, other: float) -> str:
    """Return the change in percent; "" where it rounds to 0 or is 1000 % or more."""
    if not one or not other or not 0 < abs(share := round((other - one) / one * 100)) < 1000:
        return ""
    return f" ({_sign(share)}{abs(share)} %)"


def _offered(offered: Mapping[str, Sequence[str]], side: str) -> str:
    """Return the tools that only this side has; the right side also names those whose definition changed."""
    only = [one_line(name, 40) for name in offered[f"{side}_only"][:3]]
    more = len(offered[f"{side}_only"]) - len(only)
    words = [f"only {', '.join(only)}{f' and {more} more' if more else ''}"] if only else []
    if side == "right" and offered["changed"]:
        words.append(f"{len(offered['changed'])} defined differently: {', '.join(map(_short, offered['changed'][:3]))}")
    return "; ".join(words) or UNKNOWN


def _short(name: str) -> str:
    return one_line(name, 40)


def tool_lines(diff: SessionDiff, width: int, *, full: bool) -> Iterator[Line]:
    """Yield the table of tools whose calls or failures differ; `full` adds the others."""
    shown = [tool for tool in diff.tools if full or not tool.is_alike]
    if shown:
        yield Line()
        yield from fit_table(_TOOLS, [_tool_row(tool) for tool in shown], width=width).lines
        alike = len(diff.tools) - len(shown)
        if alike:
            yield Line(f"{alike} more used alike (--full)", "note")


def _tool_row(tool: ToolPair) -> list[Cell]:
    left, right = tool.left or ToolUse(), tool.right or ToolUse()
    cells = [Cell("" if tool.is_alike else DIFFERS, style="unfinished"), Cell(one_line(tool.tool, 60))]
    cells += [Cell(human_count(use.calls)) for use in (left, right)]
    cells += [Cell(human_count(use.errors), style="failed" if use.errors else "") for use in (left, right)]
    return [*cells, *(_cell(use.duration_ms, duration) for use in (left, right))]
