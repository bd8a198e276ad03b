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

_AT_ONCE = 1 << 14  # of very many files; the last share of each part is waited for

Spread = Callable[[Sequence[Any], Sequence[int], Callable[[Sequence[Any]], list[Any]]], Iterator[tuple[int, list[Any]]]]
"""(items, the bytes of each, function of a share) → (number of items, result) of each share, as they are done."""


def in_this_process(
    items: Sequence[_T], _: Sequence[int], function: Callable[[Sequence[_T]], list[_R]]
) -> Iterator[tuple[int, list[_R]]]:
    """Call the function with one item after the other."""
    for item in items:
        yield 1, function([item])


def spread_files(
    items: Sequence[tuple[_T, str]],
    function: Callable[[_T], _R],
    spread: Spread,
    progress: Callable[[int, int], None] | None,
) -> Iterator[_R]:
    """Yield the function's result for each (item, path of the file that it reads), in order.

    Remote files are read in this process. `progress` is called with (files done, files in all).
    """
    call = partial(_numbered, function)
    for begin in range(0, len(items), _AT_ONCE):
        some = items[begin : begin + _AT_ONCE]
        here = [(number, item) for number, (item, path) in enumerate(some) if files.is_url(path)]
        local = [(number, item) for number, (item, path) in enumerate(some) if not files.is_url(path)]
        found: dict[int, _R] = {}
        sizes = [_size(some[number][1]) for number, _ in local]
        for shares in (in_this_process(here, (), call), spread(local, sizes, call)):
            for _, results in shares:
                found.update(results)
                if progress is not None:
                    progress(begin + len(found), len(items))
        yield from map(found.__getitem__, range(len(some)))


def _numbered(function: Callable[[_T], _R], share: Sequence[tuple[int, _T]]) -> list[tuple[int, _R]]:
    return [(number, function(item)) for number, item in share]


def _size(path: str) -> int:
    status = files.stat_path(path)
    return 0 if status is None else status.st_size
