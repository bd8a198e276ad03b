"""FileStore: one JSON file per session in a folder of one's own; any editor can read it.

A file is replaced whole or not at all, and only by who has seen the version that it has. One lock and one counter serve
the whole folder: saving takes milliseconds and happens once a turn, and so the order of saves is known whatever clocks
say, and clean-up never meets a save half done.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from sessionlog import files
from sessionlog.conversation.stores.folder import ENDING, Folder
from sessionlog.conversation.stores.json_text import from_json, to_json
from sessionlog.conversation.stores.protocol import Saved, Versions
from sessionlog.errors import InvalidHistory, LogNotReadable, SessionNotSaved
from sessionlog.events.times import format_time
from sessionlog.logger.ids import check_session_id

SCHEMA = "sessionlog.saved/1"
"""The form of a file; what was saved is its `data`, untouched."""

LARGEST = 256 << 20
"""Bytes of a file: reading a session takes several times as much memory."""

_HEAD_SPACE = 1024  # more than what stands before and behind the session in its file


class FileStore:
    """Keeps sessions as files. Several processes and threads may share the folder.

    Args:
        directory: Where; made 0700 at the first save, its files are 0600.
        max_age: Sessions that were saved longer ago are removed at a save: seconds, or a timedelta. None keeps all.
        max_count: How many sessions are kept at most, the newest; None keeps all.
        clock: Nanoseconds since 1970: how old is a file?

    Raises:
        TypeError: `max_age` or `max_count` is no number.
        ValueError: `max_age` or `max_count` would keep nothing, or is endless.
    """

    __slots__ = ("_clock", "_folder", "_is_swept", "_max_age", "_max_count", "_versions")

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
        self._folder = Folder(os.path.abspath(os.fspath(directory)))
        self._max_age, self._max_count, self._clock = seconds, max_count, clock
        self._versions = Versions()
        self._is_swept = False

    @property
    def directory(self) -> str:
        """The folder, as an absolute path."""
        return self._folder.path

    def save(self, session_id: str, data: Mapping[str, Any]) -> int:
        """Replace a session's file; return its version. Then old files are removed, if the store shall.

        Raises:
            InvalidSessionId: The id can be no file name, or differs from another's in case only.
            InvalidHistory: It is not JSON or too large to be loaded again, or the file in its place is none of ours.
            StaleSession: Somebody else has saved it since.
            SessionNotSaved: It cannot be written, or others keep the folder locked; the file is as it was.
        """
        path = self._path(session_id)
        text = to_json(session_id, data).encode()
        if len(text) > LARGEST - _HEAD_SPACE:
            raise InvalidHistory(f"session {session_id!r}: {_too_large(len(text))}; nothing was saved")
        with self._changing(path, "not saved"):
            stored = self._folder.version_at(path)
            self._versions.check(session_id, data, stored)
            if stored is None:
                self._folder.check_case(session_id)
            version = self._folder.next_version(stored or 0)
            self._versions.trying(session_id, data, version)
            files.replace_file(path, [self._head(session_id, version), text, b"}\n"])
            self._versions.saved(session_id, data, version)
            with suppress(OSError):  # it is saved; what is old can go another time
                self._clean_after(session_id)
        return version

    def load(self, session_id: str) -> Saved | None:
        """Return a session, None if there is none of this id.

        Raises:
            InvalidSessionId: The id can be no file name.
            InvalidHistory: The file is half written, too large, or none of ours; it is left as it is.
            LogNotReadable: It is no regular file, or may not be read.
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
        return self._versions.loaded(session_id, data, version)

    def delete(self, session_id: str) -> bool:
        """Remove a session's file, whatever is in it; whether there was one.

        Raises:
            InvalidSessionId: The id can be no file name.
            SessionNotSaved: It cannot be removed.
        """
        path = self._path(session_id)
        if not os.path.lexists(path):
            return False
        with self._changing(path, "not deleted"):
            self._versions.forget(session_id)
            try:
                self._folder.remove([session_id + ENDING])
            except FileNotFoundError:
                return False
            files.sync_directory(self.directory)
        return True

    def list_sessions(self) -> list[str]:
        """Return the ids of all sessions, the most recently saved first; files that are none of ours are left out.

        Raises:
            LogNotReadable: The folder may not be read.
        """
        try:
            return [name.removesuffix(ENDING) for _, _, name in self._folder.saves()]
        except OSError as error:
            raise LogNotReadable(f"{self.directory}: {files.reason_of(error)}") from error

    def exists(self, session_id: str) -> bool:
        """Whether there is a file of this id."""
        return os.path.lexists(self._path(session_id))

    def clean(self) -> list[str]:
        """Remove the sessions that are too old or too many, and what killed processes left; return their ids.

        Raises:
            SessionNotSaved: They cannot be removed.
        """
        if not os.path.isdir(self.directory):
            return []
        with self._changing(self.directory, "not cleaned"):
            self._folder.sweep()
            return self._remove_old(None)

    def _path(self, session_id: str) -> str:
        return os.path.join(self.directory, check_session_id(session_id) + ENDING)

    def _head(self, session_id: str, version: int) -> bytes:
        head = {"schema": SCHEMA, "version": version, "session_id": session_id, "saved_at": format_time(self._clock())}
        return json.dumps(head, separators=(",", ":"))[:-1].encode() + b',"data":'

    @contextmanager
    def _changing(self, path: str, what: str) -> Iterator[None]:
        """Be alone in the folder, and say which file the system refused."""
        try:
            with self._folder.alone():
                yield
        except SessionNotSaved:
            raise
        except LogNotReadable as error:
            flaw = str(error).removeprefix(f"{path}: ")
            raise SessionNotSaved(f"{path}: {what}: {flaw}; it is as it was") from error
        except OSError as error:
            raise SessionNotSaved(f"{path}: {what}: {files.reason_of(error)}; it is as it was") from error

    def _clean_after(self, session_id: str) -> None:
        if not self._is_swept:
            self._folder.sweep()
            self._is_swept = True
        if self._max_age is not None or self._max_count is not None:
            self._remove_old(session_id + ENDING)

    def _remove_old(self, just_saved: str | None) -> list[str]:
        """Remove what is too old or too many, but never what was just saved."""
        oldest = None if self._max_age is None else self._clock() - int(self._max_age * 1e9)
        old = [
            name
            for place, (_, saved_ns, name) in enumerate(self._folder.saves())
            if name != just_saved
            and (
                (oldest is not None and saved_ns < oldest) or (self._max_count is not None and place >= self._max_count)
            )
        ]
        self._folder.remove(old)
        for name in old:
            self._versions.forget(name.removesuffix(ENDING))
        return [name.removesuffix(ENDING) for name in old]


def _too_large(size: int) -> str:
    return f"{size:,} bytes are too many for a session: {LARGEST:,} can be loaded"


def _check_limit(name: str, value: Any, kinds: tuple[type, ...], what: str) -> None:
    if value is None:
        return
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number:
        raise TypeError(f"{name} is {type(value).__name__}; it is {what}, or None, which keeps all")
    if not 0 < value < float("inf"):
        raise ValueError(f"{name}={value!r} would keep {'all' if value > 0 else 'no session'}; None keeps all")
