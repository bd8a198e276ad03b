"""Splices: a history out of which messages were taken, and into which others were put; and what two have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def splice(whole: Sequence[T], dropped: Iterable[object], added: Iterable[tuple[int, T]]) -> list[T]:
    """Return a history without these spans of places, and with others put in at theirs; odd spans are ignored."""
    gone: set[int] = set()
    for span in dropped:
        match span:
            case [int(start), int(stop)]:
                gone.update(range(max(0, start), min(stop, len(whole))))
    left = [one for place, one in enumerate(whole) if place not in gone]
    for place, one in added:
        left.insert(place, one)
    return left


def placed(added: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield (place, message) of the messages that a compaction has put in; odd items are ignored."""
    for item in added:
        match item:
            case {"at": int(at), "message": message}:
                yield at, message


def shared(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common beginning."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
