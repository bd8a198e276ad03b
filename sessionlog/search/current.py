"""Current: whether an index has all that its ledger knows, seen from the state of the ledger's file.

While that file is what it was when both were compared and nothing was missing, their tables need not be compared again.
"""

from __future__ import annotations

import sqlite3
from time import time_ns

from sessionlog import files
from sessionlog.hashes import hash_name
from sessionlog.ledger.identity import STABLE_AFTER_NS, identify

ITEMS_VERSION = 2
"""To be raised when the items of the same log change: then all logs are read again."""


def is_current(connection: sqlite3.Connection, ledger: str) -> bool:
    """Whether an index had all that the ledger at a path knew, and that has not changed since."""
    state = state_of(ledger)
    found = connection.execute("SELECT value FROM meta WHERE name = 'ledger'").fetchone()
    return state is not None and bool(found == (state,))


def state_of(ledger: str) -> int | None:
    """Return a hash of the state of a ledger's file; None if it may change again without a trace."""
    log, identity = files.stat_path(f"{ledger}-wal"), identify(ledger)
    if identity is None or (log is not None and log.st_size) or time_ns() - identity[3] < STABLE_AFTER_NS:
        return None
    return hash_name(f"{ITEMS_VERSION} {identity[:5]}", b"")
