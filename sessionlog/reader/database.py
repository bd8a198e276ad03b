"""Opens another program's SQLite database for reading without creating files beside it.

SQLite itself would create files beside a database with a write-ahead log, even to read it. So how it is opened depends
on what is there: a log in use is read through its writer's shared memory; a log that was left without that memory is
read in a private copy; without a log SQLite creates nothing.
"""

from __future__ import annotations

import os
import sqlite3

from sessionlog import files
from sessionlog.errors import LogLocked, LogNotReadable

LARGEST_COPY = 4 << 30
"""Largest database in bytes that is copied because it cannot be read in place."""

WAIT_SECONDS = 2.0
"""How long to wait for a writer's lock."""

LOCKED = "locked by another program; close it, or try again when it has finished"
"""The message for a database whose lock was not released in time."""

_PLAIN = "cache=private"
"""SQLite's default: readers wait for writers. With `mode=ro`, neither a journal nor a log is replayed into the file."""

_WAL_VERSION = slice(18, 19)  # of the header: 2 for databases with a write-ahead log, 1 for those with a journal


def open_database(path: str, *, wait_seconds: float = WAIT_SECONDS) -> sqlite3.Connection:
    """Open a database read-only; invalid UTF-8 in text is replaced.

    Raises:
        LogLocked: Another program holds its lock.
        LogNotReadable: Missing, not a regular file, no database, or no permission.
    """
    with files.open_log(path) as file:  # refuses devices and other people's links, as for any log
        logged = file.read(20)[_WAL_VERSION] == b"\x02"
    real = files.real_path(path)  # the write-ahead log lies beside the file that a link leads to
    log, memory = (files.stat_path(f"{real}{suffix}") for suffix in ("-wal", "-shm"))
    try:
        if files.is_url(path):
            return _connect_copy(path, wait_seconds, mode="immutable=1" if logged and log is None else _PLAIN)
        if log is not None and (log.st_size or memory is not None):
            return _connect_logged(real, wait_seconds)
        return _connect(real, "immutable=1" if logged else _PLAIN, wait_seconds)
    except (sqlite3.Error, OSError) as error:
        if is_lock(error):
            raise LogLocked(f"{path}: {LOCKED}") from error
        raise LogNotReadable(f"{path}: {error}") from error


def is_lock(error: BaseException) -> bool:
    """Whether SQLite's error is that another program holds the database's lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_unwritten(error: BaseException) -> bool:
    """Whether SQLite's error is that a file could not be written, as on a full disk."""
    codes = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _connect_logged(path: str, wait_seconds: float) -> sqlite3.Connection:
    try:
        return _connect(path, "readonly_shm=1", wait_seconds)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:  # a lock, or damage
            raise
    return _connect_copy(path, wait_seconds)


def _connect(path: str, mode: str, wait_seconds: float) -> sqlite3.Connection:
    from urllib.parse import quote

    uri = f"file:{quote(os.fsencode(path))}?mode=ro&{mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=wait_seconds)
    try:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _connect_copy(path: str, wait_seconds: float, *, mode: str = _PLAIN) -> sqlite3.Connection:
    """Open a copy, in files that are already unlinked, of a remote database or of one left without shared memory."""
    status = files.stat_path(path)
    if status is not None and status.st_size > LARGEST_COPY:
        raise LogNotReadable(f"{path}: it takes a private copy, and {status.st_size} bytes are too many for one")
    folder = files.temporary_directory("sessionlog-database-")
    try:
        copy = os.path.join(folder, "copy")
        for suffix in ("", "-wal") if files.exists(f"{path}-wal") else ("",):
            files.copy_file(f"{path}{suffix}", f"{copy}{suffix}")
        return _connect(copy, mode, wait_seconds)
    finally:
        files.remove_directory(folder)
