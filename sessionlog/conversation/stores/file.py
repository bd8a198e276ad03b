"""FileStore: one JSON file per session in a folder of its own.

A file is replaced atomically, and only by a saver that has seen its version. One lock and one counter serve the whole
folder: a save takes milliseconds and happens once a turn, the order of saves does not depend on clocks, and clean-up
never meets a half-done save. Files are listed by the version at their beginning; a file with another beginning is never
counted, listed, replaced or removed.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from typing import Any

from sessionlog import files
from sessionlog.conversation.stores.json_text import from_json, to_json
from sessionlog.conversation.stores.protocol import Saved, Versions
from sessionlog.errors import InvalidHistory, InvalidSessionId, LogNotReadable, SessionNotSaved
from sessionlog.events.times import format_time
from sessionlog.logger.ids import check_session_id

SCHEMA = "sessionlog.saved/1"
"""The schema of a file; the saved session is its `data`."""

LARGEST = 256 << 20
"""The largest file in bytes: reading a session takes several times as much memory."""

_HEAD_SPACE = 1024  # more than what surrounds the session in its file
ENDING = ".json"
END = b"}}\n"
"""The end of a complete file: the session's brace, the file's, and a newline."""

WAIT_SECONDS = 10.0
"""How long a save waits for other savers; each save takes milliseconds."""

_LOCK, _COUNTER = ".lock", ".counter"
_HEAD = re.compile(rb'\{"schema":"sessionlog\.saved/1","version":(\d{1,18}),')
_HEAD_LENGTH = 64
_LAST_VERSION = 10**18 - 1  # the largest that `_HEAD` matches
_DAMAGED = 10**17  # no real counter is as high
_UNFINISHED = re.compile(r"\.(.+\.json|\.counter)\.[a-z0-9_]{8}")


class FileStore:
    """Keeps sessions as files. Several processes and threads may share the folder.

    Args:
        directory: The folder; created 0700 at the first save, its files are 0600.
        max_age: Seconds, or a timedelta: each save removes sessions that were saved longer ago. None keeps all.
        max_count: The number of sessions to keep, the newest ones; None keeps all.
        clock: Returns nanoseconds since 1970; compared with the files' times.

    Raises:
        TypeError: `max_age` or `max_count` is not a number.
        ValueError: `max_age` or `max_count` would keep nothing, or is infinite.
    """

    __slots__ = ("_clock", "_directory", "_heads", "_is_swept", "_max_age", "_max_count", "_versions")

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_age: float | timedelta | None = None,
        max_count: int | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        seconds = max_age.total_seconds() if isinstance(max_age, timedelta) else max_age
        _check_limit("max_age", seconds, (int, float), "seconds, or a timedelta")
        _check_limit("max_count", max_count, (int,), "a whole number")
        self._directory = os.path.abspath(os.fspath(directory))
        self._heads: dict[str, tuple[tuple[int, int, int], int | None]] = {}
        self._max_age, self._max_count, self._clock = seconds, max_count, clock
        self._versions = Versions()
        self._is_swept = False

    @property
    def directory(self) -> str:
        """The folder, as an absolute path."""
        return self._directory

    def save(self, session_id: str, data: Mapping[str, Any]) -> int:
        """Replace a session's file and return its version; then remove old files as `max_age` and `max_count` state.

        Raises:
            InvalidSessionId: The id cannot be a file name, or differs from another's in case only.
            InvalidHistory: The data is not JSON or too large to be loaded again, or the existing file is not ours.
            StaleSession: Another writer has saved the session meanwhile.
            SessionNotSaved: The file cannot be written, or others keep the folder locked; it is unchanged.
        """
        path = self._path(session_id)
        text = to_json(session_id, data).encode()
        if len(text) > LARGEST - _HEAD_SPACE:
            raise InvalidHistory(f"session {session_id!r}: {_too_large(len(text))}; nothing was saved")
        with self._writing(path, "not saved"):
            stored = self._version_at(path)
            self._versions.check(session_id, data, stored)
            if stored is None:
                self._check_case(session_id)
            version = self._next_version(stored or 0)
            self._versions.start_save(session_id, data, version)
            files.replace_file(path, [self._head(session_id, version), text, b"}\n"])
            self._versions.finish_save(session_id, data, version)
            with suppress(OSError):  # the session is saved; the next save cleans up
                self._clean_after(session_id)
        return version

    def load(self, session_id: str) -> Saved | None:
        """Return a session; None if there is none with this id.

        Raises:
            InvalidSessionId: The id cannot be a file name.
            InvalidHistory: The file is half written, too large, or not ours; it is left unchanged.
            LogNotReadable: It is not a regular file, or may not be read.
        """
        path = self._path(session_id)
        try:
            with files.open_log(path) as file:
                size = files.stat_open(file).st_size
                if size > LARGEST:
                    raise InvalidHistory(f"{path}: {_too_large(size)}; it is left as it is")
                saved = from_json(file.read(LARGEST), path)
        except LogNotReadable as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError) and not os.path.islink(path):
                return None
            raise
        schema, version, data = saved.get("schema"), saved.get("version"), saved.get("data")
        if schema != SCHEMA or type(version) is not int or not isinstance(data, dict):
            raise InvalidHistory(f"{path}: not a session saved by this version of sessionlog (schema {schema!r})")
        if saved.get("session_id") != session_id:
            raise InvalidHistory(f"{path}: it is session {saved.get('session_id')!r}; rename it, or load that id")
        return self._versions.finish_load(session_id, data, version)

    def delete(self, session_id: str) -> bool:
        """Remove a session's file, whatever its content; return whether there was one.

        Raises:
            InvalidSessionId: The id cannot be a file name.
            SessionNotSaved: The file cannot be removed.
        """
        path = self._path(session_id)
        if not os.path.lexists(path):
            return False
        with self._writing(path, "not deleted"):
            self._versions.forget(session_id)
            try:
                self._remove([session_id + ENDING])
            except FileNotFoundError:
                return False
            files.sync_directory(self.directory)
        return True

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions, the most recently saved first; other files are ignored.

        Raises:
            LogNotReadable: The folder may not be read.
        """
        try:
            return [name.removesuffix(ENDING) for _, _, name in self._saves()]
        except OSError as error:
            raise LogNotReadable(f"{self.directory}: {files.reason_of(error)}") from error

    def exists(self, session_id: str) -> bool:
        """Whether there is a file with this id."""
        return os.path.lexists(self._path(session_id))

    def clean(self) -> list[str]:
        """Remove the sessions beyond `max_age` and `max_count`, and temporary files; return the sessions' ids.

        Raises:
            SessionNotSaved: They cannot be removed.
        """
        if not os.path.isdir(self.directory):
            return []
        with self._writing(self.directory, "not cleaned"):
            self._sweep()
            return self._remove_old(None)

    def _path(self, session_id: str) -> str:
        return os.path.join(self.directory, check_session_id(session_id) + ENDING)

    def _head(self, session_id: str, version: int) -> bytes:
        head = {"schema": SCHEMA, "version": version, "session_id": session_id, "saved_at": format_time(self._clock())}
        return json.dumps(head, separators=(",", ":"))[:-1].encode() + b',"data":'

    @contextmanager
    def _writing(self, path: str, what: str) -> Iterator[None]:
        """Hold the folder's lock; an OSError becomes a SessionNotSaved that names the file."""
        try:
            with self._locked():
                yield
        except SessionNotSaved:
            raise
        except LogNotReadable as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise SessionNotSaved(f"{path}: {what}: {reason}; it is unchanged") from error
        except OSError as error:
            raise SessionNotSaved(f"{path}: {what}: {files.reason_of(error)}; it is unchanged") from error

    def _clean_after(self, session_id: str) -> None:
        if not self._is_swept:
            self._sweep()
            self._is_swept = True
        if self._max_age is not None or self._max_count is not None:
            self._remove_old(session_id + ENDING)

    def _remove_old(self, just_saved: str | None) -> list[str]:
        """Remove the sessions beyond `max_age` and `max_count`, but never the one just saved; return their ids."""
        oldest = None if self._max_age is None else self._clock() - int(self._max_age * 1e9)
        old = [
            name
            for rank, (_, saved_ns, name) in enumerate(self._saves())
            if name != just_saved
            and (
                (oldest is not None and saved_ns < oldest) or (self._max_count is not None and rank >= self._max_count)
            )
        ]
        self._remove(old)
        for name in old:
            self._versions.forget(name.removesuffix(ENDING))
        return [name.removesuffix(ENDING) for name in old]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock; create the folder if it is missing.

        Raises:
            OSError: The folder cannot be created or written to, or others keep it locked.
        """
        for parent in files.make_directories(self._directory):
            files.sync_directory(parent)
        with closing(files.AppendFile(self._directory, _LOCK)) as file:
            locked = files.lock(file.fd, WAIT_SECONDS)
            if not locked and files.fcntl is not None:
                raise TimeoutError(f"{_LOCK} is kept locked by others, or this file system has no locks")
            try:
                yield
            finally:
                if locked:
                    files.unlock(file.fd)

    def _version_at(self, path: str) -> int | None:
        """The version of the file that a save would replace; None if there is none.

        Raises:
            InvalidHistory: The file is half written, or not ours.
            SessionNotSaved: It is a link.
            LogNotReadable: It is not a regular file, or may not be read.
        """
        if not os.path.lexists(path):
            return None
        if os.path.islink(path):
            raise SessionNotSaved(f"{path}: not saved: it is a link; put the file itself in its place")
        with files.open_log(path) as file:
            head = _HEAD.match(file.read(_HEAD_LENGTH))
            file.seek(-min(len(END), files.stat_open(file).st_size), os.SEEK_END)
            is_complete = file.read() == END
        if head is None or not is_complete:
            problem = "half written" if head else "not a session saved by this version of sessionlog"
            raise InvalidHistory(f"{path}: the file there is {problem}; it is left as it is: move it away to save")
        return int(head[1])

    def _next_version(self, stored: int) -> int:
        """Count up, under the lock. A lost or damaged counter is restored from the files.

        Raises:
            SessionNotSaved: The number would be too large to read back.
        """
        path = os.path.join(self._directory, _COUNTER)
        counter = (files.read_small(path, 32) or b"").strip()
        is_counted = counter.isdigit() and int(counter) < _DAMAGED
        last = int(counter) if is_counted else max((version for version, _, _ in self._saves()), default=0)
        version = max(last, stored) + 1
        if version > _LAST_VERSION:
            raise SessionNotSaved(
                f"{self._directory}: not saved: there is no version after {version - 1}; use another folder"
            )
        files.replace_file(path, [b"%d\n" % version])  # before the session, so that no number is used twice
        return version

    def _check_case(self, session_id: str) -> None:
        """Refuse a new id that would be another session's file on some file systems.

        Raises:
            InvalidSessionId: It differs from an existing id in case only.
        """
        name = session_id + ENDING
        existing = next((entry for entry in os.listdir(self._directory) if entry.casefold() == name.casefold()), name)
        if existing != name:
            raise InvalidSessionId(
                f"session id {session_id!r} differs from {existing.removesuffix(ENDING)!r} in case only, and some file "
                "systems would use one file for both; choose another"
            )

    def _saves(self) -> list[tuple[int, int, str]]:
        """(version, time of the save in nanoseconds, file name) of our files, the most recently saved first."""
        saves = []
        with suppress(FileNotFoundError), os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.endswith(ENDING) and not entry.name.startswith("."):
                    with suppress(OSError):  # deleted meanwhile, or not ours
                        status = entry.stat(follow_symlinks=False)
                        version = self._version_of(entry, status)
                        if version is not None:
                            saves.append((version, status.st_mtime_ns, entry.name))
        return sorted(saves, reverse=True)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            os.unlink(os.path.join(self._directory, name))
            self._heads.pop(name, None)

    def _sweep(self) -> None:
        """Remove temporary files of killed processes; under the lock, no other process is writing."""
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if _UNFINISHED.fullmatch(entry.name):
                    os.unlink(entry.path)

    def _version_of(self, entry: os.DirEntry[str], status: os.stat_result) -> int | None:
        """A file's version; only files that changed since the last call are opened."""
        if not stat.S_ISREG(status.st_mode):
            return None
        identity = status.st_ino, status.st_mtime_ns, status.st_size
        known = self._heads.get(entry.name)
        if known is not None and known[0] == identity:
            return known[1]
        with files.open_log(entry.path) as file:
            head = _HEAD.match(file.read(_HEAD_LENGTH))
        version = int(head[1]) if head else None
        self._heads[entry.name] = identity, version
        return version


def _too_large(size: int) -> str:
    return f"{size:,} bytes are too many for a session: at most {LARGEST:,} can be loaded"


def _check_limit(name: str, value: Any, kinds: tuple[type, ...], what: str) -> None:
    if value is None:
        return
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number:
        raise TypeError(f"{name} is {type(value).__name__}; it is {what}, or None, which keeps all")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name}={value!r} would keep {'all' if value > 0 else 'no session'}; None keeps all")
