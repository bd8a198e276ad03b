"""Ask: run a query on the right ledger, which is up to date or notes that it is not.

Without paths that is the ledger's file, brought up to date first. Paths are scanned into a ledger in memory, which
holds nothing else; where one of them is remote, into a file of their own, so that only new objects are fetched. If the
file cannot be used, all logs are scanned into memory instead: a broken ledger costs no report.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from sessionlog import files
from sessionlog.errors import LedgerUnusable, Problem, SessionLogError
from sessionlog.hashes import blake2b
from sessionlog.ledger.book import Book
from sessionlog.ledger.freshness import RecordingEnv, Snapshot, changed_logs
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.schema import ELSEWHERE, GONE
from sessionlog.ledger.store import open_ledger
from sessionlog.ledger.sync import LedgerBusy, Progress, Scanner, Synced, scan_here, sync, without_waiting
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.ledger.freshness import ChangedLog

_T = TypeVar("_T")

_FEW = 1000
"""Changed logs up to which the others are not listed."""

BUSY = "another sessionlog is reading new logs into the ledger: these are the numbers without them"


class Where(Struct, frozen=True, kw_only=True):
    """Which logs a query is about, and where their records are.

    Attributes:
        paths: Files and folders; None for all places where logs may be. Remote ones have to be open (`files.remote`).
        ledger: The ledger's file; None for a ledger in memory. Paths of this machine are read into memory anyway, and
            remote ones have a ledger of their own beside this one.
        env: The environment, which gives the folders of agents; the process's when None.
        live: Leave out logs that were deleted.
        scanner: The function that scans jobs.
        progress: Called after every log.
    """

    paths: Sequence[str] | None = None
    ledger: str | None = None
    env: Mapping[str, str] | None = None
    live: bool = False
    scanner: Scanner = scan_here
    progress: Progress | None = None


def ask(where: Where, prices: PriceBook, question: Callable[[Book], _T]) -> _T:
    """Return what `question` returns for the ledger of `where`; the ledger's `notes` name what went wrong."""
    note = ""
    ledger = where.ledger
    if ledger is not None and where.paths is not None:
        ledger = ledger_of_paths(ledger, where.paths) if any(map(files.is_url, where.paths)) else None
    if ledger is not None:
        try:
            return _ask_ledger(where, ledger, prices, question)
        except LedgerUnusable as error:
            note = f"the ledger is not used: {error}"
        except sqlite3.DatabaseError as error:
            note = f"the ledger is damaged: {ledger}: {error}; `sessionlog ledger verify` shows more"
        except SessionLogError:
            raise
        except Exception as error:  # noqa: BLE001 - a damaged row can raise anything; a bug of ours raises again below
            kind = type(error).__name__
            note = f"the ledger is not used: {ledger}: {kind}: {error}; `sessionlog ledger verify` shows more"
    book = load_book(where.paths, prices, env=where.env, scanner=where.scanner, progress=where.progress)
    book.notes += [note] if note else []
    try:
        return question(book)
    finally:
        book.close()


def load_book(
    paths: Iterable[str] | None,
    prices: PriceBook,
    *,
    env: Mapping[str, str] | None = None,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
) -> Book:
    """Scan the logs under `paths`, or of every agent on this machine, into a ledger in memory.

    Args:
        paths: Files and folders; None for all places where logs may be.
        prices: Responses without a recorded cost are estimated at these.
        env: The environment, which gives the folders of agents; the process's when None.
        scanner: The function that scans jobs.
        progress: Called after every log.
    """
    from sessionlog.sources.discover import discover, find_logs
    from sessionlog.sources.registry import all_sources

    book = Book(prices)
    env = os.environ if env is None else env
    found = discover(env, all_sources()) if paths is None else find_logs(paths, env)
    sync(book, found, scanner=scanner, progress=progress)
    return book


