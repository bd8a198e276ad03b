"""Summary: what a ledger's file holds, its size, and what it holds of logs that are gone. It only reads."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sessionlog import files
from sessionlog.ledger.opening import checked, open_ledger
from sessionlog.ledger.schema import ELSEWHERE, GONE, VERSION

_BESIDE = ("", "-wal")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSource:
    """The ledger's content for one agent.

    Attributes:
        source: The source's id.
        files: Logs that were read.
        sessions: Sessions in them.
        records: Responses that count.
        archived_files: Logs that are gone; only the ledger still has their rows.
        archived_sessions: Sessions all of whose logs are gone.
        archived_records: Responses that count, of logs that are gone.
        elsewhere_files: Logs outside the places that are searched now; reports leave them out.
    """

    source: str
    files: int = 0
    sessions: int = 0
    records: int = 0
    archived_files: int = 0
    archived_sessions: int = 0
    archived_records: int = 0
    elsewhere_files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The content of a ledger.

    Attributes:
        path: Its file.
        exists: Whether there is one.
        version: Its schema's version.
        bytes: Its size on disk, with the write-ahead log.
        tool_calls: Tool calls that count.
        oldest_ns: The earliest response.
        newest_ns: The latest.
        synced_ns: When logs were last listed; a sync lists them only if something has changed.
        priced_from: Where the prices of estimates come from.
        sources: Its content for each agent, by id.
    """

    path: str
    exists: bool
    version: int = VERSION
    bytes: int = 0
    tool_calls: int = 0
    oldest_ns: int | None = None
    newest_ns: int | None = None
    synced_ns: int | None = None
    priced_from: str = ""
    sources: tuple[KeptSource, ...] = ()

    @property
    def total(self) -> KeptSource:
        """All agents together."""
        names = [name for name in KeptSource.__slots__ if name != "source"]
        return KeptSource(source="*", **{name: sum(getattr(one, name) for one in self.sources) for name in names})


def summarise_ledger(path: str) -> Summary:
    """Summarise a ledger as it is, without reading any log.

    Raises:
        LedgerUnusable: It is damaged, not the user's alone, or of a newer version.
    """
    if files.stat_path(path) is None:
        return Summary(path=path, exists=False)
    with open_ledger(path, write=False) as book, checked(book.connection, path):
        return _summary(path, book.connection)


def _summary(path: str, connection: sqlite3.Connection) -> Summary:
    ask = connection.execute
    meta = dict(ask("SELECT name, value FROM meta"))
    [(version,)] = ask("PRAGMA user_version")
    [(oldest, newest)] = ask("SELECT MIN(first_ns), MAX(last_ns) FROM quarter_hours")
    [(calls,)] = ask("SELECT COUNT(*) FROM tools")
    synced = str(meta.get("synced", ""))
    return Summary(
        path=path,
        exists=True,
        version=version,
        bytes=sum(status.st_size for name in _BESIDE if (status := files.stat_path(path + name)) is not None),
        tool_calls=calls,
        oldest_ns=oldest,
        newest_ns=newest,
        synced_ns=int(synced) if synced.isdecimal() else None,
        priced_from=str(meta.get("priced_from", "")),
        sources=_sources(connection),
    )


def _sources(connection: sqlite3.Connection) -> tuple[KeptSource, ...]:
    kept: dict[str, dict[str, int]] = {}
    for names, sql in _COUNTS:
        for source, *counts in connection.execute(sql):
            kept.setdefault(str(source), {}).update(zip(names, counts, strict=True))
    return tuple(KeptSource(source=source, **counts) for source, counts in sorted(kept.items()))


_COUNTS = (
    (
        ("files", "archived_files", "elsewhere_files"),
        f"SELECT source, COUNT(*), SUM(missing = {GONE}), SUM(missing = {ELSEWHERE}) FROM files GROUP BY 1",  # noqa: S608 - numbers
    ),
    (("sessions", "archived_sessions"), "SELECT source, COUNT(*), SUM(archived) FROM sessions GROUP BY 1"),
    (
        ("records", "archived_records"),
        f"""SELECT f.source, COUNT(*), SUM(f.missing = {GONE}) FROM responses r JOIN files f ON f.id = r.file_id
            WHERE r.counts GROUP BY 1""",  # noqa: S608 - a number
    ),
)
