"""THE seam to the operating system: the only module that opens, appends, locks, syncs, renames.

Faults are injected here in tests (`files.os` and `files.fcntl` are replaced), and everything the promises say about
files is kept here: regular files only, no symlink followed when writing, 0600 files in 0700 folders, one write(2) per
line, an unfinished line never glued to the next one.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from sessionlog.errors import LogNotReadable

fcntl: Any
try:
    import fcntl
except ImportError:  # no POSIX locks: appending works, several writers per file are not protected
    fcntl = None

BUFFER = 1 << 20
LOCK_SECONDS = 0.05
UNLOCKED_SECONDS = 10.0
_TRY_EXCLUSIVE: int = getattr(fcntl, "LOCK_EX", 0) | getattr(fcntl, "LOCK_NB", 0)
_UNLOCK: int = getattr(fcntl, "LOCK_UN", 0)
_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")


class FileGoneError(OSError):
    """The open log has been deleted: nothing written to it can be found again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    """What tells one state of a file from another.

    Attributes:
        device: Device number.
        inode: File number on the device.
        size: Bytes.
        mtime_ns: Last change.
        mode: Type and permission bits.
        owner: User id, -1 where users have none.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    mode: int
    owner: int


def _optional(flag: str) -> int:
    value: int = getattr(os, flag, 0)
    return value


def _flags(base: int) -> int:
    for name in _FLAGS:
        base |= _optional(name)
    return base


# --- writing --------------------------------------------------------------------------------------------------------


def make_directories(path: str) -> None:
    """Make a folder and its missing parents, each 0700 (`os.makedirs` gives parents the umask's mode)."""
    missing: list[str] = []
    while path and not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


class AppendFile:
    """A log open at its end. `append` is the promise: whole lines, one write(2), nothing glued, nothing interleaved.

    The file is kept with its folder's descriptor: paths are resolved once, and a change of the folder's mtime is the
    sign that the file may have been deleted. Asking the file itself (fstat) before each write costs 1.3 times as much,
    for the kernel must then give every write a time of its own.

    Attributes:
        fd: The file's descriptor.
        size: Its length when it was opened, then after our last append.
        unlocked: The lock's holder did not answer; lines go in without the lock for a while.
    """

    __slots__ = ("_folder", "_folder_mtime", "_unlocked_until", "fd", "name", "size")

    def __init__(self, directory: str, name: str) -> None:
        """Open `directory/name`, creating it 0600.

        Raises:
            OSError: It cannot be opened, is not a regular file, or belongs to somebody else.
        """
        flags = _flags(os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.fd = self._folder = -1
        self.name = name
        self._folder_mtime = -1
        self._unlocked_until = 0.0
        try:
            if os.open in os.supports_dir_fd:
                self._folder = os.open(directory, os.O_RDONLY | _optional("O_DIRECTORY") | _optional("O_CLOEXEC"))
                self.fd = os.open(name, flags, 0o600, dir_fd=self._folder)
            else:
                self.fd = os.open(os.path.join(directory, name), flags, 0o600)
            self.size = _check_log(self.fd, name)
        except BaseException:
            self.close()
            raise

    @property
    def unlocked(self) -> bool:
        """Whether the last append had to do without the lock."""
        return self._unlocked_until > 0

    def append(self, line: bytes) -> None:
        """Append whole lines in one write.

        A previous writer's unfinished line is ended first (a blank line is legal, and that is the whole repair). A
        write that fails half-way is rolled back if the file is exactly as long as we made it; else the next append
        heals it.

        Raises:
            FileGoneError: The file was deleted; open it anew.
            OSError: Nothing of the lines is in the file, or only an unfinished piece of them.
        """
        fd = self.fd
        locked = False
        if fcntl is not None:
            try:
                fcntl.flock(fd, _TRY_EXCLUSIVE)  # inlined: the uncontended case is nearly every case
                locked = True
            except OSError:
                locked = self._lock_late()
        try:
            if self._folder < 0 or os.fstat(self._folder).st_mtime_ns != self._folder_mtime:
                self._check_exists()
            size = os.lseek(fd, 0, 2)
            if size != self.size or not locked:
                line = self._healed(line, size, locked)
            self.size = -1
            written = os.write(fd, line)
            if written != len(line):
                _finish(fd, line, written, size)
            self.size = size + len(line)
        finally:
            if locked:
                fcntl.flock(fd, _UNLOCK)
                self._unlocked_until = 0.0

    def _lock_late(self) -> bool:
        """Wait for the lock, but only once in ten seconds: a stopped holder must not slow every event down."""
        if self._unlocked_until and time.monotonic() < self._unlocked_until:
            return False
        if lock(self.fd):
            return True
        self._unlocked_until = time.monotonic() + UNLOCKED_SECONDS
        return False

    def _check_exists(self) -> None:
        if not os.fstat(self.fd).st_nlink:
            raise FileGoneError("the log was deleted while it was open")
        if self._folder >= 0:
            self._folder_mtime = os.fstat(self._folder).st_mtime_ns

    def _healed(self, line: bytes, size: int, locked: bool) -> bytes:
        """Others have written: begin a new line unless the file ends in a whole one and nobody can interfere."""
        if size and ((not locked and fcntl is not None) or _byte_before(self.fd, size) != b"\n"):
            return b"\n" + line
        return line

    def close(self) -> None:
        """Let go of both descriptors."""
        for fd in (self.fd, self._folder):
            if fd >= 0:
                close(fd)
        self.fd = self._folder = -1


def _check_log(fd: int, name: str) -> int:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{name} is not a regular file")
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    if user not in (0, status.st_uid):
        raise PermissionError(f"{name} belongs to user {status.st_uid}")
    if status.st_size == 0 and status.st_mode & 0o777 != 0o600 and hasattr(os, "fchmod"):
        os.fchmod(fd, 0o600)  # a umask may have taken bits away
    return status.st_size


def lock(fd: int, seconds: float = LOCK_SECONDS) -> bool:
    """Take the file's exclusive lock before a deadline; False when it cannot be had (a stopped holder, no locks)."""
    if fcntl is None:
        return False
    deadline = 0.0
    while True:
        try:
            fcntl.flock(fd, _TRY_EXCLUSIVE)
        except BlockingIOError:
            now = time.monotonic()
            deadline = deadline or now + seconds
            if now >= deadline:
                return False
            time.sleep(0.0005)
        except OSError:
            return False
        else:
            return True


def _finish(fd: int, line: bytes, written: int, size: int) -> None:
    """Write the rest after a short write, or take the piece back."""
    try:
        while written < len(line):
            written += os.write(fd, line[written:])
    except OSError:
        with suppress(OSError):
            if os.fstat(fd).st_size == size + written:
                os.ftruncate(fd, size)
        raise


def _byte_before(fd: int, offset: int) -> bytes:
    try:
        return os.pread(fd, 1, offset - 1)
    except AttributeError:  # Windows
        os.lseek(fd, offset - 1, os.SEEK_SET)
        return os.read(fd, 1)


def sync(fd: int) -> None:
    """Push the file's data to the disk."""
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
    if full is None or fcntl is None:
        getattr(os, "fdatasync", os.fsync)(fd)
    else:
        fcntl.fcntl(fd, full)


def sync_directory(path: str) -> None:
    """Push a folder's entries to the disk, so that a new file's name survives a power loss."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def duplicate(fd: int) -> int:
    """Return a second descriptor of the same open file, for a thread that syncs while the writer goes on."""
    return os.dup(fd)


def close(fd: int) -> None:
    """Close a descriptor; an error here has nothing left to lose."""
    with suppress(OSError):
        os.close(fd)


def read_tail(fd: int, size: int, count: int) -> bytes:
    """Return the last `count` bytes of an open file of `size` bytes."""
    start = max(0, size - count)
    if hasattr(os, "pread"):
        return os.pread(fd, size - start, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, size - start)


def case_twin(directory: str, name: str) -> str | None:
    """Return an entry that differs from `name` in case only: on some file systems they are one file."""
    folded = name.casefold()
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name != name and entry.name.casefold() == folded:
                return entry.name
    return None


def replace_file(path: str, pieces: Iterable[bytes], *, like: FileStat | None = None) -> None:
    """Write a file whole or not at all: same folder, synced, renamed over, folder synced."""
    import tempfile  # noqa: PLC0415 - 8 ms that a logger never needs

    folder, name = os.path.split(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(fd, "wb", BUFFER) as out:
            for piece in pieces:
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
            if like is not None and hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), like.mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(folder)


def append_private(path: str, pieces: Iterable[bytes]) -> None:
    """Append bytes to a 0600 file beside a log and sync it before returning."""
    file = AppendFile(*os.path.split(os.path.abspath(path)))
    try:
        for piece in pieces:
            file.append(piece)
        os.fsync(file.fd)
    finally:
        file.close()


def temporary_directory(prefix: str) -> str:
    """Make a private folder for a demonstration; the caller removes it with `remove_tree`."""
    import tempfile  # noqa: PLC0415 - 8 ms that a logger never needs

    return tempfile.mkdtemp(prefix=prefix)


# --- reading --------------------------------------------------------------------------------------------------------


def stat_path(path: str) -> FileStat | None:
    """Return the state of the file a path names, None when there is none."""
    try:
        return _file_stat(os.stat(path))
    except (OSError, ValueError):
        return None


def stat_open(file: BinaryIO) -> FileStat:
    """Return the state of an open file."""
    return _file_stat(os.fstat(file.fileno()))


def _file_stat(status: os.stat_result) -> FileStat:
    return FileStat(
        device=status.st_dev,
        inode=status.st_ino,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        mode=status.st_mode,
        owner=getattr(status, "st_uid", -1),
    )


def open_log(path: str) -> BinaryIO:
    """Open a regular file for reading, buffered; devices, pipes and other people's links are refused.

    Raises:
        LogNotReadable: Missing, not a regular file, a link to somebody else's file, or no permission.
    """
    try:
        link = os.lstat(path)
        fd = os.open(path, _flags(os.O_RDONLY) & ~_optional("O_NOFOLLOW"))
    except (OSError, ValueError) as error:
        raise LogNotReadable(f"{path}: {reason_of(error)}") from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise LogNotReadable(f"{path}: not a regular file")
    if stat.S_ISLNK(link.st_mode) and status.st_uid != link.st_uid:
        os.close(fd)
        raise LogNotReadable(f"{path}: a link to a file of another user")
    return os.fdopen(fd, "rb", BUFFER)


def reason_of(error: Exception) -> str:
    """Say in lower-case words why the operating system refused."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def read_small(path: str, limit: int = 1 << 20) -> bytes | None:
    """Return the bytes of a small file such as config.toml; None when it does not exist."""
    if stat_path(path) is None:
        return None
    with open_log(path) as file:
        return file.read(limit)


def real_path(path: str) -> str:
    """Return the absolute path with links resolved."""
    return os.path.realpath(path)
