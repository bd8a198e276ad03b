"""Identity: the state of a log's files, so that checking an unchanged log costs one stat.

It has device, inode, size, mtime and ctime of the log, and the states of its sidecars (a database's write-ahead log, a
description file). A program can set an mtime, and inodes are reused, but nothing can set a ctime. A folder of small
files has the states of all of them. A log written a moment ago is not settled: it may change again within one tick of
the clock, and its last line may be unfinished.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

STABLE_AFTER_NS = 2_100_000_000
"""Clocks of file systems tick coarsely, on FAT every two seconds."""

Identity = tuple[int, int, int, int, int, str]
"""(device, inode, size, mtime_ns, ctime_ns, states of the sidecars)."""

_DATABASES = (".db", ".sqlite", ".sqlite3")


def identify(path: str, beside: Iterable[str] = ()) -> Identity | None:
    """Return the identity of a log with these sidecars; None if it does not exist."""
    status = _status(path)
    if status is None:
        return None
    state = _sidecar_states(path, beside)
    size, mtime_ns = status.st_size, status.st_mtime_ns
    if stat.S_ISDIR(status.st_mode):
        size, mtime_ns, inside = _folder(path)
        state = f"{inside};{state}"
    return status.st_dev, status.st_ino, size, mtime_ns, status.st_ctime_ns, state


def is_same(old: tuple[object, ...], new: Identity) -> bool:
    """Whether two identities are of the same state; an object with an ETag or a version may have been copied anew."""
    if not is_versioned(new[0]):
        return old == new
    return (*old[:3], *old[4:]) == (*new[:3], *new[4:])


def is_versioned(device: int) -> bool:
    """Whether the device of an identity is a store that gives each state of an object an ETag or a version."""
    if device >= 0:
        return False
    from sessionlog.files import VERSIONED

    return device == VERSIONED


def _status(path: str) -> os.stat_result | None:
    """As `files.stat_path`, without the 1 ms that importing `files` would add to the shortest report."""
    if "://" in path:
        from sessionlog import files

        return files.stat_path(path)
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _sidecar_states(path: str, beside: Iterable[str]) -> str:
    """Path and state of each sidecar on a line; absent ones are included, because they may appear."""
    paths = [*beside, f"{path}-wal"] if path.endswith(_DATABASES) else list(beside)
    return "\n".join(f"{os.fsencode(one).hex()}:{_state(one)}" for one in paths)


def _state(path: str) -> str:
    status = _status(path)
    if status is None:
        return "-"
    mtime_ns = 0 if is_versioned(status.st_dev) else status.st_mtime_ns
    return f"{status.st_ino}.{status.st_size}.{mtime_ns}.{status.st_ctime_ns}"


def are_sidecars_unchanged(states: str) -> bool:
    """Whether a log's sidecars have the states that an `Identity` holds; always False for a folder.

    A database that is gone is unchanged, too: its rows are remembered, and the log counts what is beyond them.
    """
    for line in states.split("\n") if states else ():
        name, _, state = line.partition(":")
        if ";" in name:
            return False
        path = os.fsdecode(bytes.fromhex(name))
        now = _state(path)
        if now != state and not (now == "-" and path.endswith(_DATABASES)):
            return False
    return True


def has_lost_database(old: tuple[object, ...], new: Identity) -> bool:
    """Whether a log is as it was, but for a database beside it that is gone."""
    before, now = str(old[5]).split("\n"), new[5].split("\n")
    return old[:5] == new[:5] and {*now} <= {*before, ""} and are_sidecars_unchanged(str(old[5]))


def _folder(path: str) -> tuple[int, int, str]:
    """Return total size and latest mtime of a folder's files, and a text that changes with any of them."""
    size = newest = count = mixed = 0
    from sessionlog import files

    for folder, names in files.walk_folder(path):
        for name in names:
            status = _status(os.path.join(folder, name))
            if status is not None:
                size, newest, count = size + status.st_size, max(newest, status.st_mtime_ns), count + 1
                mixed ^= hash((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return size, newest, f"{count}.{mixed}"


def stored_path(path: str) -> str | bytes:
    """Return a path as SQLite can store it: bytes if it is not valid text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def stored_forms(path: str) -> tuple[str | bytes, ...]:
    """Return the forms in which the ledger may have stored a path that a user names."""
    forms = (path, os.path.abspath(path), os.path.realpath(path))
    return tuple(map(stored_path, dict.fromkeys(forms)))


def path_of(stored: str | bytes) -> str:
    """Return the path that `stored_path` stored."""
    return os.fsdecode(stored) if isinstance(stored, bytes) else stored
