"""Identity: what a log looks like from outside, so that an unchanged one costs one stat.

Device, inode, size, mtime and ctime, and the same of what is read beside it (a database's write-ahead log, a
description file). The mtime can be set by anybody and an inode is used again, but the ctime cannot be set. A log that
is a folder of small files is known by all of them. What was written a moment ago is not settled: it may change within
one tick of the clock, and its last line may be in the writing.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable

SETTLED_NS = 2_100_000_000
"""Clocks of file systems tick coarsely, on FAT every two seconds."""

Identity = tuple[int, int, int, int, int, str]
"""(device, inode, size, mtime_ns, ctime_ns, what is beside)."""

_DATABASES = (".db", ".sqlite", ".sqlite3")


def identify(path: str, beside: Iterable[str] = ()) -> Identity | None:
    """Return what a log looks like now, None if it is not there."""
    status = _status(path)
    if status is None:
        return None
    shown = _beside(path, beside)
    size, mtime_ns = status.st_size, status.st_mtime_ns
    if stat.S_ISDIR(status.st_mode):
        size, mtime_ns, inside = _folder(path)
        shown = f"{inside};{shown}"
    return status.st_dev, status.st_ino, size, mtime_ns, status.st_ctime_ns, shown


def _status(path: str) -> os.stat_result | None:
    """The state of the file a path names, without the 1 ms that `files` costs the shortest report."""
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _beside(path: str, beside: Iterable[str]) -> str:
    """Path, size and mtime of each, absent ones too: they may come."""
    paths = [*beside, f"{path}-wal"] if path.endswith(_DATABASES) else list(beside)
    return "\n".join(f"{os.fsencode(one).hex()}:{_state(one)}" for one in paths)


def _state(path: str) -> str:
    status = _status(path)
    return "-" if status is None else f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def is_beside(shown: str) -> bool:
    """Whether what was beside a log, as `identify` shown it, still looks like that."""
    for line in shown.split("\n") if shown else ():
        name, _, state = line.partition(":")
        if ";" in name or _state(os.fsdecode(bytes.fromhex(name))) != state:
            return False
    return True


def _folder(path: str) -> tuple[int, int, str]:
    """Size and time of all that is in a folder, and a number that any change of it changes."""
    size = newest = count = mixed = 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in names:
            status = _status(os.path.join(folder, name))
            if status is not None:
                size, newest, count = size + status.st_size, max(newest, status.st_mtime_ns), count + 1
                mixed ^= hash((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return size, newest, f"{count}.{mixed}"


def stored_path(path: str) -> str | bytes:
    """A path as SQLite can hold it: names of files may be no text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def path_of(stored: str | bytes) -> str:
    """Return the path that `stored_path` stored."""
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored
