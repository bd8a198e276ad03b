"""Cached: the cached path of queries.

While nothing has changed since the last sync, a query needs only the ledger's file: no logs are listed, no prices are
loaded, nothing is written. While an agent works, a few logs have grown: these are read, and only the modules of their
sources are imported. All other cases are left to `ask`.
"""

from __future__ import annotations

from sessionlog.ledger.freshness import few_changed_logs, open_as_it_is, open_current

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from sessionlog.ledger.reading import ReadBook

    _T = TypeVar("_T")

_FEW = 20
"""Changed logs up to which one process reads them."""


def open_up_to_date(path: str, env: Mapping[str, str]) -> sqlite3.Connection | None:
    """Return the ledger at a path, up to date and open for reading in one transaction.

    If a few logs have grown, they are read first. None if logs have to be listed, or the ledger cannot be used: `ask`
    handles these cases.
    """
    found = open_current(path, env, most=_FEW)
    if found is None:
        return None
    connection, changed = found
    if not changed:
        return connection
    connection.close()
    from sessionlog.ledger.ask import read_changed

    return read_changed(path, changed)


def ask_at_once(
    path: str, env: Mapping[str, str], question: Callable[[ReadBook], _T], use: Callable[[_T], None]
) -> bool:
    """Run a query on a ledger as it is, pass the result to `use`, then return whether the ledger was up to date.

    False also where there is no ledger that can be used. Looking at thousands of logs takes longer than the query.
    """
    connection = open_as_it_is(path)
    if connection is None:
        return False
    from sessionlog.ledger.reading import ReadBook

    book = ReadBook(connection)
    try:
        use(question(book))
        return few_changed_logs(connection, env, most=0) == []
    except Exception as error:
        from sessionlog.errors import SessionLogError

        if isinstance(error, SessionLogError):
            raise
        return False  # a damaged ledger may hold anything
    finally:
        book.close()


def ask_current(path: str, env: Mapping[str, str], question: Callable[[ReadBook], _T]) -> _T | None:
    """Run a query on a ledger that can be brought up to date without listing logs; None if it cannot."""
    try:
        connection = open_up_to_date(path, env)
        if connection is None:
            return None
        from sessionlog.ledger.current_book import CurrentBook

        book = CurrentBook(connection)
        try:
            return question(book)
        finally:
            book.close()
    except Exception as error:
        from sessionlog.errors import SessionLogError

        if isinstance(error, SessionLogError):
            raise
        return None
