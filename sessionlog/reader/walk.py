"""Finds the log files in folders: recursively, every file once, in a stable order."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator

from sessionlog.errors import Problem
from sessionlog.files import is_directory, is_url, reason_of, scan_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.files.remote import Folder

LOG_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


def walk_logs(paths: Iterable[str]) -> Iterator[str | Problem]:
    """Yield the log files among these files and folders, sorted within each, every file once.

    Folders are walked recursively; a link is followed only to a file or folder of the link's owner, and loops are cut.
    A folder that cannot be listed is a `Problem`; a file named in `paths` is yielded whatever its suffix.
    """
    yield from walk_files(paths, lambda name: name.endswith(LOG_SUFFIXES))


def walk_files(
    paths: Iterable[str], wanted: Callable[[str], bool], is_log: Callable[[str], bool | None] = lambda _: False
) -> Iterator[str | Problem]:
    """Yield the files named by paths, and those in folders whose name is `wanted`; as `walk_logs` otherwise.

    `is_log` of a folder's path: True yields the folder itself, False walks it, None skips it.
    """
    seen: set[int] = set()
    for path in paths:
        if is_directory(path):
            yield from _walk(path, wanted, is_log, seen)
        elif _first_time(path, seen):
            yield path


def _first_time(path: str, seen: set[int]) -> bool:
    if is_url(path):
        return True  # a store has neither links nor loops
    try:
        status = os.stat(path)
        link = os.lstat(path)
    except (OSError, ValueError):
        return True  # reading it reports the error
    if stat.S_ISLNK(link.st_mode) and link.st_uid != status.st_uid:
        return False
    return _add(status, seen)


def _add(status: os.stat_result, seen: set[int]) -> bool:
    key = status.st_dev << 64 | status.st_ino  # one number: there may be very many
    if key in seen:
        return False
    seen.add(key)
    return True


def _walk(
    folder: str, wanted: Callable[[str], bool], is_log: Callable[[str], bool | None], seen: set[int]
) -> Iterator[str | Problem]:
    """Walk a folder in order; with a stack of its own, because folders nest deeper than Python's recursion limit."""
    if not _first_time(folder, seen):
        return
    waiting = [_entries(folder)]
    while waiting:
        entry = next(waiting[-1], None)
        if entry is None:
            waiting.pop()
        elif isinstance(entry, Problem):
            yield entry
        elif entry.is_dir():
            is_own = is_log(entry.path)
            if is_own is not None and _is_new(entry, seen):
                if is_own:
                    yield entry.path
                else:
                    waiting.append(_entries(entry.path))
        elif wanted(entry.name) and _is_new(entry, seen):
            yield entry.path


def _is_new(entry: os.DirEntry[str] | Folder, seen: set[int]) -> bool:
    """As `_first_time`; what is no link needs one system call."""
    if not isinstance(entry, os.DirEntry) or entry.is_symlink():
        return _first_time(entry.path, seen)
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return True
    return _add(status, seen)


def _entries(folder: str) -> Iterator[os.DirEntry[str] | Folder | Problem]:
    try:
        entries = sorted(scan_folder(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        yield _unreadable(folder, error)
        return
    for entry in entries:
        try:
            entry.is_dir()
        except OSError as error:
            if error.errno != errno.ELOOP:  # a link to itself is cut like any other loop
                yield _unreadable(entry.path, error)
            continue
        yield entry


def _unreadable(path: str, error: OSError) -> Problem:
    return Problem(path=path, line=0, offset=0, kind="unreadable", detail=reason_of(error))
