"""Changes: for each session the number of the last reconcile that may have changed its rows.

By these numbers an export reads only the sessions that have changed since the last one. The ledger keeps the number up
to which it was exported, too: a ledger that was restored from a backup, or made anew, does not have the number of its
last export, so that everything is compared again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

_LAST, _WHOLE = "change", "changed_whole"
_MADE_ANEW = "earlier ledger"
_MOST_MANIFESTS = 64  # names that are kept for each place


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


def exported_manifests(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the manifests that this ledger's exports have written lately, to any place."""
    rows = connection.execute("SELECT value FROM meta WHERE name LIKE 'manifests %'")
    return {name for (names,) in rows for name in str(names).split()}


def has_manifests(connection: sqlite3.Connection, name: str) -> bool:
    """Whether this ledger has exported under a name."""
    return connection.execute("SELECT 1 FROM meta WHERE name = ?", (f"manifests {name}",)).fetchone() is not None


def note_manifests(connection: sqlite3.Connection, name: str, manifests: Iterable[str]) -> None:
    """Note manifests of an export under a name, before it writes its own one."""
    connection.execute("BEGIN IMMEDIATE")  # two exports of one ledger keep the manifests of each other
    try:
        row = connection.execute("SELECT value FROM meta WHERE name = ?", (f"manifests {name}",)).fetchone()
        known = [] if row is None else str(row[0]).split()
        known += [one for one in manifests if one not in known]
        _set(connection, f"manifests {name}", " ".join(known[-_MOST_MANIFESTS:]))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def has_earlier_rows(connection: sqlite3.Connection, name: str) -> bool:
    """Whether what was exported under a name may have rows that this ledger never had: of one that was lost."""
    return _number(connection, f"earlier {name}") > 0


def note_earlier_rows(connection: sqlite3.Connection, name: str) -> None:
    """Note that what was exported under a name may have rows that this ledger never had."""
    _set(connection, f"earlier {name}", "1")


def note_made_anew(connection: sqlite3.Connection) -> None:
    """Note that this ledger was lost and made anew: what it exported before, and where to, it does not know."""
    _set(connection, _MADE_ANEW, "1")


def was_made_anew(connection: sqlite3.Connection) -> bool:
    """Whether this ledger was lost and made anew."""
    return _number(connection, _MADE_ANEW) > 0


def forget_exports(connection: sqlite3.Connection) -> None:
    """Forget all exports of this ledger, which becomes another machine. The caller is in a transaction."""
    connection.execute(
        "DELETE FROM meta WHERE name LIKE 'exported %' OR name LIKE 'manifests %' OR name LIKE 'earlier %'"
    )


def _number(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def _set(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
