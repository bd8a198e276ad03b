"""Shares: logs divided into tasks of about the same size, so that workers finish at about the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import TypeVar

from sessionlog.engine.workers import map_tasks

_T = TypeVar("_T")
_R = TypeVar("_R")

LOG = 64 << 10
"""Bytes that are read in the time that it takes to open a log and to insert its session."""

_SHARE = 8 << 20


def map_shares(
    items: Sequence[_T], sizes: Sequence[int], function: Callable[[Sequence[_T]], _R], *, jobs: int | None = None
) -> Iterator[tuple[int, _R]]:
    """Yield (number of items, result) for each share of some logs, as they are done.

    Args:
        items: What is divided; it is sent to workers.
        sizes: The bytes of each.
        function: Called with a share, in a worker where that is faster; it is sent, too.
        jobs: Processes; by default as many as there are cores if that pays, 1 is this process alone.
    """
    shares = divide(list(zip(sizes, items, strict=True)), _SHARE, itemgetter(0))
    for share, result in map_tasks(partial(_call, function), shares[::-1], _size, jobs=jobs):
        yield len(share), result


def _call(function: Callable[[Sequence[_T]], _R], share: Sequence[tuple[int, _T]]) -> _R:
    return function([item for _, item in share])


def _size(share: Sequence[tuple[int, _T]]) -> int:
    return sum(size + LOG for size, _ in share)


def divide(items: Sequence[_T], most: int, size: Callable[[_T], int]) -> list[list[_T]]:
    """Divide logs into even shares, to be submitted from the last one on: large logs first, each alone.

    Args:
        items: The logs.
        most: Bytes per share.
        size: Returns the bytes of a log.
    """
    shares: list[list[_T]] = [[]]
    filled = 0
    for item in sorted(items, key=lambda one: -size(one) if size(one) > most else 0):
        if filled + size(item) + LOG > most and shares[-1]:
            shares.append([])
            filled = 0
        shares[-1].append(item)
        filled += size(item) + LOG
    return [share for share in reversed(shares) if share]
