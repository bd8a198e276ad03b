"""SQLiteStore: sessions in one SQLite file that any number of processes and threads share.

A save is one transaction that compares versions, so a lost update is an error. A counter orders the saves. There is one
connection, used by one thread at a time and closed by `close`. It is closed before a fork, because SQLite's locks are
not inherited.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self
from weakref import WeakSet

from sessionlog import files
from sessionlog.conversation.stores.json_text import check_key, from_json, to_json
from sessionlog.conversation.stores.protocol import Saved, Versions
from sessionlog.errors import InvalidHistory, LogNotReadable, SessionNotSaved
from sessionlog.events.times import format_time
from sessionlog.locks import RLock

APPLICATION = 0x5E551057
"""`PRAGMA application_id`, which identifies our files."""

VERSION = 1
"""The version of the tables, in `PRAGMA user_version`."""

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
    """Open the file at a path, for one thread at a time; create it and its folders if missing.

    Raises:
        InvalidHistory: It is another program's database, or from a newer version.
        SessionNotSaved: It cannot be created or opened, or is a link.
        sqlite3.Error: It is not a database, damaged, or locked for too long.
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
        with suppress(sqlite3.OperationalError):  # in use by others at the moment: the next opening sets it
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
    """Whether the tables exist; another program's file is refused before anything is changed."""
    connection.execute("BEGIN")  # one snapshot: another process may be creating the tables
    is_empty = connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is None
    [(application,)] = connection.execute("PRAGMA application_id").fetchall()
    [(version,)] = connection.execute("PRAGMA user_version").fetchall()
    connection.execute("COMMIT")
    if application != APPLICATION and not is_empty:
        raise InvalidHistory(f"{path}: another program's database; name another file, this one is left as it is")
    if version > VERSION:
        raise InvalidHistory(
            f"{path}: made by a newer sessionlog (version {version}; this one reads {VERSION}); it is left as it is"
        )
    return not is_empty


