"""Opening: the one way to open the ledger's file, if it can be trusted; otherwise it is refused in one sentence.

It must belong to the user, no one else may write to it, and it must be a ledger of a known version. Otherwise
`LedgerUnusable` names the reason, and the file stays unchanged: it may hold rows of logs that are gone. A missing file
is made, and one of an older version is migrated, unless it is opened for reading only.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.book import CACHE_KB, Book
from sessionlog.ledger.trust import (
    file_flaw,
    foreign_code,
    has_tables,
    is_older,
    is_unreconciled,
    kind_flaw,
    owner_flaw,
    read_only,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessionlog.pricing.book import PriceBook

WAIT_SECONDS = 5.0
"""How long a writer waits for another one between two of its own transactions."""

_PAUSE = 0.005


def open_ledger(path: str, prices: PriceBook | None = None, *, write: bool = True, shared: bool = False) -> Book:
    """Open the ledger at a path.

    Args:
        path: The file. A missing one is created, with its folders.
        prices: The prices of estimates; the list prices when None.
        write: False opens an existing ledger of this version for queries only.
        shared: Several threads may use it; the caller has to make sure that they take turns.

    Raises:
        LedgerUnusable: It cannot be opened, is not the user's alone, or is not a ledger of a known version; or, for
            queries only, there is none with numbers.
    """
    try:
        connection = _connect(path, write=write, shared=shared)
    except LedgerUnusable:
        raise
    except (OSError, sqlite3.Error) as error:
        raise LedgerUnusable(f"{path}: {files.reason_of(error)}") from error
    with checked(connection, path):
        is_made = check_kind(connection, path)
        if not write:
            _refuse_unfinished(connection, path, is_made=is_made)
            return Book(prices, connection)
        if not is_made:
            from sessionlog.ledger.tables import tables

            create_tables(connection, tables())
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        book = Book(prices, connection)
        if is_older(connection):
            _bring_up_to_date(book)
    return book


def _connect(path: str, *, write: bool, shared: bool) -> sqlite3.Connection:
    if write:
        files.make_directories(os.path.dirname(os.path.abspath(path)))
        files.make_private(path)
    elif files.stat_path(path) is None:
        raise LedgerUnusable(f"{path}: there is no ledger yet")
    refuse(file_flaw(path))
    refuse(owner_flaw(os.path.dirname(os.path.abspath(path))))
    name = path if write else read_only(path)
    return sqlite3.connect(
        name, uri=not write, isolation_level=None, timeout=WAIT_SECONDS, check_same_thread=not shared
    )


def _refuse_unfinished(connection: sqlite3.Connection, path: str, *, is_made: bool) -> None:
    if not is_made:
        raise LedgerUnusable(f"{path}: there is nothing in it yet")
    if is_older(connection):
        raise LedgerUnusable(f"{path}: an older sessionlog made it; `sessionlog ledger sync` brings it up to date")
    if is_unreconciled(connection):
        raise LedgerUnusable(f"{path}: logs are being read into it for the first time")


def _bring_up_to_date(book: Book) -> None:
    """Migrate the tables, and recompute derived values, in one transaction: no one sees half of it."""
    from sessionlog.ledger.tables import migrate

    book.connection.execute("BEGIN IMMEDIATE")
    if is_older(book.connection):  # no other process has just done it
        migrate(book.connection)
        book.reconcile_all()  # commits
    else:
        book.commit()


def is_damaged(error: LedgerUnusable) -> bool:
    """Whether a ledger could not be opened because of its content, not because of its owner or a lock."""
    return type(error.__cause__) in {sqlite3.DatabaseError, UnicodeDecodeError}


def next_step(error: Exception) -> str:
    """What to do about an error of the ledger's file."""
    from sessionlog.reader.database import is_unwritten

    if is_unwritten(error):
        return "make sure that its disk has room and can be written to"
    return "`sessionlog ledger verify` shows more"


@contextmanager
def checked(connection: sqlite3.Connection, path: str) -> Iterator[None]:
    """Close a connection if an error ends the block; SQLite's own errors become `LedgerUnusable`."""
    try:
        yield
    except BaseException as error:
        from sessionlog.reader.database import is_lock

        connection.close()
        if is_lock(error):
            raise LedgerUnusable(f"{path}: another process is writing to it; try again") from error
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):  # SQLite may quote a damaged name
            raise LedgerUnusable(f"{path}: {error}; {next_step(error)}") from error
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
    from sessionlog.reader.database import is_lock

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
