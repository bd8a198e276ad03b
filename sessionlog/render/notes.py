"""Notes: the sentences that tables end with and that stand on stderr beside data, the same in both places."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sessionlog.errors import Problem
from sessionlog.render.escape import one_line


def counted(count: int, thing: str) -> str:
    """A number and its noun, `1 log` or `2 logs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def damage_note(count: int, problems: Sequence[Problem]) -> str:
    """Say how much was skipped, where the first of it is, and who shows it."""
    first = ", ".join(one_line(_place(problem), 60) for problem in problems[:2])
    them = "it" if count == 1 else "them"
    more = ", …" if count > 2 else ""
    return f"{counted(count, 'damaged piece')} skipped ({first}{more}): `sessionlog check` shows {them}"


def limit_note(count: int, thing: str) -> str:
    """Say how much a limit left out."""
    return f"{counted(count, f'more {thing}')} (--limit)"


def _place(problem: Problem) -> str:
    """The end of a problem's `file:line`, enough to find it."""
    name = os.path.basename(problem.path)
    return f"{name}:{problem.line}" if problem.line else name
