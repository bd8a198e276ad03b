"""Unreadable: one sentence on places that could not be read, with their paths."""

from __future__ import annotations

from sessionlog.analytics.columns import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessionlog.errors import Problem
    from sessionlog.ledger.book import Book

_NAMED = 2


class UnreadableNote(str):
    """The sentence, which also knows its first path, for where there is no room for more.

    Attributes:
        path: The first place; empty, like the sentence, where all could be read.
    """

    __slots__ = ("path",)

    path: str

    def __new__(cls, problems: Iterable[Problem]) -> UnreadableNote:  # noqa: PYI034 - Self would import typing
        """Write `1 place could not be read (PATH: why)`, each place once."""
        places = {problem.path: problem.detail for problem in problems if problem.kind == "unreadable"}
        named = ", ".join(f"{path}: {detail}" for path, detail in list(places.items())[:_NAMED])
        more = ", …" if len(places) > _NAMED else ""
        text = f"{counted(len(places), 'place')} could not be read ({named}{more})" if places else ""
        note = super().__new__(cls, text)
        note.path = next(iter(places), "")
        return note


def notes_of(book: Book) -> list[str]:
    """Return a book's notes, and last the places that could not be read."""
    unreadable = UnreadableNote([*book.unlisted, *book.problems])
    return [*book.notes, *([unreadable] if unreadable else [])]