def _ask_ledger(where: Where, path: str, prices: PriceBook, question: Callable[[Book], _T]) -> _T:
    usual = prices.instead_of or prices
    book = open_ledger(path, usual)
    try:
        refresh(book, where.env, paths=where.paths, scanner=where.scanner, progress=where.progress)
        others = book.missing(GONE, ELSEWHERE) if where.live else []
        if others or prices is not usual:
            kept, book = book, book.copy()
            kept.close()
            book.reprice(prices)
            book.forget(others)
        with book.reading():
            return question(book)
    finally:
        book.close()


def refresh(
    book: Book,
    env: Mapping[str, str] | None = None,
    *,
    paths: Sequence[str] | None = None,
    scanner: Scanner = scan_here,
    progress: Progress | None = None,
    trusting: bool = True,
) -> Synced | None:
    """Bring a ledger up to date with all logs of this machine, or under paths; return None if nothing was done.

    While another process writes to the ledger, only a note is added. With `trusting` logs are listed only if a folder
    or variable has changed since the last sync (see `freshness`).

    Raises:
        LedgerUnusable: Another process is reading logs into it for the first time: it has no numbers yet.
    """
    env = os.environ if env is None else env
    changed = None
    if trusting and paths is None and book.meta("prices") == book.prices.fingerprint:
        changed = changed_logs(book.connection, env, most=_FEW)
    if changed == []:
        return None
    try:
        if changed is not None:
            return _read_again(book, changed, scanner, progress)
        if paths is not None:
            return _read_paths(book, paths, env, scanner, progress)
        return _read_all(book, env, scanner, progress)
    except LedgerBusy:
        pass
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
    if book.meta("synced") is None:
        raise LedgerUnusable("another sessionlog is reading the logs into the ledger for the first time; try again")
    book.notes.append(BUSY)
    return None


def read_changed(path: str, changed: Sequence[ChangedLog]) -> sqlite3.Connection | None:
    """Read logs that have changed into the ledger at a path, priced by the shipped list; return it open for reading.

    None if another process is writing, or the ledger has other prices.
    """
    book = open_ledger(path, PriceBook.load())
    try:
        if book.meta("prices") == book.prices.fingerprint:
            _read_again(book, changed, scan_here, None)
            book.connection.execute("BEGIN")
            return book.detach()
    except (LedgerBusy, sqlite3.OperationalError):
        pass
    except BaseException:
        book.close()
        raise
    book.close()
    return None


def _read_again(book: Book, changed: Sequence[ChangedLog], scanner: Scanner, progress: Progress | None) -> Synced:
    """Read the logs that have changed, where no log can be new: nothing is listed, and only their sources imported."""
    listed = [Log(source=source_of(source), path=path_of(path)) for path, source in changed]
    return sync(book, listed, scanner=scanner, progress=progress, places=None)


def _read_all(book: Book, env: Mapping[str, str], scanner: Scanner, progress: Progress | None) -> Synced:
    """List all logs of this machine, read those that have changed, and store a snapshot of folders and variables."""
    from sessionlog.sources.discover import discover
    from sessionlog.sources.registry import all_sources

    connection = book.connection
    watched, sources = RecordingEnv(env), all_sources()
    snapshot = Snapshot(watched, sources)
    with without_waiting(connection):
        book.reprice(book.prices)  # first: even if this is interrupted, a ledger has one price list
    listed: list[Log | Problem] = []
    places = [place for source in sources for place in source.locate(watched)]
    found = _kept(discover(watched, sources), listed)
    synced = sync(book, found, scanner=scanner, progress=progress, places=places)
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


def ledger_of_paths(ledger: str, paths: Sequence[str]) -> str:
    """Return the file, beside the usual ledger, with the records of the logs under remote paths."""
    names = sorted(files.absolute_path(path) for path in paths)
    name = blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return os.path.join(os.path.dirname(os.path.abspath(ledger)), "remote", f"{name}.sqlite")


def _read_paths(
    book: Book, paths: Sequence[str], env: Mapping[str, str], scanner: Scanner, progress: Progress | None
) -> Synced:
    """Read the logs under paths that have changed; files without a known agent are remembered, too."""
    from sessionlog.ledger.recall import Recalled
    from sessionlog.sources.discover import find_logs

    with without_waiting(book.connection):
        book.reprice(book.prices)
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
