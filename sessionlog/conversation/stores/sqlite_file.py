"""The file of an SQLiteStore: opened only if it is ours, made if there is none; another program's is left as it is."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import suppress

from sessionlog import files
from sessionlog.errors import InvalidHistory, SessionNotSaved

APPLICATION = 0x5E551057
"""What the file says it is, where every SQLite file says it (`PRAGMA application_id`)."""

VERSION = 1
"""The version of the tables (`PRAGMA user_version`)."""

_TABLES = (
    """CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY,
        data TEXT NOT NULL,
        version INTEGER NOT NULL UNIQUE,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL
    )""",
    "CREATE TABLE counter (last INTEGER NOT NULL)",
    "INSERT INTO counter VALUES (0)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


def open_file(path: str, wait_seconds: float) -> sqlite3.Connection:
    """Open the file at a path, for one thread at a time; a missing one is made, with its folders.

    Raises:
        InvalidHistory: It is another program's database, or a newer version's.
        SessionNotSaved: It can be neither made nor opened, or is a link.
        sqlite3.Error: It is no database, damaged, or locked for too long.
    """
    try:
        for folder in files.make_directories(os.path.dirname(path)):
            files.sync_directory(folder)
        files.make_private(path)
        _check_file(path)
    except OSError as error:
        raise SessionNotSaved(f"{path}: not opened: {files.reason_of(error)}") from error
    connection = sqlite3.connect(path, isolation_level=None, timeout=wait_seconds, check_same_thread=False)
    try:
        if not _is_made(connection, path):
            _make_tables(connection)
        with suppress(sqlite3.OperationalError):  # others are in it at this moment: the next opening will do
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_file(path: str) -> None:
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"it is {'a link; name the file itself' if stat.S_ISLNK(status.st_mode) else 'no regular file'}")
    files.check_owner(status, "it")


def _is_made(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the tables are there; what is none of ours is refused before anything is changed."""
    connection.execute("BEGIN")  # one look: another process may be making the tables
    is_empty = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    connection.execute("COMMIT")
    if application != APPLICATION and not is_empty:
        raise InvalidHistory(f"{path}: another program's database; name another file, this one is left as it is")
    if version > VERSION:
        raise InvalidHistory(
            f"{path}: made by a newer sessionlog (version {version}, known is {VERSION}); it is left as it is"
        )
    return not is_empty


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process did so a moment ago."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None:
            for statement in _TABLES:
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
