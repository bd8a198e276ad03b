"""Opening logs and settings for reading: regular files only, with one kind of error that names the file."""

from __future__ import annotations

import io
import os
import stat

from sessionlog.files.descriptors import BUFFER, LOG_FLAGS, open_flags
from sessionlog.files.paths import stat_path
from sessionlog.files.urls import is_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO, TypeVar

    _T = TypeVar("_T")

_TO_READ = open_flags(os.O_RDONLY, *LOG_FLAGS)


def open_log(path: str, *, buffer: int = BUFFER) -> BinaryIO:
    """Open a regular file for reading; devices, pipes and other people's links are refused.

    Args:
        path: The file.
        buffer: Bytes to read at once; 0 for an unbuffered file.

    Raises:
        LogNotReadable: Missing, not a regular file, a link to another user's file, or no permission. Reading the file
            raises it too, where the system fails.
    """
    if "://" in path and is_url(path):
        from sessionlog.files import remote

        remote_file: Any = remote.open_object(path)
        remote_file.exactly = not buffer
        file: BinaryIO = io.BufferedReader(remote_file, buffer) if buffer else remote_file
        return file
    try:
        link = os.lstat(path)
        fd = os.open(path, _TO_READ)
    except (OSError, ValueError) as error:
        raise _not_readable(path, reason_of(error)) from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and (not stat.S_ISLNK(link.st_mode) or status.st_uid == link.st_uid):
        raw = _LogReader(fd)
        raw.name = path
        return io.BufferedReader(raw, buffer) if buffer else raw
    os.close(fd)
    regular = stat.S_ISREG(status.st_mode)
    raise _not_readable(path, "a link to a file of another user" if regular else "not a regular file")


def _not_readable(path: str, reason: str) -> Exception:
    from sessionlog.errors import LogNotReadable

    return LogNotReadable(f"{path}: {reason}")


class _LogReader(io.FileIO):
    """A file that raises `LogNotReadable` with its path: one unreadable log must not fail the whole command."""

    name: str

    def readinto(self, buffer: Any, /) -> int:
        return self._named(super().readinto, buffer)

    def read(self, size: int | None = -1, /) -> bytes:
        return self._named(super().read, size)

    def readall(self) -> bytes:
        return self._named(super().readall)

    def _named(self, read: Callable[..., _T], *arguments: Any) -> _T:
        try:
            return read(*arguments)
        except OSError as error:
            raise _not_readable(self.name, reason_of(error)) from error


def reason_of(error: Exception) -> str:
    """Return in lower-case words why the operating system refused."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def why_absent(path: str) -> str | None:
    """Return why nothing can be seen at a path; "" if nothing is there, None if something is."""
    if is_url(path):
        return None if stat_path(path) is not None else ""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ""
    except OSError as error:
        return reason_of(error)
    return None


def read_small(path: str, limit: int = 1 << 20) -> bytes | None:
    """Return the bytes of a small file such as config.toml; None when it does not exist."""
    if stat_path(path) is None:
        return None
    with open_log(path, buffer=0) as file:
        return file.read(limit)


def stat_open(file: BinaryIO) -> os.stat_result:
    """Return the status of an open file."""
    name = getattr(file, "name", "")
    status = stat_path(name) if isinstance(name, str) and is_url(name) else None
    return os.fstat(file.fileno()) if status is None else status
