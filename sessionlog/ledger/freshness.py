"""Freshness: whether a ledger is up to date: a stat per log and a time per folder, without listing logs.

A sync stores which places it has searched, and the mtimes of the folders in which a log could be new, of those with
packages, and of the price list. While these are unchanged, no log is new or gone, and one stat per log shows whether it
has grown. A folder that changed a moment ago is not trusted, because a second change may leave the same mtime.
"""

from __future__ import annotations

import os
import sys
from time import time_ns

from sessionlog._version import __version__
from sessionlog.ledger.identity import STABLE_AFTER_NS, are_sidecars_unchanged, stored_path
from sessionlog.sources.places import IN_WORKING_FOLDER, searched

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from sessionlog.errors import Problem
    from sessionlog.sources.protocol import Log

    ChangedLog = tuple[str | bytes, str]
    """(path as stored, source's id)."""

_ABSENT, _RECENT = -1, -2
_WITH_OTHERS = "others "
_PRICES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "prices.json.gz")


def changed_logs(connection: sqlite3.Connection, env: Mapping[str, str], *, most: int) -> list[ChangedLog] | None:
    """Return the logs whose state is not that of the last sync.

    None if there are more than `most`, or if a log could be new or gone: then logs have to be listed.
    """
    ask = connection.execute
    known = ask("SELECT value FROM meta WHERE name = 'snapshot'").fetchone()
    if known is None or known[0] != _searched_text(env, has_others=known[0].startswith(_WITH_OTHERS)):
        return None
    if any(_mtime(path) != mtime_ns for path, mtime_ns in ask("SELECT path, mtime_ns FROM folders")):
        return None
    if ask("SELECT 1 FROM files WHERE missing = 3 LIMIT 1").fetchone():
        return None
    changed: list[ChangedLog] = []
    try:
        for path, *looks, beside, settled, source in ask(
            "SELECT path, ctime_ns, mtime_ns, size, inode, device, beside, settled, source FROM files WHERE NOT missing"
        ):
            now = os.stat(path)
            if (
                not settled
                or [now.st_ctime_ns, now.st_mtime_ns, now.st_size, now.st_ino, now.st_dev] != looks
                or (beside and not are_sidecars_unchanged(beside))
            ):
                changed.append((path, source))
                if len(changed) > most:
                    return None
    except OSError:
        return None
    return changed


def _searched_text(env: Mapping[str, str], *, has_others: bool) -> str:
    """Return what decides where logs are looked for, and by what: version, installed packages, and places."""
    places = list(_lasting_places(env))
    if has_others:
        from sessionlog.sources.registry import other_sources

        places += [place for source in other_sources().sources for place in source.locate(env)]
    return f"{_WITH_OTHERS if has_others else ''}{(__version__, _package_folders(), places)!a}"


class Snapshot:
    """The places and folders of a sync, read before logs are listed, so that the next sync sees later changes.

    Attributes:
        sources: The sources whose logs have to be listed.
        places: All paths where logs may be, existing or not.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        """Read the mtimes of places, of folders in which a log could be new, of packages and of the price list."""
        from sessionlog.sources.registry import all_places, other_sources, sources_there

        self._text = _searched_text(env, has_others=bool(other_sources().sources))
        self._stable_before_ns = time_ns() - STABLE_AFTER_NS
        self._mtimes = {path: self._mtime(path) for path in (*_lasting_places(env), *_package_folders(), _PRICES)}
        self.sources = sources_there(env)  # after that: of an agent that comes meanwhile the place is new next time
        self.places = all_places(env)
        self._mtimes |= {path: self._mtime(path) for path in self._folders(env)}

    def _folders(self, env: Mapping[str, str]) -> Iterator[str]:
        for source in self.sources:
            for place in source.locate(env):
                if source.id not in IN_WORKING_FOLDER or _mtime(place) != _ABSENT:
                    yield from source.folders(place)

    def _mtime(self, path: str) -> int:
        mtime_ns = _mtime(path)
        return _RECENT if mtime_ns > self._stable_before_ns else mtime_ns

    def write(self, connection: sqlite3.Connection, listed: Sequence[Log | Problem]) -> None:
        """Store the snapshot, without the logs that were found: `files` has their states."""
        if any(hasattr(item, "kind") for item in listed):  # a place that cannot be listed is reported every time
            connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
            return
        logs = {item.path for item in listed}
        odd = {os.path.dirname(path) for path in logs - self._mtimes.keys()} - self._mtimes.keys()
        mtimes = self._mtimes | {path: self._mtime(path) for path in odd}
        rows = [(stored_path(path), mtime_ns) for path, mtime_ns in mtimes.items() if path not in logs]
        connection.execute("DELETE FROM folders")
        connection.executemany("INSERT INTO folders VALUES (?, ?)", rows)
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('snapshot', ?)", (self._text,))


def _lasting_places(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the places of built-in sources; one in the working folder, which may be another each time, if it exists."""
    for source_id, places in searched(env).items():
        yield from (place for place in places if source_id not in IN_WORKING_FOLDER or _mtime(place) != _ABSENT)


def _package_folders() -> list[str]:
    return [path for path in sys.path if path.endswith("-packages")]


def _mtime(path: str | bytes) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return _ABSENT
