"""Surroundings: what was looked at to find the logs, so that "nothing has changed" is known without any source.

A sync writes down the variables that it asked for, the folders that it went through with their mtimes, and the places
where nothing was. While all of that and every log are as they were, no source has anything new to tell, and none need
be imported: a report then costs as many stats as there are logs and folders. A folder that changed a moment ago is not
trusted, for a second change may not show.
"""

from __future__ import annotations

import os
import sqlite3
import sys

from sessionlog._version import __version__
from sessionlog.ledger.identity import SETTLED_NS, is_beside, stored_path

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sessionlog.errors import Problem
    from sessionlog.sources.protocol import Log, Source

_ABSENT, _UNSETTLED = -1, -2


class Watched(dict[str, str]):
    """An environment that remembers what it was asked for."""

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


def is_unchanged(connection: sqlite3.Connection, env: Mapping[str, str]) -> bool:
    """Whether every log, and every place where one could be new, looks as it did at the last sync."""
    ask = connection.execute
    if ask("SELECT value FROM meta WHERE name = 'surroundings'").fetchone() != (__version__,):
        return False
    for name, value in ask("SELECT name, value FROM variables"):
        if _value(env, name) != value:
            return False
    if any(_mtime(path) != mtime_ns for path, mtime_ns in ask("SELECT path, mtime_ns FROM folders")):
        return False
    if any(names != _names(folder, prefix) for folder, prefix, names in ask("SELECT * FROM listings")):
        return False
    if ask("SELECT 1 FROM files WHERE missing = 3 OR NOT missing AND NOT settled LIMIT 1").fetchone():
        return False
    stat = os.stat
    try:
        for path, device, inode, size, mtime_ns, beside in ask(
            "SELECT path, device, inode, size, mtime_ns, beside FROM files WHERE NOT missing"
        ):
            now = stat(path)
            if (now.st_mtime_ns, now.st_size, now.st_ino, now.st_dev) != (mtime_ns, size, inode, device):
                return False
            if beside and not is_beside(beside):
                return False
    except OSError:
        return False
    return True


def remember(
    connection: sqlite3.Connection, env: Watched, sources: Sequence[Source], listed: Sequence[Log | Problem], at_ns: int
) -> None:
    """Write down what a sync looked at; `at_ns` is when it began."""
    if any(hasattr(item, "kind") for item in listed):  # what could not be listed is to be said every time
        connection.execute("DELETE FROM meta WHERE name = 'surroundings'")
        return
    listings = [(stored_path(one[0]), one[1], _names(*one)) for source in sources for one in source.profiles(env)]
    folders = {}
    for path in _folders(env, sources, listed):
        mtime_ns = _mtime(path)
        folders[stored_path(path)] = _UNSETTLED if mtime_ns > at_ns - SETTLED_NS else mtime_ns
    values = [(name, _value(env, name)) for name in sorted(env.asked)]
    for table, rows in (("variables", values), ("folders", list(folders.items())), ("listings", listings)):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names of the schema
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - names of the schema
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('surroundings', ?)", (__version__,))


def _folders(env: Watched, sources: Sequence[Source], listed: Iterable[Log | Problem]) -> Iterator[str]:
    """All folders in which a log could be new, and where packages with sources of their own are installed."""
    logs = {item.path for item in listed}
    for source in sources:
        for place in source.locate(env):
            if place not in logs:
                yield place
            for folder, folders, _ in os.walk(place):
                yield from (os.path.join(folder, name) for name in folders)
            logs.discard(place)
    yield from {os.path.dirname(path) for path in logs}
    yield from (path for path in sys.path if path.endswith("-packages"))


def _value(env: Mapping[str, str], name: str) -> str | bytes | None:
    return stored_path(env[name]) if name in env else None


def _mtime(path: str | bytes) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return _ABSENT


def _names(folder: str | bytes, prefix: str) -> str:
    """What is in a folder under a name that begins so."""
    try:
        names = os.listdir(os.fsdecode(folder))
        return "/".join(sorted(ascii(name) for name in names if name.startswith(prefix)))
    except OSError:
        return ""
