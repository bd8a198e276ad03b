"""Store: open the ledger's file if it can be trusted.

It must belong to the user, no one else may write to it, and it must be a ledger of a known version. Otherwise
`LedgerUnusable` names the reason in one sentence, and the file stays unchanged: it may hold rows of logs that are gone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.book import Book, make_tables
from sessionlog.ledger.checksums import write_checksums
from sessionlog.ledger.migrate import migrate
from sessionlog.ledger.trust import file_flaw, foreign_code, has_tables, is_older, kind_flaw, owner_flaw, read_only
from sessionlog.ledger.writer import is_unreconciled
from sessionlog.pricing.book import PriceBook

WAIT_SECONDS = 5.0
"""How long a writer waits for another one between two of its own transactions."""

_CACHE_KB = 16_384


def open_ledger(path: str, prices: PriceBook, *, shared: bool = False) -> Book:
    """Open the ledger at a path; a missing one is created, with its folders.

    A `shared` one may be used by several threads; the caller has to make sure that they take turns.

    Raises:
        LedgerUnusable: It cannot be opened, is not the user's alone, or is not a ledger of a known version.
    """
    try:
        connection = _connect(path, shared=shared)
    except LedgerUnusable:
        raise
    except (OSError, sqlite3.Error) as error:
        raise LedgerUnusable(f"{path}: {files.reason_of(error)}") from error
    with checked(connection, path):
        was_older = _prepare(connection, path)
    book = Book(prices, connection)
    if was_older:
        _complete_migration(book)
    return book


def is_damaged(error: LedgerUnusable) -> bool:
    """Whether a ledger could not be opened because of its content, not because of its owner or a lock."""
    return type(error.__cause__) in {sqlite3.DatabaseError, UnicodeDecodeError}


def open_read_only(path: str) -> sqlite3.Connection:
    """Open the ledger at a path for queries only: nothing is created or written.

    Raises:
        LedgerUnusable: As for `open_ledger`, or there is none.
    """
    if files.stat_path(path) is None:
        raise LedgerUnusable(f"{path}: there is no ledger yet")
    _refuse(file_flaw(path))
    try:
        connection = sqlite3.connect(read_only(path), uri=True, isolation_level=None, timeout=WAIT_SECONDS)
    except sqlite3.Error as error:
        raise LedgerUnusable(f"{path}: {error}") from error
    with checked(connection, path):
        if not _check_kind(connection, path):
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
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):  # SQLite may quote a damaged name
            raise LedgerUnusable(f"{path}: {error}; `sessionlog ledger verify` shows more") from error
        raise


def _connect(path: str, *, shared: bool) -> sqlite3.Connection:
    files.make_directories(os.path.dirname(os.path.abspath(path)))
    files.make_private(path)
    _refuse(file_flaw(path))
    _refuse(owner_flaw(os.path.dirname(os.path.abspath(path))))
    return sqlite3.connect(path, isolation_level=None, timeout=WAIT_SECONDS, check_same_thread=not shared)


def _refuse(flaw: str | None) -> None:
    if flaw is not None:
        raise LedgerUnusable(flaw)


def _check_kind(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file has tables; raise `LedgerUnusable` if they are not a ledger's, too new, or with foreign code."""
    _refuse(kind_flaw(connection, path))
    code = foreign_code(connection)
    if code is not None:
        flaw = f"{path}: {code} is not ours; `sessionlog ledger rebuild` makes a ledger without it"
        raise LedgerUnusable(flaw) from sqlite3.DatabaseError(code)
    return has_tables(connection)


def _complete_migration(book: Book) -> None:
    """Recompute the derived values and checksums of a migrated ledger."""
    book.reconcile_all()
    book.connection.execute("BEGIN IMMEDIATE")
    write_checksums(book.connection)
    book.commit()


def _prepare(connection: sqlite3.Connection, path: str) -> bool:
    """Check the kind of the file; create the tables of an empty one; return whether it was of an older version."""
    if not _check_kind(connection, path):
        connection.execute("PRAGMA journal_mode = WAL")
        _make(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    return migrate(connection)


def _make(connection: sqlite3.Connection) -> None:
    """Create the tables, unless another process has just done so."""
    connection.execute("BEGIN IMMEDIATE")
    [(tables,)] = connection.execute("SELECT COUNT(*) FROM sqlite_schema")
    connection.execute("COMMIT")
    if not tables:
        make_tables(connection)
