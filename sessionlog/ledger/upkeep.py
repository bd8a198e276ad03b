"""Upkeep of the ledger's file: a backup, forgetting, and a rebuild that loses nothing that can still be read.

Rows of logs that are gone cannot be read again: so a backup overwrites no file, a rebuild reads only existing logs
again, and a damaged file is kept beside the new one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import count
from typing import Any

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.book import Book
from sessionlog.ledger.columns import Label, Name, Row
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.opening import is_damaged, open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import GONE
from sessionlog.ledger.sessions import facts_of
from sessionlog.ledger.sync import Progress, Scanner, Synced, scan_here
from sessionlog.ledger.tables import migrate
from sessionlog.ledger.trust import is_older
from sessionlog.ledger.verify import REFERENCES, check_file
from sessionlog.pricing.book import PriceBook


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
class Rescued:
    """What was copied from a damaged ledger into the new one.

    Attributes:
        files: Logs.
        records: Responses.
        calls: Tool calls.
        lost: Logs with rows that could not be read.
    """

    files: int = 0
    records: int = 0
    calls: int = 0
    lost: int = 0


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
    rescued: Rescued | None = None

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

    An undamaged file is rebuilt in place, in transactions. All rows that can be read of a damaged one are copied to a
    new file, which replaces it; the damaged one is kept beside it.

    Raises:
        LedgerUnusable: The file is not the user's alone, of a newer version, or cannot be written.
    """
    damaged, rescued = "", None
    book = _open_undamaged(path, prices)
    if book is None:
        damaged = _free_name(f"{path}.damaged-{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}")
        rescued = _replace(path, damaged, prices)
        book = open_ledger(path, prices)
    with closing(book):
        return Rebuilt(synced=_read_all_again(book, env, scanner, progress), damaged=damaged, rescued=rescued)


def _open_undamaged(path: str, prices: PriceBook) -> Book | None:
    """Open the ledger; None if it is damaged."""
    try:
        book = open_ledger(path, prices)
    except LedgerUnusable as error:
        if is_damaged(error):
            return None
        raise
    if not check_file(book.connection):
        return book
    book.close()
    return None


def _read_all_again(book: Book, env: Mapping[str, str], scanner: Scanner, progress: Progress | None) -> Synced | None:
    """Mark all logs as changed, so that a sync reads those that exist, and recompute all derived values."""
    book.connection.execute("BEGIN IMMEDIATE")
    _drop_dangling(book.connection)
    book.connection.execute("UPDATE files SET settled = 0, stamp = stamp + 1")
    book.connection.execute("DELETE FROM resumes")
    book.connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
    book.set_meta("prices", "")
    book.commit()
    synced = refresh(book, env, scanner=scanner, progress=progress, list_all=True)
    book.reconcile_all()
    return synced


def _drop_dangling(connection: sqlite3.Connection) -> None:
    """Let no row refer to one that is lost: a log is known by its sessions' facts, a lost name is unknown."""
    connection.create_function("is_facts", 1, _is_facts)
    connection.execute("DELETE FROM log_sessions WHERE NOT is_facts(facts)")
    connection.execute(
        """INSERT OR IGNORE INTO files (id, path, source)
        SELECT file_id, facts ->> 'path', facts ->> 'source' FROM log_sessions"""
    )
    for table, column, names in REFERENCES:
        lost = f"FROM {table} WHERE {column} NOT IN (SELECT id FROM {names})"  # noqa: S608 - names of the schema
        if names == "files":
            connection.execute(f"DELETE {lost}")
        else:
            fields = (Label if names == "labels" else Name)._fields
            insert_into = f"INSERT INTO {names} (id, {', '.join(fields)})"
            connection.execute(
                f"{insert_into} SELECT DISTINCT {column}{', ?' * len(fields)} {lost}", [UNKNOWN] * len(fields)
            )
    connection.execute("UPDATE all_sessions SET metadata = '{}' WHERE NOT json_valid(metadata)")


