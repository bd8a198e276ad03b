"""The note on places that could not be read."""

from __future__ import annotations

from sessionlog.analytics.columns import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionlog.errors import Problem

_NAMED = 2
_WORDS = " could not be read ("


def unreadable_note(problems: Iterable[Problem]) -> str:
    """Return `1 place could not be read (PATH: why)`, each place once; empty if all could be read."""
    places = {problem.path: problem.detail for problem in problems if problem.kind == "unreadable"}
    if not places:
        return ""
    named = ", ".join(f"{path}: {detail}" for path, detail in list(places.items())[:_NAMED])
    return f"{counted(len(places), 'place')}{_WORDS}{named}{', …' if len(places) > _NAMED else ''})"


def unreadable_path(note: str) -> str:
    """Return the first path in an `unreadable_note`; empty for any other sentence."""
    named = note.partition(_WORDS)[2]
    return (named.rpartition(": ") if note.startswith("1 place") else named.partition(": "))[0]
