"""Replacing a log while others write to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from sessionlog import files

TYPE_CHECKING = False  # as in files
if TYPE_CHECKING:
    from typing import BinaryIO

_ROUNDS = 8


def replace_log(path: str, pieces: Iterable[bytes], old: BinaryIO, end: int) -> None:
    """Replace a log by these pieces and by what `old`, the open log, has from `end` on; others may be writing to it.

    Writers are kept waiting only while the last lines are copied. One that does not wait any longer writes to the old
    file: what it wrote before it could know of the new one is taken over here, and later lines it repeats itself
    (`FileGoneError.lines`).

    Raises:
        BlockingIOError: A writer does not give the log's lock back.
        OSError: The new file cannot be written, or the log is another one by now; it is as it was.
    """
    temporary = files.write_beside(path, pieces, os.fstat(old.fileno()))
    try:
        new = os.open(temporary, files.open_flags(os.O_RDWR | os.O_APPEND, "O_CLOEXEC"))
    except BaseException:
        files.remove_file(temporary)
        raise
    try:
        files.lock(new)  # writers who open it find in it what they wrote before
        _replace_locked(path, temporary, old.fileno(), new, end)
    except BaseException:
        files.remove_file(temporary)
        raise
    finally:
        files.close(new)
    files.sync_directory(os.path.dirname(temporary))


def _replace_locked(path: str, temporary: str, old: int, new: int, end: int) -> None:
    if not files.lock(old):
        raise BlockingIOError(errno.EAGAIN, "a writer holds the lock")
    try:
        status = os.fstat(old)
        if files.identity_of(path) != (status.st_dev, status.st_ino) or status.st_size < end:
            raise OSError(errno.ESTALE, "the log was changed meanwhile")
        for _ in range(_ROUNDS):  # a sync takes so long that a writer may go on without the lock meanwhile
            grown = _take_over(old, new, end)
            if grown == end:
                break
            end = grown
            os.fsync(new)
        size = os.lseek(new, 0, 2)
        os.replace(temporary, path)
        late = b""
        while piece := files.read_at(old, end + len(late), files.BUFFER):
            late += piece
        others = files.read_at(new, size, os.lseek(new, 0, 2) - size)
        if late:
            missing = [line for line in late.splitlines(keepends=True) if line not in others] if others else [late]
            files.write_all(new, b"".join(missing))
            os.fsync(new)
    finally:
        files.unlock(old)


def _take_over(old: int, new: int, end: int) -> int:
    """Append the whole lines of the old file behind a place; return where they end."""
    while piece := files.read_at(old, end, files.BUFFER):
        whole = piece[: piece.rfind(b"\n") + 1] if len(piece) < files.BUFFER else piece
        if not whole:
            break
        files.write_all(new, whole)
        end += len(whole)
    return end
