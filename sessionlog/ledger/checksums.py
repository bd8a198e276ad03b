"""Checksums of the rows of logs that are gone: these rows never change, and no log is left to compare them with.

Rows of an existing log are verified by reading the log again. Derived values (which copies count, costs, totals) are
verified by deriving them again, so checksums do not include them.
"""

from __future__ import annotations

import sqlite3

from sessionlog.hashes import blake2b
from sessionlog.ledger.columns import Call, Label, Limit, Name, Response
from sessionlog.ledger.costs import COSTS
from sessionlog.ledger.identity import path_of

_DERIVED = {"file_id", "session_id", "label_id", "name_id", "counts", "chosen", *COSTS}


def _columns(alias: str, row: type[Response | Label | Call | Name | Limit]) -> str:
    return ", ".join(f"{alias}.{name}" for name in row._fields if name not in _DERIVED)


_SESSION = "s.source, s.session, s.place"
_ROWS = (
    f"""SELECT {_columns("r", Response)}, {_columns("l", Label)}, {_SESSION} FROM responses r
        LEFT JOIN labels l ON l.id = r.label_id LEFT JOIN all_sessions s ON s.id = r.session_id
        WHERE r.file_id = ? AND r.n >= 0 ORDER BY r.n""",  # noqa: S608 - names of the schema
    f"""SELECT {_columns("c", Call)}, {_columns("n", Name)}, {_SESSION} FROM calls c
        LEFT JOIN names n ON n.id = c.name_id LEFT JOIN all_sessions s ON s.id = c.session_id
        WHERE c.file_id = ? ORDER BY c.n""",  # noqa: S608 - as above
    "SELECT n, facts FROM log_sessions WHERE file_id = ? ORDER BY session_id, n",
    f"SELECT {_columns('i', Limit)} FROM limits i WHERE i.file_id = ? ORDER BY i.name",  # noqa: S608 - as above
    "SELECT path, source FROM files WHERE id = ?",
)


def checksum_of(connection: sqlite3.Connection, file_id: int) -> str:
    """Return the checksum of all rows of a log."""
    hashed = blake2b(digest_size=16)
    for sql in _ROWS:
        for row in connection.execute(sql, (file_id,)):
            hashed.update(repr(row).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def write_checksums(connection: sqlite3.Connection) -> None:
    """Store a checksum for every log that is gone and delete those of logs that are back; the caller commits."""
    connection.execute("UPDATE files SET checksum = '' WHERE NOT missing AND checksum <> ''")
    gone = connection.execute("SELECT id FROM files WHERE missing AND checksum = ''").fetchall()
    rows = [(checksum_of(connection, file_id), file_id) for (file_id,) in gone]
    connection.executemany("UPDATE files SET checksum = ? WHERE id = ?", rows)


def find_changed(connection: sqlite3.Connection) -> list[str]:
    """Return the paths of logs that are gone and whose rows do not match their checksum."""
    gone = connection.execute("SELECT id, path, checksum FROM files WHERE missing ORDER BY path").fetchall()
    return [path_of(path) for file_id, path, checksum in gone if checksum_of(connection, file_id) != checksum]