def _is_facts(text: str) -> bool:
    try:
        facts_of(text)
    except (ValueError, TypeError, KeyError):
        return False
    return True


def _replace(path: str, damaged: str, prices: PriceBook) -> Rescued:
    """Keep a damaged file under another name, and put a new ledger with its rows in its place."""
    folder = f"{path}.new"
    new = os.path.join(folder, "ledger.sqlite")
    try:
        _copy(path, damaged)
        files.remove_directory(folder)
        with closing(open_ledger(new, prices)) as book:
            rescued = _rescue(path, book)
        _take_place(new, path)
    except OSError as error:
        raise LedgerUnusable(f"{path}: not rebuilt: {files.reason_of(error)}; it is as it was") from error
    finally:
        files.remove_directory(folder)
    return rescued


def _rescue(path: str, book: Book) -> Rescued:
    """Copy all rows that can be read of a damaged file into an empty ledger; what is derived is made of them."""
    new = book.connection
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        old.text_factory = lambda raw: raw.decode("utf-8", "replace")
        with suppress(sqlite3.Error, UnicodeDecodeError):
            old.execute("BEGIN")
            if is_older(old):
                migrate(old)
        new.execute("BEGIN IMMEDIATE")
        for table, key, where in _TABLES:
            _copy_rows(old, new, table, key, where)
        lost = 0
        for (file_id,) in new.execute("SELECT id FROM files UNION SELECT file_id FROM log_sessions").fetchall():
            where = f"WHERE file_id = {file_id} AND n >= 0"
            are_whole = _copy_rows(old, new, "responses", "n", where) & _copy_rows(old, new, "calls", "n", where)
            lost += not are_whole
    book.set_meta("prices", "")
    _drop_dangling(new)
    [(logs, records, calls)] = new.execute(_COUNTS)
    book.commit()
    book.reconcile_all()
    return Rescued(files=logs, records=records, calls=calls, lost=lost)


_TABLES = (
    ("meta", "name", "WHERE name = 'machine'"),  # what the damaged ledger has exported is this one's
    *((table, "id", "") for table in ("files", "labels", "names", "all_sessions")),
    ("log_sessions", "file_id", ""),
    ("limits", "rowid", ""),
)
_COUNTS = "SELECT (SELECT COUNT(*) FROM files), (SELECT COUNT(*) FROM responses), (SELECT COUNT(*) FROM calls)"


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection, table: str, key: str, where: str) -> bool:
    """Copy the rows before the damage, then those behind it from the last one on; return whether there was none."""
    names = [name for _, name, *_ in new.execute(f"PRAGMA table_info({table})")]
    columns = ", ".join(names)
    insert = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - names of the schema
    damage: list[Exception] = []
    for direction in ("ASC", "DESC"):
        for row in _readable(old, f"SELECT {columns} FROM {table} {where} ORDER BY {key} {direction}", damage):  # noqa: S608 - as above
            with suppress(sqlite3.IntegrityError, OverflowError):  # bytes that are a row by chance
                new.execute(insert, row)
        if not damage:
            return True
    return False


def _readable(old: sqlite3.Connection, sql: str, damage: list[Exception]) -> Iterator[Row]:
    """Yield rows up to the first error, which is appended to `damage`."""
    try:
        yield from old.execute(sql)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        damage.append(error)


def _copy(path: str, copy: str) -> None:
    """Copy a ledger's file and its write-ahead log, byte by byte."""
    for ending in ("", "-wal"):
        if files.stat_path(path + ending) is not None:
            files.make_private(copy + ending)
            files.copy_file(path + ending, copy + ending)


def _take_place(new: str, path: str) -> None:
    """Replace a ledger's file by a new one, and empty the old write-ahead log, which does not belong to it."""
    files.replace_file(f"{path}-wal", [])
    files.replace_files([(new, path)])


def _free_name(name: str) -> str:
    names = (f"{name}.{number}" if number else name for number in count())
    return next(free for free in names if not os.path.lexists(free))
