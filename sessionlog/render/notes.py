"""Notes: the sentences that tables end with and that stand on stderr beside data, the same in both places."""

from __future__ import annotations

import os

from sessionlog.analytics.columns import counted
from sessionlog.analytics.unreadable import unreadable_note
from sessionlog.render.escape import one_line

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionlog.errors import Problem

_LONGEST = 44


def damage_note(count: int, problems: Sequence[Problem]) -> str:
    """Say how much was skipped, where the first of it is, and who shows it; what cannot be opened is not damaged."""
    damaged = [problem for problem in problems if problem.kind != "unreadable"]
    count -= len(problems) - len(damaged)
    notes = [one_line(unreadable_note(problems), 1000)] if len(damaged) < len(problems) else []
    if count > 0:
        first = ", ".join(_ending(one_line(_place(problem), 400)) for problem in damaged[:2])
        them, more = "it" if count == 1 else "them", ", …" if count > 2 else ""
        notes.append(f"{counted(count, 'damaged piece')} skipped ({first}{more}): `sessionlog check` shows {them}")
    return "; ".join(notes)


def limit_note(count: int, thing: str) -> str:
    """Say how much a limit left out."""
    return f"{counted(count, f'more {thing}')} (--limit)"


def archived_note(count: int) -> str:
    """Say how much comes from memory."""
    gone = "is only remembered: its log is" if count == 1 else "are only remembered: their logs are"
    return f"{counted(count, 'session')} here {gone} gone (--live leaves out what is gone)"


def _ending(text: str) -> str:
    """A long name's end, where the line number is."""
    return text if len(text) <= _LONGEST else f"…{text[1 - _LONGEST :]}"


def _place(problem: Problem) -> str:
    """The end of a problem's `file:line`, enough to find it."""
    name = os.path.basename(problem.path)
    return f"{name}:{problem.line}" if problem.line else name
