"""Notes: sentences below tables; where the output is data they are printed on stderr."""

from __future__ import annotations

import os

from sessionlog.analytics.columns import counted
from sessionlog.analytics.unreadable import UnreadableNote
from sessionlog.render.escape import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionlog.errors import Problem

_LONGEST = 44

ESTIMATED = "~ estimated from tokens and prices"
"""The meaning of `~` where the source of the prices is not at hand: a list, or the user's own."""


def damage_note(count: int, problems: Sequence[Problem]) -> str:
    """Return the note on skipped damage: how much, where the first pieces are, and the command that lists it.

    Logs that cannot be opened are not damaged: they have a note of their own.
    """
    damaged = [problem for problem in problems if problem.kind != "unreadable"]
    count -= len(problems) - len(damaged)
    notes = [one_line(UnreadableNote(problems), 1000)] if len(damaged) < len(problems) else []
    if count > 0:
        first = ", ".join(_ending(one_line(_place(problem), 400)) for problem in damaged[:2])
        them, more = "it" if count == 1 else "them", ", …" if count > 2 else ""
        notes.append(f"{counted(count, 'damaged piece')} skipped ({first}{more}): `sessionlog check` shows {them}")
    return "; ".join(notes)


def limit_note(count: int, thing: str) -> str:
    """Return the note on rows that a limit left out."""
    return f"{counted(count, f'more {thing}')} (--limit)"


def archived_note(count: int) -> str:
    """Return the note on sessions of which something is in no log any more."""
    gone = "is only remembered: its log is" if count == 1 else "are only remembered: their logs are"
    return f"{counted(count, 'session')} here {gone} gone, or shorter than before (--live leaves out what is gone)"


def _ending(text: str) -> str:
    """Return the end of a long name, which has the line number."""
    return text if len(text) <= _LONGEST else f"…{text[1 - _LONGEST :]}"


def _place(problem: Problem) -> str:
    """Return the file name and line of a problem."""
    name = os.path.basename(problem.path)
    return f"{name}:{problem.line}" if problem.line else name
