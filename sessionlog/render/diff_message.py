"""Lay out one message of a comparison: a few lines of its text, with the words marked that the other side lacks.

The marks are readable without colours: `[-…-]` around words of the left side only, `{+…+}` around those of the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessionlog.analytics.columns import counted
from sessionlog.analytics.diff.align import Pair, Pieces, compare_words
from sessionlog.analytics.diff.message import DiffMessage
from sessionlog.render.cells import cell_len
from sessionlog.render.escape import one_line, terminal
from sessionlog.render.line import Line

LINES = 6
"""Lines of one message that are shown by default."""

_AROUND = 60  # equal characters shown on each side of a difference
_LEAST = 24
_TITLES = {"user": ("you", "you"), "assistant": ("model", "model"), "system": ("system", "note"),
           "summary": ("summary", "note")}  # fmt: skip
_MARKS = {"left": ("[-", "-]", "failed"), "right": ("{+", "+}", "cached")}


def title(message: DiffMessage) -> Line:
    """Return the line above a message: its number, its role, and whether it failed or broke off."""
    name, style = _TITLES.get(message.role, (f"⚙ {one_line(message.tool or 'tool', 60)}", "tool"))
    line = Line.of((f"{message.number} ", "note"), (name, style))
    if message.role == "user":
        line.append(f" · turn {message.turn}", "note")
    if message.failed:
        line.append(" ✘ failed", "failed")
    if message.partial:
        line.append(" ◌ broke off", "unfinished")
    return line


def bodies(pair: Pair, width: int, *, full: bool) -> tuple[list[Line], list[Line]]:
    """Return the lines of both sides below their titles; empty for a side without a message."""
    left, right = pair.left, pair.right
    one, other = _plain(left), _plain(right)
    if left is not None and right is not None and one != other:
        one, other = compare_words(_text(left), _text(right)) or (one, other)
    if not full:
        one, other = _near(one), _near(other)
    return (
        body(one, "left", width, full=full, left_out=left.left_out) if left else [],
        body(other, "right", width, full=full, left_out=right.left_out) if right else [],
    )


def body(pieces: Pieces, side: str, width: int, *, full: bool, left_out: int = 0) -> list[Line]:
    """Return a text in lines that fit, the first few of them unless `full`."""
    lines = [part for line in _lines(pieces, side) for part in line.wrapped(max(width, _LEAST))]
    shown = lines if full or len(lines) <= LINES + 1 else lines[:LINES]
    left = len(lines) - len(shown)
    more = [counted(left, "line")] if left else []
    more += [f"{left_out:,} characters"] if left_out else []
    return [*shown, Line(f"… +{', '.join(more)} (--full)", "note")] if more else shown


def text_bodies(left: str, right: str, width: int, *, full: bool) -> tuple[list[Line], list[Line]]:
    """Return the lines of two texts that are not messages, such as system prompts."""
    pieces = compare_words(left, right) or (((left, False),), ((right, False),))
    one, other = pieces if full else (_near(pieces[0]), _near(pieces[1]))
    return body(one, "left", width, full=full), body(other, "right", width, full=full)


def _text(message: DiffMessage) -> str:
    """Return the text that is compared and shown: the message's text, and each call on its own line."""
    calls = [f"⚙ {call.tool} {call.arguments}".rstrip() for call in message.calls]
    words = message.text.replace("\r\n", "\n").strip()
    return "\n".join([*calls, words] if message.role == "tool" else [words, *calls]).strip("\n")


def _plain(message: DiffMessage | None) -> Pieces:
    return () if message is None else ((_text(message), False),)


def _near(pieces: Pieces) -> Pieces:
    """Shorten equal text that is far from a difference; a text without differences is returned as it is."""
    if not any(differs for _, differs in pieces):
        return pieces
    last = len(pieces) - 1
    return tuple(
        (text if differs else _shortened(text, at_start=index == 0, at_end=index == last), differs)
        for index, (text, differs) in enumerate(pieces)
    )


def _shortened(text: str, *, at_start: bool, at_end: bool) -> str:
    head = "" if at_start else text[:_AROUND]
    tail = "" if at_end else text[len(text) - _AROUND :]
    return text if len(text) <= len(head) + len(tail) + 20 else f"{head} … {tail}".strip(" ") if head or tail else text


def _lines(pieces: Pieces, side: str) -> Iterator[Line]:
    opening, closing, style = _MARKS[side]
    line = Line()
    for text, differs in pieces:
        safe = terminal(text, newline=True, tab=True).expandtabs(4)
        for number, part in enumerate(safe.split("\n")):
            if number:
                yield line
                line = Line()
            line.append(f"{opening}{part}{closing}" if differs and part else part, style if differs else "")
    yield line


def side_by_side(left: Sequence[Line], right: Sequence[Line], cell: int) -> Iterator[Line]:
    """Yield two columns of `cell` cells each."""
    for index in range(max(len(left), len(right))):
        line = Line(no_wrap=True)
        for text, style in left[index].parts if index < len(left) else ():
            line.append(text, style)
        line.append(" " * max(0, cell - cell_len(line.plain)))
        line.append(" │ ", "note")
        for text, style in right[index].parts if index < len(right) else ():
            line.append(text, style)
        yield line
