"""The manifest: a line per entry, appended once its pack is verified and on the disk. A pack without a line is ignored.

The archive is used only if its folder belongs to the user and no one else can write to it. A lost manifest is rebuilt
from the packs, each of which holds the line of its entry.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice

from sessionlog import files
from sessionlog.archive.entry import Entry, entry_of
from sessionlog.errors import LogNotReadable
from sessionlog.settings import data_home

_NAME = "manifest.jsonl"
_LINES = 256  # in one write
_BUFFER = 16 << 10  # a line is read at a time


def archive_folder(env: Mapping[str, str]) -> str:
    """Return the archive's path: `$XDG_DATA_HOME/sessionlog/archive`."""
    return os.path.join(data_home(env), "sessionlog", "archive")


class Manifest(Mapping[tuple[str, str], Entry]):
    """(source, path) → the latest entry of that log, read from its line on each access: there may be very many."""

    def __init__(self, path: str) -> None:
        """Read the manifest at a path, which exists; torn lines are skipped."""
        self._file = files.open_log(path, buffer=_BUFFER)
        self._at: dict[int, int] = {}  # hash of (source, path) → where the line begins
        self._last: tuple[int, Entry] | None = None  # what was read last, and where
        begin = 0
        for line in self._file:
            entry = entry_of(line)
            if entry is not None:
                self._at[hash((entry.source, entry.path))] = begin
            begin += len(line)

    def __getitem__(self, key: tuple[str, str]) -> Entry:
        entry = self._read(self._at[hash(key)])
        if (entry.source, entry.path) != key:
            raise KeyError(key)
        return entry

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for entry in map(self._read, self._at.values()):
            yield entry.source, entry.path

    def __len__(self) -> int:
        return len(self._at)

    def _read(self, begin: int) -> Entry:
        if self._last is not None and self._last[0] == begin:  # `values` asks for a key, then for its value
            return self._last[1]
        self._file.seek(begin)
        entry = entry_of(self._file.readline())
        if entry is None:
            raise LogNotReadable(f"{self._file.name}: it was changed while it was read")
        self._last = begin, entry
        return entry

    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()


def read_manifest(folder: str) -> Mapping[tuple[str, str], Entry]:
    """Return (source, path) → the latest entry of that log.

    Raises:
        LogNotReadable: Other users own the archive, or can write to it.
    """
    check_private(folder)
    path = os.path.join(folder, _NAME)
    if files.stat_path(path) is not None:
        return Manifest(path)
    entries = sorted(_read_packs(folder), key=lambda entry: entry.archived)  # older versions have lines, too
    files.make_directories(folder)
    add_entries(folder, entries)
    return {(entry.source, entry.path): entry for entry in entries}


def read_lines(folder: str) -> Iterator[bytes]:
    """Yield each line of the manifest, those of older versions of a log and damaged ones, too.

    Raises:
        LogNotReadable: There is no manifest, or it cannot be read.
    """
    with files.open_log(os.path.join(folder, _NAME), buffer=_BUFFER) as file:
        yield from file


def add_entries(folder: str, entries: Iterable[Entry]) -> None:
    """Append entries to the manifest, which makes their packs part of the archive."""
    lines = (f"{entry.to_json()}\n".encode() for entry in entries)
    pieces = iter(lambda: b"".join(islice(lines, _LINES)), b"")
    if first := next(pieces, b""):
        files.append_private(os.path.join(folder, _NAME), chain([first], pieces))


def check_private(folder: str) -> None:
    """Check that no other user owns the archive or can write to it; there may be none yet.

    Raises:
        LogNotReadable: Another user does or can.
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


def _read_packs(folder: str) -> Iterator[Entry]:
    """The entries of all packs in the archive's folder."""
    from sessionlog.archive.pack import read_own_lines

    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(".tar.zst") and not name.startswith("."):
                path = os.path.join(place, name)
                for line, size in read_own_lines(path):
                    entry = entry_of(line)
                    if entry is not None and os.path.join(folder, entry.name) == path:
                        yield replace(entry, packed=size)