def _make_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, unless another process just did."""
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


WAIT_SECONDS = 10.0
"""How long a save waits for other savers; each save takes milliseconds."""

_SAVE = """INSERT INTO sessions VALUES (:id, :data, :version, :now, :now) ON CONFLICT (session_id)
    DO UPDATE SET data = :data, version = :version, updated_at = :now"""


class SQLiteStore:
    """Keeps sessions in a table `sessions(session_id, data, version, created_at, updated_at)`; `data` is JSON.

    Close it, or use it in a `with`.

    Args:
        path: The file; created 0600, its folders 0700.
        wait_seconds: How long to wait for another process's save.
        clock: Returns nanoseconds since 1970, for the two informative times in a row.

    Raises:
        InvalidHistory: The file is not a SQLite database, another program's, or from a newer version; it is left
            unchanged.
        SessionNotSaved: It cannot be created or opened, or is a link.
        ValueError: The path names no file; `MemoryStore` keeps sessions in memory.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = "agent_sessions.db",
        *,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._lock = RLock()
        self._closed = False
        name = os.fspath(path)
        if not name or name.startswith(":"):
            raise ValueError(f"{name!r} names no file; MemoryStore keeps sessions in memory")
        self._path = os.path.abspath(name)
        self._wait_seconds, self._clock = wait_seconds, clock
        self._versions = Versions()
        with self._open("not opened"):
            pass
        with _LISTING:
            _OPEN.add(self)

    @property
    def path(self) -> str:
        """The file, as an absolute path."""
        return self._path

    def save(self, session_id: str, data: Mapping[str, Any]) -> int:
        """Save a session; return its version.

        Raises:
            InvalidSessionId: The id is not a text, or empty.
            InvalidHistory: The data contains something that is not JSON.
            StaleSession: Another writer has saved the session meanwhile.
            SessionNotSaved: The data cannot be written; the stored session is unchanged.
        """
        text = to_json(check_key(session_id), data)
        with self._writing("not saved") as connection:
            row = connection.execute("SELECT version FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
            self._versions.check(session_id, data, row and row[0])
            [(version,)] = connection.execute("UPDATE counter SET last = last + 1 RETURNING last").fetchall()
            self._versions.start_save(session_id, data, version)
            now = format_time(self._clock())
            connection.execute(_SAVE, {"id": session_id, "data": text, "version": version, "now": now})
        return self._versions.finish_save(session_id, data, version)

    def load(self, session_id: str) -> Saved | None:
        """Return a session; None if there is none with this id.

        Raises:
            InvalidHistory: The stored data is damaged; it is left unchanged.
            LogNotReadable: The file cannot be read.
        """
        rows = self._query("SELECT data, version FROM sessions WHERE session_id = ?", check_key(session_id))
        if not rows:
            return None
        [(text, version)] = rows
        return self._versions.finish_load(session_id, from_json(text, f"{self._path}: session {session_id!r}"), version)

    def delete(self, session_id: str) -> bool:
        """Remove a session; return whether there was one."""
        with self._writing("not deleted") as connection:
            cursor = connection.execute("DELETE FROM sessions WHERE session_id = ?", (check_key(session_id),))
            self._versions.forget(session_id)
            return cursor.rowcount > 0

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions, the most recently saved first."""
        return [session_id for (session_id,) in self._query("SELECT session_id FROM sessions ORDER BY version DESC")]

    def exists(self, session_id: str) -> bool:
        """Whether there is a session with this id."""
        return bool(self._query("SELECT 1 FROM sessions WHERE session_id = ?", check_key(session_id)))

    def clear(self) -> None:
        """Remove all sessions."""
        with self._writing("not cleared") as connection:
            connection.execute("DELETE FROM sessions")
        self._versions = Versions()

    def vacuum(self) -> None:
        """Shrink the file, and remove the text of deleted sessions from it."""
        with self._open("not vacuumed") as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards. Closing twice is allowed."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:  # noqa: SIM105 - at exit even `suppress` may be None
            self._disconnect()
        except Exception:  # noqa: BLE001, S110 - at exit the system closes the file
            pass

    def _query(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with self._open("not read", LogNotReadable) as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """Run one transaction; roll it back on any exception."""
        with self._open(what) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _open(self, what: str, refusal: type[OSError] = SessionNotSaved) -> Iterator[sqlite3.Connection]:
        """Lock and yield the connection; a SQLite error becomes InvalidHistory or `refusal`, with the path."""
        with self._lock:
            if self._closed:
                raise ValueError(f"{self._path}: this store is closed")
            try:
                yield self._current_connection()
            except sqlite3.Error as error:
                is_damaged = type(error) is sqlite3.DatabaseError or "decode" in str(error)
                kind = InvalidHistory if is_damaged else refusal
                raise kind(f"{self._path}: {what}: {_reason(error)}; the stored data is unchanged") from error

    def _current_connection(self) -> sqlite3.Connection:
        """Return a connection to the current file at the path: saves to one that was deleted would be lost."""
        if self._connection is not None and self._identity == files.identity_of(self._path):
            return self._connection
        self._disconnect()
        self._connection = open_file(self._path, self._wait_seconds)
        self._identity = files.identity_of(self._path)
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _reason(error: sqlite3.Error) -> str:
    """SQLite's message; it would call a full disk an I/O error where it cannot extend its shared memory."""
    is_full = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHMSIZE
    return "no space left on device" if is_full else str(error)


_OPEN: WeakSet[SQLiteStore] = WeakSet()
_LISTING = RLock()
_FORKING: list[SQLiteStore] = []


def _before_fork() -> None:
    """Close all connections: SQLite in a child would otherwise believe that it holds its parent's locks."""
    _LISTING.acquire()
    _FORKING[:] = list(_OPEN)
    for store in _FORKING:
        store._lock.acquire()  # noqa: SLF001 - this module's own
        store._disconnect()  # noqa: SLF001 - as above


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop()._lock.release()  # noqa: SLF001 - this module's own
    _LISTING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
