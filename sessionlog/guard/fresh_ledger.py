"""Fresh ledger: the ledger, open for queries, with all that this session's logs have up to now.

A hook has milliseconds, so it does not list all logs. While no folder has changed, the few logs that have grown are
read, as for a status (`ledger.cached`). Where logs may be new, only this session's are read, its sub-agents' included;
those of other sessions follow when all are listed: before a prompt, which a person has just typed, or by any report.
"""

from __future__ import annotations

import os
from time import monotonic, sleep

from sessionlog import files
from sessionlog.ledger.cached import open_up_to_date

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from sessionlog.guard.hook import Hook
    from sessionlog.pricing.book import PriceBook
    from sessionlog.sources.protocol import Log

    Prices = Callable[[], PriceBook]
    """Loads the prices of responses without a recorded cost."""

_TAIL = 1 << 16
_LOGGED_SECONDS, _BUSY_SECONDS, _PAUSE = 0.25, 1.0, 0.005
_RETURNED_SECONDS = 0.3


def wait_for_call(hook: Hook) -> None:
    """Wait until the log has the call that the hook is asked about: Claude Code writes it up to 100 ms later.

    With the call the log has the usage of the response that makes it. A log that never gets it is waited for 250 ms.
    After a sub-agent has returned, nothing in the hook names its last response: that is given 300 ms.
    """
    if hook.moment == "result":
        sleep(_RETURNED_SECONDS)
    if not (hook.call_id and hook.call_log):
        return
    wanted, until = hook.call_id.encode("utf-8", "replace"), monotonic() + _LOGGED_SECONDS
    while wanted not in read_end(hook.call_log, _TAIL) and monotonic() < until:
        sleep(_PAUSE)


def read_end(path: str, count: int) -> bytes:
    """Return the last bytes of a file; none if it cannot be read."""
    from sessionlog.errors import LogNotReadable

    try:
        with files.open_log(path, buffer=0) as file:
            return files.read_tail(file.fileno(), files.stat_open(file).st_size, count)
    except (LogNotReadable, OSError, ValueError):
        return b""


def open_fresh(
    hook: Hook, path: str, env: Mapping[str, str], prices: Prices, *, is_strict: bool = False
) -> tuple[sqlite3.Connection, bool]:
    """Return the ledger at a path, open for reading in one transaction, and whether other sessions' logs can be read.

    While another process writes to it for long, that is the ledger as it is: a budget that is spent there is spent.

    Raises:
        LedgerUnusable: It cannot be opened or made; with `is_strict` also if another process has been writing for long.
    """
    from sessionlog.errors import LedgerUnusable
    from sessionlog.ledger.freshness import open_as_it_is
    from sessionlog.ledger.sync import LedgerBusy

    until = monotonic() + _BUSY_SECONDS
    while True:
        connection = open_up_to_date(path, env)
        if connection is not None:
            return connection, False
        try:
            return _read_session(hook, path, env, prices()), True
        except LedgerBusy as error:  # a parallel call's hook reads the same logs
            if monotonic() > until:
                connection = None if is_strict else open_as_it_is(path)
                if connection is None:
                    raise LedgerUnusable(f"{path}: another process is writing to it; try again") from error
                return connection, False
            sleep(_PAUSE)


def _read_session(hook: Hook, path: str, env: Mapping[str, str], prices: PriceBook) -> sqlite3.Connection:
    """Read this session's logs into the ledger."""
    from sessionlog.ledger.store import open_ledger
    from sessionlog.ledger.sync import sync, without_waiting

    book = open_ledger(path, prices)
    try:
        with without_waiting(book.connection):
            book.reprice(prices)
        sync(book, session_logs(hook, env), places=None)
        book.connection.execute("BEGIN")
        return book.detach()
    except BaseException:
        book.close()
        raise


def session_logs(hook: Hook, env: Mapping[str, str]) -> list[Log]:
    """Return the session's log and those of its sub-agents; none if it is not where the agent writes logs."""
    from sessionlog.sources.protocol import Log
    from sessionlog.sources.registry import source_of

    source = source_of(hook.agent.id)
    real = os.path.realpath(hook.log) if os.path.isabs(hook.log) else ""
    for place in source.locate(env):
        inside = os.path.join(os.path.realpath(place), "")
        if real.startswith(inside) and os.path.isfile(real):
            path = os.path.join(place, real[len(inside) :])  # as a list of all logs has it
            return [Log(source=source, path=one) for one in (path, *source.subagent_logs(path))]
    return []


def was_synced(connection: sqlite3.Connection) -> bool:
    """Whether all logs of this machine were read into the ledger at some time."""
    return connection.execute("SELECT 1 FROM meta WHERE name = 'snapshot'").fetchone() is not None


def open_complete(path: str, env: Mapping[str, str], prices: Prices) -> sqlite3.Connection:
    """List all logs of this machine, read what is new, and return the ledger, open for reading in one transaction.

    Raises:
        LedgerUnusable: It cannot be opened.
    """
    from sessionlog.ledger.ask import refresh
    from sessionlog.ledger.store import open_ledger

    book = open_ledger(path, prices())
    try:
        refresh(book, env)
        book.connection.execute("BEGIN")
        return book.detach()
    except BaseException:
        book.close()
        raise
