"""Damage: separates the events of a session from the problems its reader reported, and counts the damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event

_MAX_PROBLEMS = 20


class Damage:
    """Counts the problems that lost something; others are ignored.

    Attributes:
        count: How many so far.
        problems: The first 20 of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.problems: tuple[Problem, ...] = ()

    def events(self, items: Iterable[Event | Problem]) -> Iterator[Event]:
        """Yield the events of a log; count the damage between them."""
        for item in items:
            if isinstance(item, Event):
                yield item
            elif item.severity == "damage":
                self.count += 1
                if self.count <= _MAX_PROBLEMS:
                    self.problems += (item,)
