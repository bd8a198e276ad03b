"""Freshness: whether a ledger is up to date, without listing logs or importing sources.

A sync stores a snapshot: the environment variables that it read, the folders that it listed with their mtimes, the
places that did not exist, and where packages with sources may be. While these are unchanged, no log is new or gone, and
one stat per log shows whether it has grown. A folder that changed a moment ago is not trusted, because a second change
may leave the same mtime.
"""

from __future__ import annotations

import os
import sys
from time import time_ns

from sessionlog._version import __version__
from sessionlog.ledger.trust import file_flaw, is_ledger, owner_flaw, read_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.errors import Problem
    from sessionlog.ledger.agents import Agent
    from sessionlog.sources.protocol import Log, Source

    ChangedLog = tuple[str | bytes, str]
    """(path as stored, source's id)."""

_FEW_BYTES = 16 << 20
"""New bytes up to which one process reads them."""

_ABSENT, _RECENT = -1, -2
_HERE = f"{os.sep}$PWD"
"""Stands for the working folder in stored paths: while nothing exists at these, any working folder is the same."""

_PACKAGES = "=packages"
"""Stands among the variables for the folders of installed packages: another installation may have other sources."""

_PRICES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "prices.json.gz")


class RecordingEnv(dict[str, str]):
    """An environment that records which variables were read.

    Attributes:
        asked: Their names.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(env)
        self.asked: set[str] = set()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override] # of the two overloads one is needed
        """Return a variable."""
        self.asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self.asked.add(name)
        return super().__contains__(name)


def open_current(
    path: str, env: Mapping[str, str], *, most: int = 0
) -> tuple[sqlite3.Connection, list[ChangedLog]] | None:
    """Return the ledger at a path, open for reading in one transaction, and the few logs that have changed since.

    None if more than `most` logs have changed or one could be new or gone, if the ledger is not priced by the shipped
    list, or if it cannot be used: `ask` handles these cases.
    """
    connection = open_as_it_is(path)
    if connection is None:
        return None
    changed = few_changed_logs(connection, env, most=most)
    if changed is None:
        connection.close()
    return None if changed is None else (connection, changed)


def few_changed_logs(connection: sqlite3.Connection, env: Mapping[str, str], *, most: int) -> list[ChangedLog] | None:
    """Return the few logs that have changed since an open ledger was written; None where `open_current` returns it."""
    try:
        if _is_shipped_list(connection):
            return changed_logs(connection, env, most=most, most_bytes=_FEW_BYTES)
    except (OSError, _error(), ValueError, TypeError):  # a damaged ledger may hold anything
        pass
    return None


def open_as_it_is(path: str) -> sqlite3.Connection | None:
    """Return the ledger at a path, open for reading in one transaction; None if it cannot be used."""
    try:
        from _sqlite3 import connect
    except ImportError:
        from sqlite3 import connect
    connection = None
    try:
        if file_flaw(path) or owner_flaw(os.path.dirname(os.path.abspath(path))):
            return None
        connection = connect(read_only(path), uri=True, isolation_level=None)
        connection.execute("BEGIN")
        if is_ledger(connection, path):
            return connection
    except (OSError, _error(), ValueError, TypeError):
        pass
    if connection is not None:
        connection.close()
    return None


def _error() -> type[Exception]:
    """Return SQLite's exception; importing `sqlite3` takes longer."""
    try:
        from _sqlite3 import Error
    except ImportError:
        from sqlite3 import Error
    return Error


def _is_shipped_list(connection: sqlite3.Connection) -> bool:
    """Whether estimates are at the shipped list's prices; the snapshot shows when that list changes."""
    return bool(connection.execute("SELECT value FROM meta WHERE name = 'own_prices'").fetchone() == ("no",))


def changed_logs(
    connection: sqlite3.Connection, env: Mapping[str, str], *, most: int, most_bytes: int | None = None
) -> list[ChangedLog] | None:
    """Return the logs whose state is not that of the last sync.

    None if there are more than `most`, if they have more than `most_bytes` new bytes, or if a log could be new or gone:
    then all logs have to be listed.
    """
    ask = connection.execute
    if ask("SELECT value FROM meta WHERE name = 'snapshot'").fetchone() != (__version__,):
        return None
    for name, value in ask("SELECT name, value FROM variables"):
        if _value(env, name) != value:
            return None
    if any(_mtime(_fill_pwd(path, env)) != mtime_ns for path, mtime_ns in ask("SELECT path, mtime_ns FROM folders")):
        return None
    # Several sources look for the same names, some of them in the home folder, which may be large.
    listings = ask("SELECT DISTINCT folder, prefix, names FROM listings")
    if any(names != _names(folder, prefix) for folder, prefix, names in listings):
        return None
    if ask("SELECT 1 FROM files WHERE missing = 3 LIMIT 1").fetchone():
        return None
    changed: list[ChangedLog] = []
    new_bytes = 0
    try:
        for path, *looks, beside, settled, source in ask(
            "SELECT path, ctime_ns, mtime_ns, size, inode, device, beside, settled, source FROM files WHERE NOT missing"
        ):
            now = os.stat(path)
            if (
                not settled
                or [now.st_ctime_ns, now.st_mtime_ns, now.st_size, now.st_ino, now.st_dev] != looks
                or (beside and not _are_sidecars_unchanged(beside))
            ):
                changed.append((path, source))
                size = looks[2]
                new_bytes += now.st_size - (size if now.st_size >= size else 0)
                if len(changed) > most or (most_bytes is not None and new_bytes > most_bytes):
                    return None
    except OSError:
        return None
    return changed


def _are_sidecars_unchanged(state: str) -> bool:
    from sessionlog.ledger.identity import are_sidecars_unchanged

    return are_sidecars_unchanged(state)


