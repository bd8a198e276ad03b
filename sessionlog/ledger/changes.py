"""Changes: for each session the number of the last reconcile that may have changed its rows.

By these numbers an export reads only the sessions that have changed since the last one. The ledger keeps the number up
to which it was exported, too: a ledger that was restored from a backup, or made anew, does not have the number of its
last export, so that everything is compared again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

_LAST, _WHOLE = "change", "changed_whole"


def note_changes(connection: sqlite3.Connection, sessions: Iterable[int] | None) -> None:
    """Give these sessions the next number; None for all. The caller is in a transaction."""
    number = _number(connection, _LAST) + 1
    if sessions is None:
        connection.execute("DELETE FROM session_changes")
        _set(connection, _WHOLE, str(number))
    else:
        rows = [(session, number) for session in sorted(sessions)]
        connection.executemany("INSERT OR REPLACE INTO session_changes VALUES (?, ?)", rows)
    _set(connection, _LAST, str(number))


def last_change(connection: sqlite3.Connection) -> int:
    """Return the number of the last change; 0 for an empty ledger."""
    return _number(connection, _LAST)


def changed_since(connection: sqlite3.Connection, number: int) -> list[int] | None:
    """Return the ids of sessions with a later change, also of such as are gone; None if that may be any session."""
    if number < _number(connection, _WHOLE):
        return None
    rows = connection.execute("SELECT session_id FROM session_changes WHERE number > ? ORDER BY 1", (number,))
    return [session for (session,) in rows]


def exported_until(connection: sqlite3.Connection, name: str) -> list[int] | None:
    """Return the numbers of the last changes that an export has; None if this ledger was never exported under a name.

    The later one is that of an export which may not have ended.
    """
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (f"exported {name}",)).fetchone()
    return None if row is None else [int(number) for number in str(row[0]).split()]


def note_exported(connection: sqlite3.Connection, name: str, before: int | None, number: int) -> None:
    """Note, before an export takes effect, up to which change it goes, and up to which the last one went."""
    numbers = sorted({number} if before is None else {before, number})
    _set(connection, f"exported {name}", " ".join(map(str, numbers)))


def exported_manifests(connection: sqlite3.Connection, name: str) -> list[str]:
    """Return the names of the last manifests that this ledger's exports under a name have written; none if unknown.

    The later one is that of an export which may not have ended.
    """
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (f"manifests {name}",)).fetchone()
    return [] if row is None else str(row[0]).split()


def note_manifests(connection: sqlite3.Connection, name: str, manifests: Iterable[str]) -> None:
    """Note, before an export writes its manifest, the name of it and of its own one before."""
    _set(connection, f"manifests {name}", " ".join(manifests))


def is_shared(connection: sqlite3.Connection, name: str) -> bool:
    """Whether another ledger has exported under a name with this ledger's machine id."""
    return _number(connection, f"shared {name}") > 0


def note_shared(connection: sqlite3.Connection, name: str) -> None:
    """Note that another ledger exports under a name with this ledger's machine id."""
    _set(connection, f"shared {name}", "1")


def _number(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def _set(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
