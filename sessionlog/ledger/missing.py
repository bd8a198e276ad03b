"""Missing: why a known log is not among those that were listed: deleted, out of reach, or not looked for.

A log counts as deleted only where that can be seen. It may be below a folder that cannot be listed, or on a disk that
is not there: then it is `UNREADABLE`, its records count as before, and a problem names the place. A disk is taken for
absent where a place without any log is on another file system than the logs that were read there: so looks the empty
folder on which a disk is mounted otherwise. A place that has logs is there, though the number of its device may change
when a machine starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from sessionlog import files
from sessionlog.errors import Problem
from sessionlog.ledger.schema import ELSEWHERE, GONE, UNREADABLE


class Known(NamedTuple):
    """A known log that was not listed.

    Attributes:
        path: Where it was.
        file_id: Its id.
        missing: Why it was missing before.
        device: The number of the device that it was on; 0 where that is unknown, below 0 for a store.
    """

    path: str
    file_id: int
    missing: int
    device: int


class Missing:
    """Decides why logs are missing, and collects what is to be named.

    Attributes:
        unreadable: How many are out of reach.
        problems: The places out of reach that the listing has not named.
    """

    def __init__(self, places: Sequence[str], seen: set[str], unlisted: Iterable[str]) -> None:
        """Take the places that were searched, the logs that were found, and what could not be listed."""
        self._places = sorted(places, key=len, reverse=True)
        self._unlisted = {path.rstrip(os.sep) for path in unlisted}
        self._named: dict[str, str] = {}
        self.unreadable = 0
        self._has_logs = cache(lambda place: any(is_below(path, place) for path in seen))
        self._device = cache(_device_above)

    @property
    def problems(self) -> Iterator[Problem]:
        """See above."""
        return (Problem(path=path, kind="unreadable", detail=detail) for path, detail in self._named.items())

    def why(self, log: Known) -> int:
        """Return the value of `missing` for a log."""
        place = next((place for place in self._places if is_below(log.path, place)), None)
        if place is None:
            return ELSEWHERE
        if self._unlisted and not self._unlisted.isdisjoint(_with_folders(log.path)):
            self.unreadable += 1
            return UNREADABLE
        reason = files.why_absent(log.path)
        if reason is None:
            return ELSEWHERE
        folder = os.path.dirname(log.path)
        if not reason and (log.missing == GONE or self._is_disk_there(log, place, folder)):
            return GONE
        named = (folder, reason) if reason else (place, "the disk that its logs were on is not there")
        self._named.setdefault(*named)
        self.unreadable += 1
        return UNREADABLE

    def _is_disk_there(self, log: Known, place: str, folder: str) -> bool:
        return log.device <= 0 or self._device(folder) == log.device or self._has_logs(place)


def is_below(path: str, place: str) -> bool:
    """Whether a path is a place, or below it."""
    return path == place or path.startswith(place if place.endswith(os.sep) else place + os.sep)


def _with_folders(path: str) -> Iterator[str]:
    """Yield a path, and each folder above it."""
    while path:
        yield path
        path = path.rpartition(os.sep)[0]


def _device_above(folder: str) -> int:
    """Return the device of the nearest folder above that exists."""
    while (status := files.stat_path(folder)) is None and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return 0 if status is None else status.st_dev
