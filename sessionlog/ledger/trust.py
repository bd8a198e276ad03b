"""Trust: whether a ledger's file can be used, checked before anything in it is read.

It must belong to the user, no one else may write to it, and it must be a ledger of a known version. Each check returns
one sentence. It imports little, because every report needs it.
"""

from __future__ import annotations

import os
import stat

from sessionlog.ledger.schema import APPLICATION, VERSION, VIEWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database; it would write through a link there."""

_VIEWS = {sql.split(" ", 3)[2]: sql for sql in VIEWS}
_OLD_VIEWS = dict.fromkeys(_VIEWS, "")  # of older versions: they are dropped before any query uses them


def file_flaw(path: str) -> str | None:
    """Return why a file cannot be a ledger; None for a regular file of the user's, if those beside it are such, too.

    Raises:
        OSError: It does not exist.
    """
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a link; name the file itself"
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is not a regular file"
    for suffix in _BESIDE:
        try:
            beside = os.lstat(path + suffix)
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(beside.st_mode) or beside.st_uid != status.st_uid:
            return f"{path}{suffix} is not a regular file of yours; remove it"
    return owner_flaw(path)


def owner_flaw(path: str) -> str | None:
    """Return why a file or folder is not the user's alone; None if it is.

    Raises:
        OSError: It does not exist.
    """
    status = os.lstat(path)
    user = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
    if status.st_uid != user:
        return f"{path} belongs to another user"
    if os.name == "posix" and status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        return f"others may write to {path}; `chmod go-w` makes it yours alone"
    return None


def kind_flaw(connection: sqlite3.Connection, path: str) -> str | None:
    """Return why an open database cannot be used as a ledger; None if it can, or has no tables."""
    [(application,)] = connection.execute("PRAGMA application_id")
    version = version_of(connection)
    if application != APPLICATION and has_tables(connection):
        return f"{path} is another program's database"
    if version > VERSION:
        return f"{path} was made by a newer sessionlog (version {version}, known is {VERSION})"
    return None


def foreign_code(connection: sqlite3.Connection) -> str | None:
    """Return the first trigger or view that is not sessionlog's and could run with its statements; None for none."""
    views = _OLD_VIEWS if is_older(connection) else _VIEWS
    found = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')")
    for kind, name, sql in found:
        known = views.get(name)
        if kind == "trigger" or known is None or (known and sql != known):
            return f"the {kind} {name}"
    return None


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether a database has any tables."""
    return connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone() is not None


def is_older(connection: sqlite3.Connection) -> bool:
    """Whether a ledger is of an older version, and has to be migrated before it can be used."""
    return version_of(connection) < VERSION


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a database's schema; 0 for none."""
    [(version,)] = connection.execute("PRAGMA user_version")
    return int(version)


def read_only(path: str) -> str:
    """Return the URI by which SQLite opens an existing file read-only; every byte of the path is escaped."""
    return f"file:{''.join(f'%{byte:02x}' for byte in os.fsencode(os.path.abspath(path)))}?mode=ro"


def is_unreconciled(connection: sqlite3.Connection) -> bool:
    """Whether the first sync was interrupted: its rows are in, and it is not decided which copies count."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'unreconciled'").fetchone() is not None
