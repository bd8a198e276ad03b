"""Refreshing: bring a book up to date with the logs. While nothing has changed, that is one stat per log.

What lists, scans and prices logs (`new_logs`) is imported when there is something to read.
"""

from __future__ import annotations

import os
import time

from sessionlog.ledger.problems import BUSY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from sessionlog.ledger.book import Book
    from sessionlog.ledger.freshness import ChangedLog
    from sessionlog.ledger.sync import Progress, Scanner, Synced
    from sessionlog.sources.protocol import Log

    Freshness = Literal["up to date", "this session first"]

_FEW = 1000
"""Changed logs up to which the others are not listed."""

_PAUSE = 0.005


def refresh(
    book: Book,
    env: Mapping[str, str] | None = None,
    freshness: Freshness = "up to date",
    *,
    paths: Sequence[str] | None = None,
    session_logs: Callable[[], Sequence[Log]] = tuple,
    scanner: Scanner | None = None,
    progress: Progress | None = None,
    wait: float = 0.0,
    list_all: bool = False,
) -> Synced | None:
    """Read what is new in the logs of this machine, or under paths, into a book; return None if nothing was done.

    While another process writes to the ledger, only a note is added. Notes and problems of earlier calls are gone.

    Args:
        book: The book.
        env: The environment, which gives the folders of agents; the process's when None.
        freshness: `this session first` reads only `session_logs` where logs may be new and all would have to be listed.
        paths: Files and folders; None for all places where logs may be.
        session_logs: Returns the logs of a session that cannot wait for all others.
        scanner: The function that scans jobs; one log after the other when None.
        progress: Called after every log.
        wait: The seconds to wait for another process that is writing.
        list_all: List all logs, also if no folder and no place has changed since the last sync (see `freshness`).

    Raises:
        LedgerUnusable: Another process is reading logs into it for the first time: it has no numbers yet.
    """
    env = os.environ if env is None else env
    until = time.monotonic() + wait
    while True:
        book.forget_notes()
        changed = changed_logs(book, env) if paths is None and not list_all else None
        book.is_complete = changed is not None or freshness == "up to date"
        if changed == []:
            return None
        from sessionlog.ledger.new_logs import read_new_logs

        only = None if book.is_complete else session_logs()
        synced = read_new_logs(book, env, changed, paths=paths, only=only, scanner=scanner, progress=progress)
        if BUSY not in book.notes or time.monotonic() > until:
            return synced
        time.sleep(_PAUSE)


def changed_logs(book: Book, env: Mapping[str, str]) -> list[ChangedLog] | None:
    """Return the logs that have changed since the last sync; None if all have to be listed, or priced anew."""
    if not book.has_its_prices:
        return None
    from sessionlog.ledger import freshness

    return freshness.changed_logs(book.connection, env, most=_FEW)
