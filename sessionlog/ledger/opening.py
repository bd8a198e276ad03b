"""Opening: open the ledger's file for reading if it can be trusted, and refuse it in one sentence otherwise.

It must belong to the user, no one else may write to it, and it must be a ledger of a known version. Otherwise
`LedgerUnusable` names the reason, and the file stays unchanged: it may hold rows of logs that are gone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.trust import file_flaw, foreign_code, has_tables, is_older, is_unreconciled, kind_flaw, read_only
from sessionlog.reader.database import is_lock

WAIT_SECONDS = 5.0
"""How long a writer waits for another one between two of its own transactions."""

_PAUSE = 0.005


def open_read_only(path: str) -> sqlite3.Connection:
    """Open the ledger at a path for queries only: nothing is created or written.

    Raises:
        LedgerUnusable: It cannot be opened, is not the user's alone, or is no ledger of this version; or there is none.
    """
    if files.stat_path(path) is None:
        raise LedgerUnusable(f"{path}: there is no ledger yet")
    refuse(file_flaw(path))
    try:
        connection = sqlite3.connect(read_only(path), uri=True, isolation_level=None, timeout=WAIT_SECONDS)
    except sqlite3.Error as error:
        raise LedgerUnusable(f"{path}: {error}") from error
    with checked(connection, path):
        if not check_kind(connection, path):
            raise LedgerUnusable(f"{path}: there is nothing in it yet")
        if is_older(connection):
            raise LedgerUnusable(f"{path}: an older sessionlog made it; `sessionlog ledger sync` brings it up to date")
        if is_unreconciled(connection):
            raise LedgerUnusable(f"{path}: logs are being read into it for the first time")
    return connection


@contextmanager
def checked(connection: sqlite3.Connection, path: str) -> Iterator[None]:
    """Close a connection if an error ends the block; SQLite's own errors become `LedgerUnusable`."""
    try:
        yield
    except BaseException as error:
        connection.close()
        if is_lock(error):
            raise LedgerUnusable(f"{path}: another process is writing to it; try again") from error
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):  # SQLite may quote a damaged name
            raise LedgerUnusable(f"{path}: {error}; `sessionlog ledger verify` shows more") from error
        raise


def refuse(flaw: str | None) -> None:
    """Raise `LedgerUnusable` for a flaw; None is none."""
    if flaw is not None:
        raise LedgerUnusable(flaw)


def check_kind(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file has tables; raise `LedgerUnusable` if they are not a ledger's, too new, or with foreign code."""
    with one_state(connection):
        refuse(kind_flaw(connection, path))
        code = foreign_code(connection)
        if code is not None:
            flaw = f"{path}: {code} is not ours; `sessionlog ledger rebuild` makes a ledger without it"
            raise LedgerUnusable(flaw) from sqlite3.DatabaseError(code)
        return has_tables(connection)


@contextmanager
def one_state(connection: sqlite3.Connection) -> Iterator[None]:
    """Read one state of a database inside the block: another process may be creating its tables."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def create_tables(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    """Create the tables of an empty database file, unless another process has just created them."""
    _use_write_ahead_log(connection)
    connection.execute("BEGIN IMMEDIATE")
    if not has_tables(connection):
        for statement in statements:
            connection.execute(statement)
    connection.execute("COMMIT")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Set the journal mode; SQLite itself does not wait for others who use the file, but fails at once."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_lock(error) or time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return
