"""What is done with open descriptors: opening flags, reading at an offset, syncing, closing."""

from __future__ import annotations

import errno
import os

from sessionlog.files.file_lock import fcntl

BUFFER = 1 << 20
LOG_FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY")  # opening a pipe must not wait for its other end


def open_flags(base: int, *names: str) -> int:
    """Return the flags of `os.open`, with those of the names that this platform has."""
    for name in names:
        base |= getattr(os, name, 0)
    return base


def read_at(fd: int, start: int, count: int) -> bytes:
    """Return up to `count` bytes of an open file from the offset `start` on."""
    if hasattr(os, "pread"):
        return os.pread(fd, count, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, count)


def read_tail(fd: int, size: int, count: int) -> bytes:
    """Return the last `count` bytes of an open file of `size` bytes."""
    start = max(0, size - count)
    return read_at(fd, start, size - start)


def end_of_lines(fd: int, size: int) -> int:
    """Return where the last whole line of an open file of `size` bytes ends."""
    while size:
        tail = read_tail(fd, size, BUFFER)
        if b"\n" in tail:
            return size - len(tail) + tail.rindex(b"\n") + 1
        size -= len(tail)
    return 0


def sync(fd: int) -> None:
    """Sync a file's data to the disk."""
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
    if full is None or fcntl is None:
        getattr(os, "fdatasync", os.fsync)(fd)
    else:
        fcntl.fcntl(fd, full)


def sync_directory(path: str) -> None:
    """Sync a folder's entries to the disk, so that a new file's name survives a power loss."""
    if hasattr(os, "O_DIRECTORY"):
        fd = os.open(path, open_flags(os.O_RDONLY, "O_DIRECTORY", "O_CLOEXEC"))
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that syncs no folders
                raise
        finally:
            close(fd)


def duplicate(fd: int) -> int:
    """Return a second descriptor of the same open file, for a thread that syncs while the writer continues."""
    return os.dup(fd)


def close(fd: int) -> None:
    """Close a descriptor and ignore errors."""
    try:
        os.close(fd)
    except Exception:  # noqa: BLE001, S110 - it is closed, or the system closes it
        pass
