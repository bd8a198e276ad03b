"""Replace a log while others write to it: if this process is killed at any instant, no line is lost or doubled.

Unfinished work lies in a folder beside the log, `.NAME.repair`. Only the process that holds the lock of this folder
works in it. The folder has:

- `new`: the copy that will replace the log.
- `replaced-N`: a second name (a hard link) of the log's old file, whose first N bytes are in the copy. It is made
  before the rename, and removed when the lines after N are in the new log, too.

A writer that waited too long for the log's lock appends to the old file without it. What it wrote before the rename is
copied after the rename; what it wrote later it writes to the new log again (`FileGoneError.lines`). A process that is
killed before that copy, or finds the disk full, leaves `replaced-N`, and `finish_replacing` makes the copy.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from contextlib import contextmanager, suppress

from sessionlog import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

LOCKED = "another process holds its lock; try again when the session has ended"
_IN_PROGRESS = "another repair of it is in progress; try again when it has ended"
_LATE = "the log was replaced, but lines written to it meanwhile are not in it yet; the next repair copies them from"
_NEW = "new"
_REPLACED = re.compile(r"replaced-(\d{1,18})")
_ROUNDS = 8
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def replace_log(path: str, pieces: Iterable[bytes], old: BinaryIO, end: int) -> None:
    """Replace a log by these pieces and by what `old`, the open log, has from `end` on; others may be writing to it.

    Writers wait only while the last lines are copied.

    Raises:
        BlockingIOError: A writer does not release the log's lock, or another process is replacing the log.
        OSError: The new file cannot be written, or the log was changed meanwhile; then it is as it was. Or the log was
            replaced, but the last lines could not be copied: the message names the file that has them.
    """
    with _working_on(path) as folder:
        new = _write_new(os.path.join(folder, _NEW), pieces, os.fstat(old.fileno()).st_mode)
        try:
            files.lock(new)  # writers who open it find in it what they wrote before
            _replace_locked(path, folder, old.fileno(), new, end)
        finally:
            files.close(new)
        files.sync_directory(os.path.dirname(path))


def finish_replacing(path: str) -> int | None:
    """Finish what a stopped `replace_log` has left; return how many lines the log lacked, None if nothing was left.

    The lines are appended: they may come after later ones of the same writer.

    Raises:
        BlockingIOError: A writer does not release the log's lock, or another process is replacing the log.
        OSError: The lines cannot be read or written; the replaced file is kept for the next try.
    """
    if not files.is_directory(files.work_folder(path)):
        return None
    with _working_on(path) as folder:
        left = _replaced_files(folder)
        return sum(_copy_rest(path, link, offset) for link, offset in left) if left else None


def find_stopped(path: str) -> str | None:
    """Return the replaced file whose last lines a stopped `replace_log` has not copied; None if there is none."""
    folder = files.work_folder(path)
    with suppress(OSError):
        links = [link for link, _ in _replaced_files(folder)]
        links = [link for link in links if files.identity_of(link) not in {None, files.identity_of(path)}]
        if links and not _in_progress(folder):
            return links[0]
    return None


def _in_progress(folder: str) -> bool:
    fd = _open_folder(folder)
    try:
        return not files.lock(fd, 0)
    finally:
        files.close(fd)


@contextmanager
def _working_on(path: str) -> Iterator[str]:
    """Yield the locked work folder of a log without leftovers that need no finishing; remove it if it ends up empty."""
    folder = files.work_folder(path)
    files.make_directories(folder)
    fd = _open_folder(folder)
    try:
        status = os.fstat(fd)
        files.check_owner(status, folder)
        if not files.lock(fd) or files.identity_of(folder) != (status.st_dev, status.st_ino):
            raise BlockingIOError(errno.EAGAIN, _IN_PROGRESS)
        _remove_unneeded(path, folder)
        try:
            yield folder
        finally:
            with suppress(OSError):
                _remove_unneeded(path, folder)
                os.rmdir(folder)
    finally:
        files.close(fd)


def _open_folder(folder: str) -> int:
    return os.open(folder, files.open_flags(os.O_RDONLY, "O_DIRECTORY", "O_CLOEXEC", "O_NOFOLLOW"))


def _remove_unneeded(path: str, folder: str) -> None:
    """Remove unfinished copies, and second names of a file that is still the log."""
    files.remove_file(os.path.join(folder, _NEW))
    log = files.identity_of(path)
    for link, _ in _replaced_files(folder):
        if log is not None and files.identity_of(link) == log:
            files.remove_file(link)


def _replaced_files(folder: str) -> list[tuple[str, int]]:
    """Return (path, bytes that have been copied) of the replaced files in a work folder."""
    matches = [_REPLACED.fullmatch(name) for name in sorted(os.listdir(folder))]
    return [(os.path.join(folder, match[0]), int(match[1])) for match in matches if match]


def _write_new(path: str, pieces: Iterable[bytes], mode: int) -> int:
    """Write and sync a new file with the permissions of the old one; return its descriptor."""
    fd = os.open(path, files.open_flags(os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, "O_CLOEXEC"), 0o600)
    try:
        for piece in pieces:
            files.write_all(fd, piece)
        os.fchmod(fd, mode & 0o777)
        os.fsync(fd)
    except BaseException:
        files.close(fd)
        raise
    return fd


def _replace_locked(path: str, folder: str, old: int, new: int, end: int) -> None:
    if not files.lock(old):
        raise BlockingIOError(errno.EAGAIN, LOCKED)
    try:
        _check_same(path, old)
        if os.fstat(old).st_size < end:
            raise _changed()
        for _ in range(_ROUNDS):  # a sync takes so long that a writer may append without the lock meanwhile
            copied = _copy_lines(old, new, end)
            if copied == end:
                break
            end = copied
            os.fsync(new)
        size = os.lseek(new, 0, 2)
        link = _link_old(path, folder, old, end)
        os.replace(os.path.join(folder, _NEW), path)
        try:
            _copy_late(old, new, end, size)
        except OSError as error:
            if link is None:
                raise
            raise OSError(error.errno, f"{files.reason_of(error)}: {_LATE} {link}") from error
        if link is not None:
            os.unlink(link)
    finally:
        files.unlock(old)


def _check_same(path: str, fd: int) -> None:
    status = os.fstat(fd)
    if files.identity_of(path) != (status.st_dev, status.st_ino):
        raise _changed()


def _changed() -> OSError:
    return OSError(errno.ESTALE, "the log was changed meanwhile")


def _link_old(path: str, folder: str, old: int, end: int) -> str | None:
    """Give the log's file a second name that survives the rename; None on a file system without hard links."""
    link = os.path.join(folder, f"replaced-{end}")
    try:
        os.link(path, link)
    except OSError as error:
        if error.errno in _NO_LINKS:
            return None
        raise
    _check_same(link, old)
    files.sync_directory(folder)
    return link


