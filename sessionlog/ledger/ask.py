"""Ask: run a query on the right ledger, which is up to date or notes that it is not.

Without paths that is the ledger's file, brought up to date first. Paths are scanned into a ledger in memory, which
holds nothing else; where one of them is remote, into a file of their own, so that only new objects are fetched. If the
file cannot be used, all logs are scanned into memory instead: a broken ledger costs no report.
"""

from __future__ import annotations

import os
import sqlite3
from typing import NamedTuple

from sessionlog import files
from sessionlog.errors import LedgerUnusable, SessionLogError
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import next_step, open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import ELSEWHERE, GONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from sessionlog.ledger.sync import Progress, Scanner
    from sessionlog.pricing.book import PriceBook

    _T = TypeVar("_T")


class Where(NamedTuple):
    """Which logs a query is about, and where their records are.

    Attributes:
        paths: Files and folders; None for all places where logs may be. Remote ones have to be open (`files.remote`).
        ledger: The ledger's file; None for a ledger in memory. Paths of this machine are read into memory anyway, and
            remote ones have a ledger of their own beside this one.
        env: The environment, which gives the folders of agents; the process's when None.
        prices: The prices of estimates; the list prices when None.
        live: Leave out logs that were deleted.
        scanner: The function that scans jobs; one log after the other when None.
        progress: Called after every log.
    """

    paths: Sequence[str] | None = None
    ledger: str | None = None
    env: Mapping[str, str] | None = None
    prices: PriceBook | None = None
    live: bool = False
    scanner: Scanner | None = None
    progress: Progress | None = None


def ask(where: Where, question: Callable[[Book], _T]) -> _T:
    """Return what `question` returns for the ledger of `where`; the ledger's `notes` name what went wrong."""
    note = ""
    ledger = where.ledger
    if ledger is not None and where.paths is not None:
        ledger = _ledger_of_paths(ledger, where.paths) if any(map(files.is_url, where.paths)) else None
    if ledger is not None:
        try:
            return _ask_ledger(where, ledger, question)
        except SessionLogError as error:
            if not isinstance(error, LedgerUnusable):
                raise
            note = not_used(ledger, error)
        except Exception as error:  # noqa: BLE001 - a damaged row can raise anything; a bug of ours raises again below
            note = not_used(ledger, error)
    with load_book(where.paths, where.prices, env=where.env, scanner=where.scanner, progress=where.progress) as book:
        book.notes += [note] if note else []
        return question(book)


def not_used(path: str, error: Exception) -> str:
    """Return the note on a ledger that cannot be used."""
    if isinstance(error, LedgerUnusable):
        return f"the ledger is not used: {error}"
    if type(error) is sqlite3.DatabaseError:
        return f"the ledger is damaged: {path}: {error}; {next_step(error)}"
    name = "" if isinstance(error, sqlite3.Error) else f"{type(error).__name__}: "
    return f"the ledger is not used: {path}: {name}{error}; {next_step(error)}"


def _ledger_of_paths(ledger: str, paths: Sequence[str]) -> str:
    """Return the file, beside the usual ledger, with the records of the logs under remote paths."""
    from sessionlog.hashes import blake2b

    names = sorted(files.absolute_path(path) for path in paths)
    name = blake2b("\0".join(names).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return os.path.join(os.path.dirname(os.path.abspath(ledger)), "remote", f"{name}.sqlite")


def _ask_ledger(where: Where, path: str, question: Callable[[Book], _T]) -> _T:
    usual = None if where.prices is None else where.prices.instead_of or where.prices
    book = open_ledger(path, usual)
    try:
        refresh(book, where.env, paths=where.paths, scanner=where.scanner, progress=where.progress)
        others = book.missing(GONE, ELSEWHERE) if where.live else []
        if others or where.prices is not usual:
            kept, book = book, book.copy()
            kept.close()
            book.reprice(where.prices or book.prices)
            book.forget(others)
        with book.reading():
            return question(book)
    finally:
        book.close()


def load_book(
    paths: Iterable[str] | None,
    prices: PriceBook | None = None,
    *,
    env: Mapping[str, str] | None = None,
    scanner: Scanner | None = None,
    progress: Progress | None = None,
) -> Book:
    """Scan the logs under `paths`, or of every agent on this machine, into a ledger in memory.

    Args:
        paths: Files and folders; None for all places where logs may be.
        prices: Responses without a recorded cost are estimated at these; the list prices when None.
        env: The environment, which gives the folders of agents; the process's when None.
        scanner: The function that scans jobs; one log after the other when None.
        progress: Called after every log.
    """
    from sessionlog.ledger.sync import scan_here, sync
    from sessionlog.sources import registry
    from sessionlog.sources.discover import discover, find_logs

    book = Book(prices)
    env = os.environ if env is None else env
    found = discover(env, registry.sources_there(env)) if paths is None else find_logs(paths, env)
    sync(book, found, scanner=scanner or scan_here, progress=progress)
    return book
