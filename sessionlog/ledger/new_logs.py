"""New logs: read what is new in the logs into a ledger (see `refreshing`).

Where logs have only grown, these are read, and only their sources are imported. Otherwise the logs of all agents that
have a folder here are listed, and the places and folders are stored for the next time (see `freshness`).
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from sessionlog.errors import LedgerUnusable, Problem
from sessionlog.ledger.freshness import Snapshot
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.problems import BUSY
from sessionlog.ledger.sync import LedgerBusy, Progress, Scanner, Synced, scan_here, sync, without_waiting
from sessionlog.sources import registry
from sessionlog.sources.protocol import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.freshness import ChangedLog


def read_new_logs(
    book: Book,
    env: Mapping[str, str],
    changed: Sequence[ChangedLog] | None,
    *,
    paths: Sequence[str] | None,
    only: Sequence[Log] | None,
    scanner: Scanner | None,
    progress: Progress | None,
) -> Synced | None:
    """Read logs into a ledger; arguments and errors as for `refresh`.

    Args:
        book: The ledger.
        env: The environment.
        changed: The logs that have changed; None if all have to be listed.
        paths: The files and folders to list.
        only: The only logs to read, in place of a list of all.
        scanner: The function that scans jobs.
        progress: Called after every log.
    """
    scan = scanner or scan_here
    try:
        if changed is not None:
            only = [Log(source=registry.source_of(source), path=path_of(path)) for path, source in changed]
        elif paths is not None:
            return _read_paths(book, paths, env, scan, progress)
        if only is None:
            return _read_all(book, env, scan, progress)
        _reprice(book)
        return sync(book, only, scanner=scan, progress=progress, places=None)
    except LedgerBusy:
        pass
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
    if only is None and book.meta("synced") is None:
        raise LedgerUnusable("another sessionlog is reading the logs into the ledger for the first time; try again")
    book.notes.append(BUSY)
    return None


def _reprice(book: Book) -> None:
    """Bring estimates to the present prices first: even if reading is interrupted, a ledger has one price list."""
    with without_waiting(book.connection):
        book.reprice(book.prices)


def _read_all(book: Book, env: Mapping[str, str], scanner: Scanner, progress: Progress | None) -> Synced:
    """List the logs of this machine, read those that have changed, and store a snapshot of places and folders."""
    from sessionlog.sources.discover import discover

    connection = book.connection
    snapshot = Snapshot(env)
    _reprice(book)
    listed: list[Log | Problem] = []
    found = _kept(discover(env, snapshot.sources), listed)
    synced = sync(book, found, scanner=scanner, progress=progress, places=snapshot.places)
    with suppress(LedgerBusy), without_waiting(connection):  # all logs are in; the snapshot can be stored another time
        connection.execute("BEGIN IMMEDIATE")
        try:
            if synced.failed:
                connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
            else:
                snapshot.write(connection, listed)
            book.set_meta("synced", str(time.time_ns()))
            book.commit()
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return synced


def _read_paths(
    book: Book, paths: Sequence[str], env: Mapping[str, str], scanner: Scanner, progress: Progress | None
) -> Synced:
    """Read the logs under paths that have changed; files without a known agent are remembered, too."""
    from sessionlog.ledger.recall import Recalled
    from sessionlog.sources.discover import find_logs

    _reprice(book)
    recalled = Recalled(book)
    found = recalled.noted(find_logs(paths, env, recall=recalled.source_of))
    synced = sync(book, found, scanner=scanner, progress=progress, places=paths)
    with suppress(LedgerBusy), without_waiting(book.connection):
        recalled.write(paths)
    return synced


def _kept(found: Iterable[Log | Problem], kept: list[Log | Problem]) -> Iterator[Log | Problem]:
    """Yield what is found, and append it to `kept`."""
    for item in found:
        kept.append(item)
        yield item