def _copy_lines(old: int, new: int, offset: int) -> int:
    """Append the whole lines that the old file has after an offset; return where they end."""
    end = files.end_of_lines(old, os.fstat(old).st_size)
    while offset < end:
        piece = files.read_at(old, offset, min(files.BUFFER, end - offset))
        if not piece:
            raise _changed()
        files.write_all(new, piece)
        offset += len(piece)
    return offset


def _copy_late(old: int, new: int, offset: int, size: int) -> None:
    """Append the old file's lines after `offset` that the new one lacks after `size`, its end at the rename."""
    late = False
    for lines in _read_lines(old, offset):
        late = True
        _append_lines(new, _lacking(new, lines, size))
    if late:
        os.fsync(new)


def _copy_rest(path: str, link: str, offset: int) -> int:
    """Append to the log the lines after an offset of its replaced file that it lacks; return how many."""
    count = 0
    old = os.open(link, files.open_flags(os.O_RDONLY, "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
    try:
        files.check_log(old, link, os.fstat(old))
        new = os.open(path, files.open_flags(os.O_RDWR | os.O_APPEND, "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))
        try:
            files.check_log(new, path, os.fstat(new))
            for lines in _read_lines(old, offset):
                count += _append_lacking(path, new, lines)
            os.fsync(new)
        finally:
            files.close(new)
    finally:
        files.close(old)
    os.unlink(link)
    return count


def _append_lacking(path: str, new: int, lines: list[bytes]) -> int:
    """Append the lines that the log lacks; its writers wait only while its last lines are searched."""
    size = os.fstat(new).st_size
    lines = _lacking(new, lines, 0)
    if not files.lock(new):
        raise BlockingIOError(errno.EAGAIN, LOCKED)
    try:
        _check_same(path, new)
        lines = _lacking(new, lines, files.end_of_lines(new, size))
        _append_lines(new, lines)
    finally:
        files.unlock(new)
    return len(lines)


def _append_lines(fd: int, lines: list[bytes]) -> None:
    """Append lines after a newline: a writer without the lock may have been killed in the middle of its line."""
    if lines:
        files.write_all(fd, b"\n" + b"\n".join(lines) + b"\n")


def _lacking(fd: int, lines: list[bytes], offset: int) -> list[bytes]:
    """Return those of the lines that a file does not have from an offset on."""
    wanted = set(lines)
    for found in _read_lines(fd, offset):
        wanted.difference_update(found)
        if not wanted:
            break
    return [line for line in lines if line in wanted]


def _read_lines(fd: int, offset: int) -> Iterator[list[bytes]]:
    """Yield the lines from an offset to the file's present end, in batches; the last may be unfinished."""
    rest, end = b"", os.fstat(fd).st_size  # a fixed end: a busy writer would make this endless
    while piece := files.read_at(fd, offset, min(files.BUFFER, max(end - offset, 0))):
        offset += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        if any(lines):
            yield [line for line in lines if line]
    if rest:
        yield [rest]
