"""Spread: call a function with shares of many files, in this process or in several.

Sources do not know the engine: their caller gives them `engine.shares.map_shares`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from sessionlog import files

_T = TypeVar("_T")
_R = TypeVar("_R")

AT_ONCE = 1 << 14
"""Items that are given to a `Spread`, of very many: so many results are in memory, and their last one is waited for."""

_SHARE_FILES, _SHARE_BYTES = 128, 8 << 20  # as in `engine.shares`

Spread = Callable[[Sequence[Any], Sequence[int], Callable[[Sequence[Any]], list[Any]]], Iterator[tuple[int, list[Any]]]]
"""(items, the bytes of each, function of a share) → (number of items, result) of each share, as they are done."""


def in_shares(
    items: Sequence[_T], sizes: Sequence[int], function: Callable[[Sequence[_T]], list[_R]]
) -> Iterator[tuple[int, list[_R]]]:
    """Call the function in this process, with some items at once."""
    share, size = list[_T](), 0
    for item, count in zip(items, sizes, strict=True):
        share.append(item)
        size += count
        if len(share) >= _SHARE_FILES or size >= _SHARE_BYTES:
            yield len(share), function(share)
            share, size = [], 0
    if share:
        yield len(share), function(share)


def spread_files(
    items: Sequence[tuple[_T, str]],
    function: Callable[[_T], _R],
    spread: Spread,
    progress: Callable[[int, int], None] | None,
) -> Iterator[_R]:
    """Yield the function's result for each (item, path of the file that it reads), in order.

    Remote files are read in this process. `progress` is called with (files done, files in all).
    """
    for begin in range(0, len(items), AT_ONCE):
        some = items[begin : begin + AT_ONCE]
        local = [(number, item) for number, (item, path) in enumerate(some) if not files.is_url(path)]
        sizes = [_size(some[number][1]) for number, _ in local]
        found: dict[int, _R] = {}
        for _, results in spread(local, sizes, partial(_numbered, function)):
            found.update(results)
            if progress is not None:
                progress(begin + len(found), len(items))
        for number, (item, path) in enumerate(some):
            if files.is_url(path):
                found[number] = function(item)
                if progress is not None:
                    progress(begin + len(found), len(items))
        yield from map(found.__getitem__, range(len(some)))


def _numbered(function: Callable[[_T], _R], share: Sequence[tuple[int, _T]]) -> list[tuple[int, _R]]:
    return [(number, function(item)) for number, item in share]


def _size(path: str) -> int:
    status = files.stat_path(path)
    return 0 if status is None else status.st_size
