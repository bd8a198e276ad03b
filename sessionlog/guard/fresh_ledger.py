"""Fresh ledger: the ledger, open for queries, with all that this session's logs have up to now.

A hook has milliseconds, so it does not list all logs. While no folder has changed, the logs that have grown are read,
as for a report. Where logs may be new, only this session's are read, its sub-agents' included; those of other sessions
follow when all are listed: before a prompt, which a person has just typed, or by any report.
"""

from __future__ import annotations

import os
from time import monotonic, sleep

from sessionlog import files
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.problems import BUSY
from sessionlog.ledger.refreshing import refresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sessionlog.guard.hook import Hook
    from sessionlog.ledger.book import Book
    from sessionlog.pricing.book import PriceBook
    from sessionlog.sources.protocol import Log

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
    hook: Hook, path: str, env: Mapping[str, str], prices: PriceBook | None, *, is_strict: bool = False
) -> Book:
    """Return the ledger at a path, with this session's logs; it is complete unless other sessions' may be new.

    While another process writes to it for long, that is the ledger as it is: a budget that is spent there is spent.

    Raises:
        LedgerUnusable: It cannot be opened or made; with `is_strict` also if another process has been writing for long.
    """
    book = open_ledger(path, prices)
    try:
        # a parallel call's hook reads the same logs, which is waited for
        refresh(book, env, "this session first", session_logs=lambda: session_logs(hook, env), wait=_BUSY_SECONDS)
    except BaseException:
        book.close()
        raise
    if BUSY in book.notes and is_strict:
        book.close()
        raise LedgerUnusable(f"{path}: another process is writing to it; try again")
    return book


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
