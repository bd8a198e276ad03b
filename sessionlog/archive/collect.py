"""Collect: which files a log needs to be read, and what of each is kept.

A log is a file, a folder of small files, or a database, which is kept as a snapshot of one moment. With it goes what
its source reads beside it (`Source.sidecars`), if that is small: many logs share such files, each keeps its own copy.
They may be an agent's settings, and lose the secrets that are known by their shapes. Nothing is ever opened but for
reading.
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
"""Bytes of a file beside a log that is kept with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file as it looks.

    Attributes:
        path: Absolute.
        size: In bytes.
        mtime_ns: When it was written to.
        ctime_ns: When anything of it was changed; it cannot be set.
        kind: `own` for the log itself, `watched` for a database's write-ahead log, `beside` for a file that the source
            reads, too, `part` for one in a folder of those.
    """

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    kind: str

    @property
    def state(self) -> State:
        """What tells that it has changed."""
        return self.path, self.size, self.mtime_ns, self.ctime_ns


def look(log: Log) -> tuple[Seen, ...]:
    """Return all files of a log as they are now, the log's own first; opens none of them.

    Raises:
        LogNotReadable: The log is not there, or is no file and no folder.
    """
    path = os.path.abspath(log.path)
    found = list(_look_at(path, "own"))
    if not found:
        raise LogNotReadable(f"{path}: no such file")
    if not os.path.isdir(path) and not path.endswith((*LOG_SUFFIXES, ".json")):
        found += _look_at(f"{path}-wal", "watched")
    known = {seen.path for seen in found}
    for beside in map(os.path.abspath, log.source.sidecars(log.path)):
        found += [seen for seen in _look_at(beside, "beside") if seen.path not in known]
        known.update(seen.path for seen in found)
    return tuple(found)


def _look_at(path: str, kind: str) -> Iterator[Seen]:
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


def _seen(path: str, status: os.stat_result, kind: str) -> Seen:
    return Seen(path=path, size=status.st_size, mtime_ns=status.st_mtime_ns, ctime_ns=status.st_ctime_ns, kind=kind)


def last_written_ns(seen: Iterable[Seen]) -> int:
    """Return when a log was written to, whatever happened beside it."""
    return max(file.mtime_ns for file in seen if file.kind in ("own", "watched"))


def contents_of(seen: Sequence[Seen], folder: str) -> list[Content]:
    """Return what is to be kept of a log's files; snapshots of databases are made in `folder`.

    Raises:
        LogNotReadable: One of the log's own files cannot be read; what is only beside it is left out then.
    """
    contents: list[Content] = []
    for file in seen:
        if file.kind == "own":
            contents.append(_own(file, os.path.join(folder, f"{len(contents)}.db")))
        elif file.kind != "watched":
            try:
                contents.append(_beside(file))
            except LogNotReadable:
                continue
    return contents


def _own(file: Seen, snapshot: str) -> Content:
    with files.open_log(file.path) as opened:
        is_database = opened.read(len(_MAGIC)) == _MAGIC
    if is_database and _snapshot(file.path, snapshot):
        return _content(file, snapshot)
    return _content(file, file.path)


def _snapshot(path: str, copy: str) -> bool:
    """Copy a database as of one moment; False where it is damaged, and only its bytes can be kept."""
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


def _beside(file: Seen) -> Content:
    if file.kind == "part":
        with files.open_log(file.path):
            return _content(file, file.path)
    if file.size > SMALL:
        raise LogNotReadable(f"{file.path}: it is too large to be kept with every log")
    given = redact_line(files.read_small(file.path, SMALL) or b"")
    return Content(path=file.path, mtime_ns=file.mtime_ns, given=given, length=len(given))


def _content(file: Seen, given: str) -> Content:
    status = files.stat_path(given)
    size = file.size if given == file.path or status is None else status.st_size
    return Content(path=file.path, mtime_ns=file.mtime_ns, given=given, length=size)
