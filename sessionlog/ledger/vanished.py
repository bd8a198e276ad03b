"""Vanished: responses that are no longer in a log which was rewritten shorter; what was counted once was paid for.

They are kept as those of a deleted log: under the path of the log and a name that no file can have, so that all that
holds for deleted logs holds for them. Kept are responses with a provider's id, by which another copy of them is
recognised; one that is in the log again is let go of.
"""

from __future__ import annotations

import os
import sqlite3

from sessionlog.ledger.columns import Response, insert
from sessionlog.ledger.identity import path_of, stored_path
from sessionlog.ledger.schema import GONE, VANISHED

_NAME = os.sep + VANISHED
_INSERT = insert("files", ("path", "source", "settled", "missing"))
_WITH_ID = "n >= 0 AND response_id IS NOT NULL AND family IS NOT NULL"


def set_aside(connection: sqlite3.Connection, file_id: int) -> None:
    """Copy the responses of a log that is read again, before its rows are deleted."""
    for table, condition in (("responses", _WITH_ID), ("log_sessions", "TRUE")):
        rows = f"SELECT * FROM {table} WHERE file_id = ? AND {condition}"  # noqa: S608 - names of the schema
        connection.execute(f"DROP TABLE IF EXISTS temp.earlier_{table}")
        connection.execute(f"CREATE TEMP TABLE earlier_{table} AS {rows}", [file_id])


def keep_vanished(connection: sqlite3.Connection, file_id: int) -> None:
    """Insert those responses that were set aside and are not in the log any more."""
    connection.execute(
        """DELETE FROM temp.earlier_responses
        WHERE response_id IN (SELECT response_id FROM responses WHERE file_id = ? AND response_id IS NOT NULL)""",
        [file_id],
    )
    if connection.execute("SELECT 1 FROM temp.earlier_responses LIMIT 1").fetchone() is None:
        return
    kept = find_vanished(connection, file_id)
    if kept is None:
        [(path, source)] = connection.execute("SELECT path, source FROM files WHERE id = ?", [file_id])
        kept = connection.execute(_INSERT, (stored_path(path_of(path) + _NAME), source, 1, GONE)).lastrowid or 0
    last = "(SELECT COALESCE(MAX(n), -1) FROM responses WHERE file_id = :kept)"
    own = {"file_id": ":kept", "n": f"ROW_NUMBER() OVER (ORDER BY n) + {last}"}
    columns, values = ", ".join(Response._fields), ", ".join(own.get(name, name) for name in Response._fields)
    connection.execute(
        f"INSERT INTO responses ({columns}) SELECT {values} FROM temp.earlier_responses",  # noqa: S608 - names of the schema
        {"kept": kept},
    )
    # As those of a sub-agent's log, they add responses and times to their session, and no other facts.
    connection.execute(
        """INSERT OR REPLACE INTO log_sessions (file_id, session_id, n, facts)
        SELECT :kept, session_id, 0, json_set(facts, '$.part', json('true')) FROM temp.earlier_log_sessions
        WHERE session_id IN (SELECT session_id FROM temp.earlier_responses)""",
        {"kept": kept},
    )


def find_vanished(connection: sqlite3.Connection, file_id: int) -> int | None:
    """Return the id under which the vanished responses of a log are kept; None if there are none."""
    for (path,) in connection.execute("SELECT path FROM files WHERE id = ?", [file_id]).fetchall():
        for (kept,) in connection.execute("SELECT id FROM files WHERE path = ?", [stored_path(path_of(path) + _NAME)]):
            return int(kept)
    return None


def let_go(connection: sqlite3.Connection, kept: int, file_id: int, n: int) -> None:
    """Delete the kept responses that are in their log again, among its rows from a number on."""
    connection.execute(
        """DELETE FROM responses WHERE file_id = ? AND response_id IN
        (SELECT response_id FROM responses WHERE file_id = ? AND n >= ? AND response_id IS NOT NULL)""",
        [kept, file_id, n],
    )
    if connection.execute("SELECT 1 FROM responses WHERE file_id = ? LIMIT 1", [kept]).fetchone() is None:
        connection.execute("DELETE FROM log_sessions WHERE file_id = ?", [kept])
        connection.execute("DELETE FROM files WHERE id = ?", [kept])
