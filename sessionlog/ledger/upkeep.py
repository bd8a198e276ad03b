"""Upkeep of the ledger's file: a backup, forgetting, and a rebuild that loses nothing that can still be read.

Rows of logs that are gone cannot be read again: so a backup overwrites no file, a rebuild reads only existing logs
again, and a damaged file is kept beside the new one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import count
from typing import Any

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.book import Book
from sessionlog.ledger.checksums import write_checksums
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.opening import is_damaged, open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.salvage import Salvaged, salvage
from sessionlog.ledger.schema import GONE
from sessionlog.ledger.sync import Progress, Scanner, Synced, scan_here
from sessionlog.pricing.book import PriceBook

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgettable:
    """The logs that match a source and a time.

    Attributes:
        gone: Ids of logs that are gone: these can be forgotten.
        records: Responses of theirs that count.
        sessions: Sessions in them.
        there: Matching logs that still exist, or may exist where they cannot be seen; they stay.
    """

    gone: tuple[int, ...]
    records: int
    sessions: int
    there: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The result of a rebuild.

    Attributes:
        synced: The result of its sync; None if another process was writing.
        damaged: Where the damaged file is kept; empty if the file was undamaged and rebuilt in place.
        rescued: What could be read of the damaged file.
    """

    synced: Synced | None
    damaged: str = ""
    rescued: Salvaged | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "damaged": self.damaged or None,
            "rescued": None if self.rescued is None else asdict(self.rescued),
            "synced": None if self.synced is None else asdict(self.synced),
        }


def back_up(book: Book, path: str) -> int:
    """Copy a ledger as it is now into a new file that only its owner can read; return its size in bytes.

    Raises:
        LedgerUnusable: The file exists already, or cannot be written.
    """
    if os.path.lexists(path):
        raise LedgerUnusable(f"{path}: there is a file already; a backup overwrites nothing")
    try:
        files.make_private(path)
        with closing(sqlite3.connect(path)) as copy:
            book.connection.backup(copy)
    except (OSError, sqlite3.Error) as error:
        raise LedgerUnusable(f"{path}: no backup: {files.reason_of(error)}") from error
    status = files.stat_path(path)
    return 0 if status is None else status.st_size


def find_forgettable(book: Book, *, sources: Sequence[str] = (), before_ns: int | None = None) -> Forgettable:
    """Find the logs of these sources (glob patterns) without any response or tool call since `before_ns`.

    For a log without times its last write counts.
    """
    last = dict(book.query(_LAST, {}))
    fitting = [
        row
        for row in book.query(_LOGS, {})
        if (not sources or any(fnmatchcase(str(row[1]), pattern.strip().lower()) for pattern in sources))
        and (before_ns is None or before_ns > (row[4] if last.get(row[0]) is None else last[row[0]]))
    ]
    gone = [row for row in fitting if row[2] == GONE and files.why_absent(path_of(row[5])) == ""]
    ids = {row[0] for row in gone}
    sessions = {
        session for file_id, session in book.query("SELECT file_id, session_id FROM log_sessions", {}) if file_id in ids
    }
    return Forgettable(
        gone=tuple(sorted(ids)),
        records=sum(row[3] for row in gone),
        sessions=len(sessions),
        there=len(fitting) - len(gone),
    )


_LOGS = """SELECT id, source, missing, (SELECT COUNT(*) FROM responses r WHERE r.file_id = f.id AND r.counts), mtime_ns,
    path FROM files f"""
_LAST = """SELECT file_id, MAX(time_ns)
    FROM (SELECT file_id, time_ns FROM responses UNION ALL SELECT file_id, time_ns FROM calls) GROUP BY 1"""


def forget(book: Book, found: Forgettable) -> int:
    """Delete logs that are gone, and all their rows, and overwrite these in the file; return how many logs."""
    connection = book.connection
    connection.execute("PRAGMA secure_delete = ON")
    forgotten = book.forget(found.gone)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM labels WHERE id NOT IN (SELECT label_id FROM responses)")
    connection.execute("DELETE FROM names WHERE id NOT IN (SELECT name_id FROM calls)")
    book.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return forgotten


def rebuild(
    path: str,
    prices: PriceBook,
    env: Mapping[str, str],
    *,
    now: datetime | None = None,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
) -> Rebuilt:
    """Read every log again; rows of logs that are gone are kept.

    An undamaged file is rebuilt in place, in transactions. All that can be read of a damaged one is copied to a new
    file, which replaces it; the damaged one is kept beside it.

    Raises:
        LedgerUnusable: The file is not the user's alone, of a newer version, or cannot be written.
    """
    book = _open_undamaged(path, prices)
    if book is not None:
        with closing(book):
            return Rebuilt(synced=_read_all_again(book, env, scanner, progress))
    moment = now or datetime.now(UTC)
    damaged = _free_name(f"{path}.damaged-{moment:%Y%m%dT%H%M%SZ}")
    folder = f"{path}.new"
    try:
        _copy(path, damaged)
        files.remove_directory(folder)
        new, old = os.path.join(folder, "ledger.sqlite"), os.path.join(folder, "damaged.sqlite")
        with closing(open_ledger(new, prices)) as fresh:
            _copy(path, old)
            rescued = salvage(old, fresh)
            synced = _read_all_again(fresh, env, scanner, progress)
        _take_place(new, path)
    except OSError as error:
        raise LedgerUnusable(f"{path}: not rebuilt: {files.reason_of(error)}; it is as it was") from error
    finally:
        files.remove_directory(folder)
    return Rebuilt(synced=synced, damaged=damaged, rescued=rescued)


def _open_undamaged(path: str, prices: PriceBook) -> Book | None:
    """Open the ledger; None if it is damaged."""
    try:
        book = open_ledger(path, prices)
    except LedgerUnusable as error:
        if is_damaged(error):
            return None
        raise
    try:
        [first, *_] = book.connection.execute("PRAGMA integrity_check(1)").fetchall()
        if first == ("ok",):
            return book
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        pass
    book.close()
    return None


def _read_all_again(book: Book, env: Mapping[str, str], scanner: Scanner, progress: Progress | None) -> Synced | None:
    """Mark all logs as changed, so that a sync reads those that exist, and recompute all derived values."""
    book.connection.execute("BEGIN IMMEDIATE")
    book.connection.execute("UPDATE files SET settled = 0, stamp = stamp + 1")
    book.connection.execute("DELETE FROM resumes")
    book.connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
    book.set_meta("prices", "")
    book.commit()
    synced = refresh(book, env, scanner=scanner, progress=progress, trusting=False)
    book.reconcile_all()
    book.connection.execute("BEGIN IMMEDIATE")
    book.connection.execute("UPDATE files SET checksum = ''")
    write_checksums(book.connection)
    book.commit()
    return synced


def _copy(path: str, copy: str) -> None:
    """Copy a ledger's file and its write-ahead log, byte by byte."""
    for ending in ("", "-wal"):
        if files.stat_path(path + ending) is not None:
            files.make_private(copy + ending)
            files.copy_file(path + ending, copy + ending)


def _take_place(new: str, path: str) -> None:
    """Replace a ledger's file by a new one, and empty the old write-ahead log, which does not belong to it."""
    files.replace_file(f"{path}-wal", [])
    files.replace_file(path, _pieces(new))


def _pieces(path: str) -> list[bytes]:
    with files.open_log(path) as file:
        return list(iter(lambda: file.read(_PIECE), b""))


def _free_name(name: str) -> str:
    names = (f"{name}.{number}" if number else name for number in count())
    return next(free for free in names if not os.path.lexists(free))
