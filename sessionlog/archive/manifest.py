"""The manifest: a line per entry, appended when the entry is verified and on the disk. What it does not name is none.

The archive is private: its folder is ours, and nobody else may write to it, or it is not used. Should the manifest be
lost, it is made again from the entries, for each holds its own line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from sessionlog import files
from sessionlog.archive.entry import Entry, entry_of
from sessionlog.errors import LogNotReadable
from sessionlog.settings import data_home

_NAME = "manifest.jsonl"


def archive_folder(env: Mapping[str, str]) -> str:
    """Return where the archive is: `$XDG_DATA_HOME/sessionlog/archive`."""
    return os.path.join(data_home(env), "sessionlog", "archive")


def read_manifest(folder: str) -> dict[tuple[str, str], Entry]:
    """Return (source, path) → the latest entry of that log.

    Raises:
        LogNotReadable: Others own the archive, or may write to it.
    """
    check_private(folder)
    path = os.path.join(folder, _NAME)
    latest: dict[tuple[str, str], Entry] = {}
    known = files.stat_path(path) is not None
    for entry in _told(path) if known else _found(folder):
        before = latest.get((entry.source, entry.path))
        if before is None or known or before.archived <= entry.archived:
            latest[entry.source, entry.path] = entry
    if not known:
        files.make_directories(folder)
        for entry in latest.values():
            add_entry(folder, entry)
    return latest


def add_entry(folder: str, entry: Entry) -> None:
    """Write down an entry; from now on it counts."""
    files.append_private(os.path.join(folder, _NAME), [f"{entry.to_json()}\n".encode()])


def check_private(folder: str) -> None:
    """Make sure that the archive is ours alone, if there is one.

    Raises:
        LogNotReadable: It is not.
    """
    try:
        status = os.lstat(folder)
    except OSError:
        return
    user = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != user:
        raise LogNotReadable(f"{folder}: the archive must be a folder of your own")
    if os.name == "posix" and status.st_mode & 0o022:
        raise LogNotReadable(f"{folder}: others may write to the archive; `chmod go-w` makes it yours alone")


def _told(path: str) -> Iterator[Entry]:
    """The entries of the manifest; a line that was torn tells none."""
    with files.open_log(path) as file:
        for line in file:
            entry = entry_of(line)
            if entry is not None:
                yield entry


def _found(folder: str) -> Iterator[Entry]:
    """The entries that are there, whatever a manifest says."""
    from sessionlog.archive.pack import read_own_line  # noqa: PLC0415 - 8 ms that only a lost manifest costs

    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".tar.zst") and not name.startswith("."):
                path = os.path.join(place, name)
                entry = entry_of(read_own_line(path))
                if entry is not None and os.path.join(folder, entry.name) == path:
                    yield entry
