"""What a destination has of this machine's events: a hash for each event of each log, in a small database.

The database only spares writing what is there: without it all events are written again, with a higher revision.
Nothing is kept before `commit`.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessionlog.export.state_database import StateDatabase

_TABLES = """
CREATE TABLE IF NOT EXISTS manifests (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replaced (name TEXT PRIMARY KEY, second INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS logs (log INTEGER PRIMARY KEY, identity TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS sessions (
    log INTEGER NOT NULL, session TEXT NOT NULL, hashes BLOB NOT NULL, PRIMARY KEY (log, session)
) STRICT, WITHOUT ROWID;
"""
WIDTH = 8
"""Bytes of an event's hash; zeros for one that was not exported."""

Session = tuple[int, str]
"""The key of a log, and the id of one of its sessions."""


class EventState(StateDatabase):
    """The state of one destination.

    Args:
        path: The database; it is created with its folders, for the user alone.

    Raises:
        NotExported: It cannot be opened, or another export has it.
    """

    REMEDY = "without the file all events are written again"

    def __init__(self, path: str) -> None:
        super().__init__(path, _TABLES)

    def begin(self, manifests: set[str]) -> None:
        """Forget everything if the destination lacks a manifest that was written: it was emptied, replaced or restored.

        Manifests that were replaced then hold again: of deleted logs nothing else may have the events.
        """
        with self._named():
            known = {name for (name,) in self._connection.execute("SELECT name FROM manifests")}
            if not known <= manifests:
                for table in ("manifests", "replaced", "logs", "sessions"):
                    self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def identity(self, log: int) -> str:
        """Return what a log was when its events were exported; "" if they were not."""
        with self._named():
            row = self._connection.execute("SELECT identity FROM logs WHERE log = ?", (log,)).fetchone()
        return str(row[0]) if row else ""

    def hashes(self, session: Session) -> bytearray:
        """Return the hashes of a session's events, by position."""
        with self._named():
            row = self._connection.execute(
                "SELECT hashes FROM sessions WHERE log = ? AND session = ?", session
            ).fetchone()
        return bytearray(row[0]) if row else bytearray()

    def put(self, session: Session, hashes: bytes) -> None:
        """Store the hashes of a session's events."""
        with self._named():
            self._connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", (*session, hashes))

    def put_identity(self, log: int, identity: str) -> None:
        """Store what a log was before its events were read."""
        with self._named():
            self._connection.execute("INSERT OR REPLACE INTO logs VALUES (?, ?)", (log, identity))

    def manifests(self) -> list[str]:
        """Return the names of the manifests that hold."""
        with self._named():
            return [name for (name,) in self._connection.execute("SELECT name FROM manifests ORDER BY name")]

    def replaced(self, before: int) -> list[str]:
        """Return the names of manifests that were replaced before a second since 1970."""
        with self._named():
            found = self._connection.execute("SELECT name FROM replaced WHERE second < ? ORDER BY name", (before,))
            return [name for (name,) in found]

    def forget_replaced(self, names: Iterable[str]) -> None:
        """Forget manifests that were removed."""
        with self._named():
            self._connection.executemany("DELETE FROM replaced WHERE name = ?", ((name,) for name in names))

    def commit(self, manifest: str, replaced: Iterable[str] = (), second: int = 0) -> None:
        """Keep what was stored, after a manifest has been written, "" for none, which has replaced others then."""
        with self._named():
            for name in replaced:
                self._connection.execute("DELETE FROM manifests WHERE name = ?", (name,))
                self._connection.execute("INSERT OR REPLACE INTO replaced VALUES (?, ?)", (name, second))
            if manifest:
                self._connection.execute("INSERT OR IGNORE INTO manifests VALUES (?)", (manifest,))
            self._connection.execute("COMMIT")
