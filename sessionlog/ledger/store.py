"""Store: the ledger's file, opened only if it can be trusted.

It belongs to us and only we may write to it; it is a ledger, of a version that we know. Whatever is wrong with it
is one sentence (`LedgerUnusable`), the work goes on in memory, and the file is left as it is: it may hold what no log
has any more.
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
    """Open the ledger at a path; a missing one is made, with its folders.

    A `shared` one may be used by several threads, one at a time: who shares it sees to that.

    Raises:
        LedgerUnusable: It cannot be opened, is not ours, or is no ledger of a version that we know.
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
        _derive_anew(book)
    return book


def is_damaged(error: LedgerUnusable) -> bool:
    """Whether a ledger could not be opened for what is in it, not for whose it is or who holds it."""
    return type(error.__cause__) in {sqlite3.DatabaseError, UnicodeDecodeError}


def open_to_ask(path: str) -> sqlite3.Connection:
    """Open the ledger at a path for questions alone: nothing is made, and nothing can be written.

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
            raise LedgerUnusable(f"{path}: {error}; `sessionlog ledger verify` says more") from error
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
    """Whether there are tables; they are a ledger's, of a version that we know, and nothing else runs with them."""
    _refuse(kind_flaw(connection, path))
    code = foreign_code(connection)
    if code is not None:
        flaw = f"{path}: {code} is not ours; `sessionlog ledger rebuild` makes a ledger without it"
        raise LedgerUnusable(flaw) from sqlite3.DatabaseError(code)
    return has_tables(connection)


def _derive_anew(book: Book) -> None:
    """Complete a ledger that was migrated."""
    book.reconcile_all()
    book.connection.execute("BEGIN IMMEDIATE")
    write_checksums(book.connection)
    book.commit()


def _prepare(connection: sqlite3.Connection, path: str) -> bool:
    """Check what the file is; make the tables of an empty one; return whether it was of an older version."""
    if not _check_kind(connection, path):
        connection.execute("PRAGMA journal_mode = WAL")
        _make(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    return migrate(connection)


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process does it at this moment."""
    connection.execute("BEGIN IMMEDIATE")
    [(tables,)] = connection.execute("SELECT COUNT(*) FROM sqlite_schema")
    connection.execute("COMMIT")
    if not tables:
        make_tables(connection)
