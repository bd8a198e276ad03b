"""Store: open the ledger's file for writing if it can be trusted; make a missing one, and migrate an older one."""

from __future__ import annotations

import os
import sqlite3

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.book import TABLES, Book
from sessionlog.ledger.opening import WAIT_SECONDS, check_kind, checked, create_tables, refuse
from sessionlog.ledger.tables import migrate
from sessionlog.ledger.trust import file_flaw, is_older, owner_flaw
from sessionlog.pricing.book import PriceBook

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
        if not check_kind(connection, path):
            create_tables(connection, TABLES)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        book = Book(prices, connection)
        if is_older(connection):
            _bring_up_to_date(book)
    return book


def is_damaged(error: LedgerUnusable) -> bool:
    """Whether a ledger could not be opened because of its content, not because of its owner or a lock."""
    return type(error.__cause__) in {sqlite3.DatabaseError, UnicodeDecodeError}


def _connect(path: str, *, shared: bool) -> sqlite3.Connection:
    files.make_directories(os.path.dirname(os.path.abspath(path)))
    files.make_private(path)
    refuse(file_flaw(path))
    refuse(owner_flaw(os.path.dirname(os.path.abspath(path))))
    return sqlite3.connect(path, isolation_level=None, timeout=WAIT_SECONDS, check_same_thread=not shared)


def _bring_up_to_date(book: Book) -> None:
    """Migrate the tables, and recompute derived values, in one transaction: no one sees half of it."""
    book.connection.execute("BEGIN IMMEDIATE")
    if is_older(book.connection):  # no other process has just done it
        migrate(book.connection)
        book.reconcile_all()  # commits
    else:
        book.commit()
