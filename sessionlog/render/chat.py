"""Lay out a chat: the speaker, a line for each tool call, the figures of a turn, and the program's remarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace
from rich.color import ColorSystem

from sessionlog.events.money import NANO
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.cells import cell_len
from sessionlog.render.console import THEME
from sessionlog.render.escape import one_line
from sessionlog.render.flow import INDENT
from sessionlog.render.replay.blocks import Call, Cost
from sessionlog.render.replay.figures import money, span_of_time, tokens
from sessionlog.render.replay.layout_tools import tool_call
from sessionlog.render.replay.lines import (
    PAGE,
    Limit,
    Line,
    Span,
    View,
    body,
    cells,
    clipped,
    joined,
    labelled_text,
    packed,
    rule,
    shorten,
    words,
)

NO_RESULT = Span("◌ interrupted, no result", "unfinished")
"""The outcome of a tool call without a result."""

_ALL = Limit()
_LONG = Limit(chars=4000)
_MESSAGE = Limit(chars=600, lines=6)
_SHORT = 40


def _shortened(text: str, limit: Limit) -> str:
    """Return the beginning of a text, with the size of what was cut."""
    shown, left = shorten(text, limit)
    return f"{shown.rstrip()}\n… {left} (in the log)" if left else shown


def opening(view: View, session_id: str, *facts: str) -> Iterator[Line]:
    """Yield the head of a chat: the session and facts such as its model."""
    yield from rule(view, [words(session_id, "title", limit=80), *(words(fact, limit=60) for fact in facts if fact)])


def speaker(view: View, name: str) -> Line:
    """Return the line above an answer: the name of the agent or model."""
    return clipped((Span("◂ ", "model"), words(name, "model")), view.width)


def earlier_prompt(view: View, text: str) -> Iterator[Line]:
    """Yield a prompt of an earlier turn."""
    yield from labelled_text(view, (Span("you ▸", "you"),), _shortened(text, _LONG), _ALL)


def earlier_answer(view: View, text: str) -> Iterator[Line]:
    """Yield an answer of an earlier turn."""
    yield from body(view, _shortened(text, _LONG), _ALL, indent=INDENT)


def tool_line(view: View, name: str, arguments: Any, figures: Sequence[Span] = ()) -> list[Line]:
    """Return a tool call: a line with its name, main argument and figures; figures that do not fit go below."""
    narrow = view if view.width is None else replace(view, width=view.width - 1)  # a full row cannot be written again
    line = tool_call(narrow, Call(name=name, arguments=arguments, given=True), figures)[0]
    is_whole = cells(line) >= cells((Span("  ⚙ "), words(name))) + cells(joined(figures)) + 2
    return [line] if is_whole or not figures else [line, *tool_below(view, figures)]


def tool_below(view: View, figures: Sequence[Span], name: str = "") -> list[Line]:
    """Return the outcome of a tool call below it; give `name` where another tool's line may stand above."""
    figures = [Span(f"⇢ {one_line(name, _SHORT)}", "tool"), *figures] if name else figures
    return [(Span("    "), *line) for line in packed(figures, None if view.width is None else view.width - 5)]


def outcome(view: View, error: str | None, duration_ms: float | None, output: str) -> list[Span]:
    """Return the outcome of a tool call: error, duration, lines of output."""
    lines = output.strip().count("\n") + 1
    figures = (
        Span("") if error is None else words(f"✘ {error.strip()}", "failed", limit=_SHORT),
        span_of_time(view, duration_ms),
        Span(f"{lines} lines" if lines > 1 else "", "note"),
    )
    return [figure for figure in figures if figure.text]


def turn_figures(
    view: View, *, duration_ms: float, usage: TokenUsage | None, cost_usd: float | None, partial: bool = False
) -> Iterator[Line]:
    """Yield the known duration, tokens and cost of a turn, aligned right like the figures of tools."""
    cost = None if cost_usd is None else Cost(nano=round(cost_usd * NANO))
    counts = tokens(view, usage)
    if counts and partial:
        counts[0] = Span(f"at least {counts[0].text}")
    parts = (span_of_time(view, duration_ms), *counts, money(view, cost))
    edge = None if view.width is None else min(view.width - 1, PAGE)
    noted = [Span(part.text, part.style or "note") for part in parts]
    for line in packed(noted, None if edge is None else edge - INDENT):
        yield (Span(" " * max(INDENT, (edge or 0) - cells(line))), *line)


def remark(view: View, text: str, style: str = "note", sign: str = "·") -> Iterator[Line]:
    """Yield a remark of the program behind a sign."""
    if sign:
        yield from labelled_text(view, (Span(f"{' ' * INDENT}{sign}", style),), _shortened(text, _MESSAGE), _ALL)
    else:
        yield from body(view, _shortened(text, _MESSAGE), _ALL, indent=INDENT, style=style)


def turn_error(view: View, text: str) -> Iterator[Line]:
    """Yield the error of a failed turn."""
    yield from labelled_text(view, (Span(f"{' ' * INDENT}✘", "failed"),), _shortened(text, _MESSAGE), _ALL, "failed")


def facts(view: View, rows: Sequence[tuple[str, str]], style: str = "note") -> Iterator[Line]:
    """Yield pairs of (name, text) in two columns; texts are wrapped."""
    indent = max((cell_len(one_line(name, _SHORT)) for name, _ in rows), default=0) + 2 + INDENT
    for name, text in rows:
        label = one_line(name, _SHORT)
        head = Span(f"{' ' * INDENT}{label}{' ' * (indent - INDENT - cell_len(label))}", style)
        for index, line in enumerate(body(view, _shortened(text, _MESSAGE), _ALL, indent=indent)):
            yield line if index else (head, *line[1:])


def prompt(*, first: bool, coloured: bool, unicode: bool, edited: bool) -> str:
    r"""Return the input prompt.

    Args:
        first: Whether it precedes the first line of an input.
        coloured: Whether the terminal shows colours.
        unicode: Whether the terminal shows more than ASCII.
        edited: Whether readline edits the line: it needs \1 and \2 around escape sequences to measure the prompt.
    """
    sign = ("▸" if unicode else ">") if first else ("┆" if unicode else ":")
    text = f"you {sign}" if first else f"    {sign}"
    if coloured:
        style = THEME.styles["you"] if first else THEME.styles["note"]
        begin, _, end = style.render("\0", color_system=ColorSystem.STANDARD).partition("\0")
        hide, show = ("\1", "\2") if edited else ("", "")
        text = f"{hide}{begin}{show}{text}{hide}{end}{show}"
    return f"{text} "
