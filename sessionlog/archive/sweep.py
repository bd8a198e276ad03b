"""Sweep: delete what the archive no longer needs: what runs that were killed left, and files whose logs have all grown.

A file that small logs share is deleted only by the lines of the manifest that name it: an older version in it may be
all that is left of a log.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress

from sessionlog import files
from sessionlog.archive.entry import entry_of
from sessionlog.archive.manifest import read_lines
from sessionlog.archive.pack import SHARED
from sessionlog.errors import LogNotReadable

_SUFFIX = ".tar.zst"
_ANY_SHARED = re.compile(rb"%b[0-9a-f]{32}" % SHARED.encode())


def sweep(folder: str, before_ns: int) -> None:
    """Remove the temporary files of runs that were killed, and the shared files that they did not add."""
    unnamed: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = os.path.join(place, name)
            is_shared = _is_shared(name)
            if not is_shared and not name.startswith("."):
                continue
            status = files.stat_path(path)
            if status is None or status.st_mtime_ns >= before_ns:
                continue
            if is_shared:
                unnamed[name.removesuffix(_SUFFIX)] = path
            elif name in folders:
                files.remove_directory(path)
            else:
                files.remove_file(path)
    if not unnamed:
        return
    with suppress(LogNotReadable, OSError):  # no manifest: the entries are in the files alone
        for line in read_lines(folder):
            for name in _ANY_SHARED.findall(line):  # of a damaged line, too: its pack still holds the entry
                unnamed.pop(name.decode(), None)
        for path in unnamed.values():
            files.remove_file(path)


def remove_replaced(folder: str) -> None:
    """Delete each shared file of which every entry was replaced by a later one."""
    living = Counter[str]()  # file → how many of its entries are not replaced
    places: dict[str, tuple[str, ...]] = {}  # version, which is that of one log → the files that have it
    damaged: set[bytes] = set()
    try:
        for line in read_lines(folder):
            if (entry := entry_of(line)) is None:
                damaged.update(_ANY_SHARED.findall(line))
                continue
            for version in entry.replaces:
                living.subtract(places.pop(version, ()))
            if entry.shared and entry.name not in (known := places.get(entry.version, ())):
                places[entry.version] = (*known, entry.name)
                living[entry.name] += 1
    except (LogNotReadable, OSError):
        return
    for name, count in living.items():
        file = os.path.basename(name)
        if not count and _is_shared(file) and file.removesuffix(_SUFFIX).encode() not in damaged:
            files.remove_file(os.path.join(folder, name))


def _is_shared(name: str) -> bool:
    return name.endswith(_SUFFIX) and _ANY_SHARED.fullmatch(name.removesuffix(_SUFFIX).encode()) is not None
