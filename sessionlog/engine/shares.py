"""Shares: divide logs among processes of this machine, and yield what a function returns for each share.

A worker that dies costs no result: this process then works on its share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from sessionlog.engine.scanner import may_fork, usable_cores, worker_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_T = TypeVar("_T")
_R = TypeVar("_R")

PAYS = 8 << 20
"""Bytes from which two processes are faster than one, for work that takes 30 s per gigabyte."""

_SHARE = 8 << 20
_ITEM = 64 << 10  # bytes that are read in the time that it takes to open a log
_AHEAD = 2  # shares that are queued for each worker


def map_shares(
    items: Sequence[_T], sizes: Sequence[int], function: Callable[[Sequence[_T]], _R], *, jobs: int | None = None
) -> Iterator[tuple[int, _R]]:
    """Yield (number of items, result) for each share of the items, as they are done.

    Args:
        items: What is divided; it is sent to workers.
        sizes: The bytes of each.
        function: Called with a share, in a worker where that is faster; it is sent, too.
        jobs: Processes; by default as many as there are cores if that pays, 1 is this process alone.
    """
    shares = _shares(items, sizes)
    count = min(jobs or usable_cores(), len(shares))
    pays = jobs is not None or sum(sizes) + _ITEM * len(items) >= PAYS
    if count < 2 or not pays or not may_fork():
        for share in reversed(shares):
            yield len(share), function(share)
        return
    with worker_processes(count) as executor:
        for share, result in _spread(executor, shares, function, count):
            yield len(share), result


def _spread(
    executor: Executor, shares: list[list[_T]], function: Callable[[Sequence[_T]], _R], workers: int
) -> Iterator[tuple[list[_T], _R]]:
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait

    waiting: dict[Future[_R], list[_T]] = {}
    broken = False
    while shares or waiting:
        while shares and not broken and len(waiting) < workers * _AHEAD:
            share = shares.pop()
            try:
                waiting[executor.submit(function, share)] = share
            except BrokenExecutor:
                broken = True
                shares.append(share)
        if broken and not waiting:
            share = shares.pop()
            yield share, function(share)
            continue
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            share = waiting.pop(future)
            if isinstance(future.exception(), BrokenExecutor):
                broken = True
                shares.append(share)
            else:
                yield share, future.result()


def _shares(items: Sequence[_T], sizes: Sequence[int]) -> list[list[_T]]:
    """Divide items into shares, to be taken from the last one on: large items first, each alone."""
    shares: list[list[_T]] = [[]]
    size = 0
    by_size = sorted(zip(sizes, items, strict=True), key=lambda one: -one[0] if one[0] > _SHARE else 0)
    for item_size, item in by_size:
        if size + item_size + _ITEM > _SHARE and shares[-1]:
            shares.append([])
            size = 0
        shares[-1].append(item)
        size += item_size + _ITEM
    return [share for share in reversed(shares) if share]
