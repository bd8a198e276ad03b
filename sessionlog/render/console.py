"""The one access to a terminal: rich without markup, emoji or highlighting, so that content is never read as commands.

Callers pass text of a log through `escape.terminal` first, and then as `Text`, never as a plain string.
"""

from __future__ import annotations

import os
from typing import IO

from rich.console import Console, RenderableType
from rich.text import Text
from rich.theme import Theme

from sessionlog.render.line import Line
from sessionlog.render.stream import PLAIN_WIDTH

THEME = Theme(
    {
        "secondary": "dim",
        "estimated": "yellow",
        "unfinished": "yellow",
        "failed": "red",
        "cached": "green",
        "title": "bold",
        "you": "bold cyan",
        "model": "bold",
        "tool": "cyan",
        "note": "dim",
        "found": "bold yellow",
        "heat": "green",
        "part.1": "blue",
        "part.2": "cyan",
        "part.3": "magenta",
        "part.4": "dim",
        # What fills a context window, by kind: not in the colours of warnings and failures.
        "in.system": "blue",
        "in.tools": "cyan",
        "in.history": "magenta",
        "in.tool_results": "bright_blue",
        "in.turn": "bright_magenta",
        "in.not_in_log": "dim",
        "in.free": "dim",
    }
)
"""Every meaning of a colour also stands in the text."""


def make_console(file: IO[str] | None = None, *, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console for a stream: colours on a terminal, plain text elsewhere and with NO_COLOR or TERM=dumb.

    NO_COLOR means no escape sequence at all: rich alone would keep bold and dim. Without a terminal the width is
    `$COLUMNS`, else `PLAIN_WIDTH`.
    """
    console = Console(
        file=file, stderr=stderr, theme=THEME, markup=False, emoji=False, highlight=False, soft_wrap=False, width=width,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )  # fmt: skip
    if width is None and not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = PLAIN_WIDTH
    return console


def print_line(console: Console, line: Line) -> None:
    """Print a finished line in the colours of its styles."""
    text = Text()
    for part, style in line.parts:
        text.append(part, style or None)
    console.print(text, soft_wrap=True)


def print_trimmed(console: Console, renderable: RenderableType) -> None:
    """Print a renderable of rich without the blanks that rich pads lines with."""
    for segments in console.render_lines(renderable, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True)
