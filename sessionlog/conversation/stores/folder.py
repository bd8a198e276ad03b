"""Folder: the files of a FileStore, its lock and its counter.

Files are listed by the version that stands at their beginning; what does not begin like ours is never counted, listed,
replaced or removed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sessionlog import files
from sessionlog.errors import InvalidHistory, InvalidSessionId, SessionNotSaved

ENDING = ".json"
END = b"}}\n"
"""How a whole file ends: the session's brace, the file's, and a newline."""

WAIT_SECONDS = 10.0
"""How long a save waits for others; each of theirs takes milliseconds."""

_LOCK, _COUNTER = ".lock", ".counter"
_HEAD = re.compile(rb'\{"schema":"sessionlog\.saved/1","version":(\d{1,18}),')
_HEAD_LENGTH = 64
_LAST_VERSION = 10**18 - 1  # the largest that `_HEAD` takes
_DAMAGED = 10**17  # no counter has counted so far
_UNFINISHED = re.compile(r"\.(.+\.json|\.counter)\.[a-z0-9_]{8}")


class Folder:
    """Where a FileStore keeps its files.

    Attributes:
        path: Absolute.
    """

    __slots__ = ("_heads", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._heads: dict[str, tuple[tuple[int, int, int], int | None]] = {}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder's lock, making the folder if there is none.

        Raises:
            OSError: It cannot be made or written to, or others keep it locked.
        """
        for parent in files.make_directories(self.path):
            files.sync_directory(parent)
        file = files.AppendFile(self.path, _LOCK)
        try:
            locked = files.lock(file.fd, WAIT_SECONDS)
            if not locked and files.fcntl is not None:
                raise TimeoutError(f"{_LOCK} is kept locked by others, or this file system knows no locks")
            try:
                yield
            finally:
                if locked:
                    files.unlock(file.fd)
        finally:
            file.close()

    def version_at(self, path: str) -> int | None:
        """The version of the file that a save would replace, None if there is none.

        Raises:
            InvalidHistory: It is half written, or none of ours.
            SessionNotSaved: It is a link.
            LogNotReadable: It is no regular file, or may not be read.
        """
        if not os.path.lexists(path):
            return None
        if os.path.islink(path):
            raise SessionNotSaved(f"{path}: not saved: it is a link; put the file itself in its place")
        with files.open_log(path) as file:
            head = _HEAD.match(file.read(_HEAD_LENGTH))
            file.seek(-min(len(END), files.stat_open(file).st_size), os.SEEK_END)
            whole = file.read() == END
        if head is None or not whole:
            flaw = "half written" if head else "not a session saved by this version of sessionlog"
            raise InvalidHistory(f"{path}: the file there is {flaw}; it is left as it is: move it away to save")
        return int(head[1])

    def next_version(self, stored: int) -> int:
        """Count up, under the lock. A counter that was lost or damaged is found again in the files.

        Raises:
            SessionNotSaved: The number would be too large to be read again.
        """
        path = os.path.join(self.path, _COUNTER)
        counter = (files.read_small(path, 32) or b"").strip()
        last = int(counter) if counter.isdigit() and int(counter) < _DAMAGED else self._last_version()
        version = max(last, stored) + 1
        if version > _LAST_VERSION:
            raise SessionNotSaved(
                f"{self.path}: not saved: there is no version after {version - 1}; use another folder"
            )
        files.replace_file(path, [b"%d\n" % version])  # before the session: a number is never given twice
        return version

    def _last_version(self) -> int:
        return max((version for version, _, _ in self.saves()), default=0)

    def check_case(self, session_id: str) -> None:
        """Refuse a new id that is another's file on some file systems.

        Raises:
            InvalidSessionId: It differs from that of a file in case only.
        """
        name = session_id + ENDING
        twin = next((entry for entry in os.listdir(self.path) if entry.casefold() == name.casefold()), name)
        if twin != name:
            raise InvalidSessionId(
                f"session id {session_id!r} differs from {twin.removesuffix(ENDING)!r} in case only, and on some file "
                "systems they are one file; choose another"
            )

    def saves(self) -> list[tuple[int, int, str]]:
        """(version, when it was saved in nanoseconds, file name) of our files, the most recently saved first."""
        saves = []
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.endswith(ENDING) and not entry.name.startswith("."):
                    with suppress(OSError):  # deleted meanwhile, or none of ours
                        status = entry.stat(follow_symlinks=False)
                        version = self._version_of(entry, status)
                        if version is not None:
                            saves.append((version, status.st_mtime_ns, entry.name))
        return sorted(saves, reverse=True)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files of ours."""
        for name in names:
            os.unlink(os.path.join(self.path, name))
            self._heads.pop(name, None)

    def sweep(self) -> None:
        """Under the lock, remove what killed processes left: no other process is writing."""
        with os.scandir(self.path) as entries:
            for entry in entries:
                if _UNFINISHED.fullmatch(entry.name):
                    os.unlink(entry.path)

    def _version_of(self, entry: os.DirEntry[str], status: os.stat_result) -> int | None:
        """A file's version; only files that are new since the last look are opened."""
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
