"""Another program's SQLite database, opened for reading without leaving a trace beside it."""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote

from sessionlog import files
from sessionlog.errors import LogNotReadable

WAIT_SECONDS = 2.0
"""How long a writer's lock is waited for."""


def open_database(path: str) -> sqlite3.Connection:
    """Open a database read-only.

    Without a write-ahead log beside it, it is opened as immutable, which makes no files at all; with one it is read
    through the writer's own shared memory. Text that is not UTF-8 is mended.

    Raises:
        LogNotReadable: Missing, not a regular file, no database, locked, or no permission.
    """
    files.open_log(path).close()  # refuses devices and other people's links, as for any log
    log = files.stat_path(f"{path}-wal")
    mode = "immutable=1" if log is None or not log.st_size else "readonly_shm=1"
    try:
        uri = f"file:{quote(os.path.abspath(path))}?mode=ro&{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=WAIT_SECONDS)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.Error as error:
        raise LogNotReadable(f"{path}: {error}") from error
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection
