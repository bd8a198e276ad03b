"""Damage: what a session's reader met that it could not read, counted while the events go by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event

_KEPT = 20


class Damage:
    """Counts the damaged pieces of a log; what lost nothing is not damage.

    Attributes:
        count: How many there are.
        problems: The first of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.problems: tuple[Problem, ...] = ()

    def events(self, items: Iterable[Event | Problem]) -> Iterator[Event]:
        """Yield the events, and count the damage between them."""
        for item in items:
            if isinstance(item, Event):
                yield item
            elif item.severity == "damage":
                self.count += 1
                if self.count <= _KEPT:
                    self.problems += (item,)