class Snapshot:
    """The folders and variables of a sync, read before logs are listed, so that the next sync sees later changes."""

    def __init__(self, env: RecordingEnv, sources: Sequence[Source]) -> None:
        """Read the mtimes of every folder in which a log could be new, of packages with sources and the price list."""
        from sessionlog.ledger.identity import STABLE_AFTER_NS, stored_path

        self._env, self._sources = env, sources
        self._stable_before_ns = time_ns() - STABLE_AFTER_NS
        self._listings = [
            (stored_path(one[0]), one[1], _names(*one)) for source in sources for one in source.watched_prefixes(env)
        ]
        self._mtimes = {path: self._mtime(path) for path in _folders(env, sources)}

    def _mtime(self, path: str) -> int:
        mtime_ns = _mtime(path)
        return _RECENT if mtime_ns > self._stable_before_ns else mtime_ns

    def write(self, connection: sqlite3.Connection, listed: Sequence[Log | Problem]) -> None:
        """Store the snapshot, without the logs that were found: `files` has their states."""
        from sessionlog.ledger.agents import describe_agent, write_agents
        from sessionlog.ledger.identity import stored_path
        from sessionlog.sources.registry import registry

        if any(hasattr(item, "kind") for item in listed):  # a place that cannot be listed is reported every time
            connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
            return
        logs = {item.path for item in listed}
        odd = {os.path.dirname(path) for path in logs - self._mtimes.keys()} - self._mtimes.keys()
        mtimes = {path: mtime_ns for path, mtime_ns in self._mtimes.items() if path not in logs}
        mtimes |= {path: self._mtime(path) for path in odd}
        folders = {stored_path(path): mtime_ns for path, mtime_ns in mtimes.items()}
        absent, asked = _absent_in_pwd(self._env, self._sources), self._env.asked
        described_in: dict[str, str] = self._env
        if absent is not None:
            asked, described_in = asked - {"PWD"}, {**self._env, "PWD": _HERE}
            for template in absent:
                folders.pop(_fill_pwd(template, self._env), None)
                folders[template] = _ABSENT
        values = [(name, _value(self._env, name)) for name in sorted(asked | {_PACKAGES})]
        tables = ("variables", values), ("folders", list(folders.items())), ("listings", self._listings)
        for table, rows in tables:
            connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of the schema
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - names of the schema
        described = () if registry().problems else self._sources  # what cannot be used is named by each report
        try:
            write_agents(connection, [describe_agent(source, described_in) for source in described])
        except Exception:  # noqa: BLE001 - another package may raise anything, or return what cannot be stored
            write_agents(connection, [])  # `sources` alone shows it
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('snapshot', ?)", (__version__,))


def _folders(env: RecordingEnv, sources: Sequence[Source]) -> Iterator[str]:
    """Yield all folders in which a log could be new (also places that are logs), package folders and the price list."""
    for source in sources:
        yield from _files_of_retention(source, env)
        for place in source.locate(env):
            yield place
            for folder, folders, _ in os.walk(place):
                yield from (os.path.join(folder, name) for name in folders)
    yield from _package_folders()
    yield _PRICES


def _package_folders() -> Iterator[str]:
    return (path for path in sys.path if path.endswith("-packages"))


def _files_of_retention(source: Source, env: RecordingEnv) -> tuple[str, ...]:
    """Return the files that decide how long an agent keeps its logs."""
    try:
        kept = source.retention(env)
    except Exception:  # noqa: BLE001 - as above
        return ()
    return () if kept is None else kept.files


def _absent_in_pwd(env: RecordingEnv, sources: Sequence[Source]) -> list[str] | None:
    """The places that depend on the working folder, if none of them exists; None if one does, or that is unknown."""
    if not os.path.isabs(env.get("PWD", "") or ""):
        return None
    now = {place for source in sources for place in source.locate(env)}
    elsewhere = {place for source in sources for place in source.locate({**env, "PWD": _HERE})}
    places = sorted(elsewhere - now)
    if {_fill_pwd(place, env) for place in places} != now - elsewhere:
        return None
    return places if all(_mtime(_fill_pwd(place, env)) == _ABSENT for place in places) else None


def known_agents(connection: sqlite3.Connection, env: Mapping[str, str]) -> list[Agent]:
    """Return the agents as the last sync described them, for a ledger that is up to date."""
    from dataclasses import replace

    from sessionlog.ledger.agents import read_agents

    agents = read_agents(connection)
    if not os.path.isabs(env.get("PWD", "")):  # then no place depends on the working folder
        return [replace(one, places=tuple(p for p in one.places if not p.startswith(_HERE))) for one in agents]
    return [replace(one, places=tuple(_fill_pwd(place, env) for place in one.places)) for one in agents]


def _fill_pwd(path: Any, env: Mapping[str, str]) -> Any:
    """A path, text or bytes, with the working folder in place of `_HERE`."""
    return env.get("PWD", "") + path[len(_HERE) :] if isinstance(path, str) and path.startswith(_HERE) else path


def _value(env: Mapping[str, str], name: str) -> str | bytes | None:
    value = env[name] if name in env else None  # noqa: SIM401 - `get` of a `RecordingEnv` may differ from its items
    if name == _PACKAGES:
        value = os.pathsep.join(_package_folders())
    if value is None or value.isascii():
        return value
    from sessionlog.ledger.identity import stored_path

    return stored_path(value)


def _mtime(path: str | bytes) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return _ABSENT


def _names(folder: str | bytes, prefix: str) -> str:
    """Return the names in a folder that begin with a prefix, sorted, as one text; "" if it cannot be listed."""
    try:
        names = os.listdir(os.fsdecode(folder))
        return "/".join(sorted(ascii(name) for name in names if name.startswith(prefix)))
    except OSError:
        return ""
