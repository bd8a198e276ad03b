"""Collect: which files reading a log needs, and what the archive keeps of each.

A log is a file, a folder of small files, or a database, which is kept as a snapshot of one moment. The small files that
its source reads besides (`Source.sidecars`) are kept with it: many logs share such files, and each log keeps its own
copy. They may be an agent's settings, so known kinds of secrets are redacted in them. Files are only read.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from sessionlog import files
from sessionlog.archive.entry import State
from sessionlog.archive.pack import Content
from sessionlog.errors import LogLocked, LogNotReadable
from sessionlog.events.redact import redact_line
from sessionlog.reader.database import LOCKED, is_lock, open_database
from sessionlog.reader.walk import LOG_SUFFIXES
from sessionlog.sources.protocol import Log

_MAGIC = b"SQLite format 3\x00"
SMALL = 1 << 20
"""Bytes of the largest sidecar that is kept with a log."""

SMALL_LOG = 64 << 10
"""Bytes of the files of a log up to which they are read once, and its pack shares a file with others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """A file of a log, and its state.

    Attributes:
        path: Absolute.
        size: In bytes.
        mtime_ns: When it was last written to.
        ctime_ns: When its content or its inode last changed; programs cannot set it.
        kind: `own` for the log itself, `watched` for a database's write-ahead log, `beside` for a sidecar, `part` for a
            file in a folder that is a sidecar.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    kind: str

    @property
    def state(self) -> State:
        """What shows whether it has changed."""
        return self.path, self.size, self.mtime_ns, self.ctime_ns


def list_files(log: Log) -> tuple[SeenFile, ...]:
    """Return all files of a log as they are now, the log's own first; opens none of them.

    Raises:
        LogNotReadable: The log does not exist, or is neither a file nor a folder.
    """
    path = os.path.abspath(log.path)
    found = list(_list(path, "own"))
    if not found:
        raise LogNotReadable(f"{path}: no such file")
    if not os.path.isdir(path) and not path.endswith((*LOG_SUFFIXES, ".json")):
        found += _list(f"{path}-wal", "watched")
    known = {seen.path for seen in found}
    for beside in map(os.path.abspath, log.source.sidecars(log.path)):
        found += [seen for seen in _list(beside, "beside") if seen.path not in known]
        known.update(seen.path for seen in found)
    return tuple(found)


def _list(path: str, kind: str) -> Iterator[SeenFile]:
    status = files.stat_path(path)
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                inside = files.stat_path(os.path.join(folder, name))
                if inside is not None and stat.S_ISREG(inside.st_mode):
                    part = "part" if kind == "beside" else kind
                    yield _seen(os.path.join(folder, name), inside, part)
    elif stat.S_ISREG(status.st_mode):
        yield _seen(path, status, kind)


def _seen(path: str, status: os.stat_result, kind: str) -> SeenFile:
    return SeenFile(
        path=path, size=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns, kind=kind
    )  # fmt: skip


def last_written_ns(seen: Iterable[SeenFile]) -> int:
    """Return when a log was last written to; writes to its sidecars do not count."""
    return max(file.mtime_ns for file in seen if file.kind in ("own", "watched"))


def contents_of(seen: Sequence[SeenFile], folder: str) -> list[Content]:
    """Return what to keep of a log's files; snapshots of databases are made in `folder`.

    Raises:
        LogNotReadable: One of the log's own files cannot be read; unreadable sidecars are left out.
    """
    contents: list[Content] = []
    is_small = sum(file.size for file in seen) <= SMALL_LOG
    for file in seen:
        if file.kind == "own":
            contents.append(_own(file, os.path.join(folder, f"{len(contents)}.db"), is_small=is_small))
        elif file.kind != "watched":
            try:
                contents.append(_beside(file))
            except LogNotReadable:
                continue
    return contents


def _own(file: SeenFile, snapshot: str, *, is_small: bool) -> Content:
    with files.open_log(file.path, buffer=0) as opened:
        begun = opened.read(max(file.size, len(_MAGIC)) if is_small else len(_MAGIC))
    if begun.startswith(_MAGIC) and _snapshot(file.path, snapshot):
        return _content(file, snapshot)
    if is_small and len(begun) >= file.size:
        return Content(path=file.path, mtime_ns=file.mtime_ns, given=begun[: file.size], length=file.size)
    return _content(file, file.path)


def _snapshot(path: str, copy: str) -> bool:
    """Copy a database as of one moment; return False if it is damaged, so that only its bytes can be kept."""
    files.make_directories(os.path.dirname(copy))
    try:
        with closing(open_database(path)) as database, closing(sqlite3.connect(copy)) as kept:
            database.backup(kept)
    except sqlite3.DatabaseError as error:
        if is_lock(error):
            raise LogLocked(f"{path}: {LOCKED}") from error
        return False
    except LogLocked:
        raise
    except LogNotReadable as error:
        if isinstance(error.__cause__, sqlite3.DatabaseError):
            return False
        raise
    return True


def _beside(file: SeenFile) -> Content:
    if file.kind == "part":
        with files.open_log(file.path):
            return _content(file, file.path)
    if file.size > SMALL:
        raise LogNotReadable(f"{file.path}: it is too large to be kept with every log")
    given = redact_line(files.read_small(file.path, SMALL) or b"")
    return Content(path=file.path, mtime_ns=file.mtime_ns, given=given, length=len(given))


def _content(file: SeenFile, given: str) -> Content:
    status = files.stat_path(given)
    size = file.size if given == file.path or status is None else status.st_size
    return Content(path=file.path, mtime_ns=file.mtime_ns, given=given, length=size)
