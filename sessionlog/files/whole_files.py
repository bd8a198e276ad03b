"""Writing a file whole or not at all, and temporary files.

A log to which others may be writing is replaced by `sessionlog.files.replace`.
"""

from __future__ import annotations

import os

from sessionlog.files.descriptors import BUFFER, close, open_flags, sync_directory
from sessionlog.files.reading import open_log
from sessionlog.files.urls import is_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import BinaryIO

_SYNCED_TOGETHER = 8


def replace_file(path: str, pieces: Iterable[bytes], *, like: os.stat_result | None = None) -> None:
    """Write a file whole or not at all: same folder, synced, renamed over, folder synced."""
    temporary = write_temporary(path, pieces, like)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove_file(temporary)
        raise
    sync_directory(os.path.dirname(temporary))


def replace_files(written: Sequence[tuple[str, str]]) -> None:
    """Do for many (`write_temporary(…, is_synced=False)`, path) what `replace_file` does for one.

    Threads sync them together: one after the other each would wait for the disk, which takes ten times as long.
    """
    try:
        _sync_paths([temporary for temporary, _ in written])
        for temporary, path in written:
            os.replace(temporary, path)
    except BaseException:
        for temporary, _ in written:
            remove_file(temporary)
        raise
    for folder in {os.path.dirname(temporary) for temporary, _ in written}:
        sync_directory(folder)


def _sync_paths(paths: Sequence[str]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    try:
        with ThreadPoolExecutor(_SYNCED_TOGETHER) as threads:
            list(threads.map(_sync_path, paths))
    except RuntimeError:  # no thread can be started: a container may have a limit
        for path in paths:
            _sync_path(path)


def _sync_path(path: str) -> None:
    fd = os.open(path, open_flags(os.O_RDWR, "O_CLOEXEC"))
    try:
        os.fsync(fd)
    finally:
        close(fd)


def write_temporary(
    path: str, pieces: Iterable[bytes], like: os.stat_result | None = None, *, is_synced: bool = True
) -> str:
    """Write a file of another name into the same folder; return its path, which `replace_files` takes."""
    import tempfile

    folder, name = os.path.split(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(fd, "wb", BUFFER) as out:
            for piece in pieces:
                out.write(piece)
            out.flush()
            if is_synced:
                os.fsync(out.fileno())
            if like is not None and hasattr(os, "fchmod"):
                os.fchmod(out.fileno(), like.st_mode & 0o777)
    except BaseException:
        remove_file(temporary)
        raise
    return temporary


def remove_file(path: str) -> None:
    """Remove a file if that can be done."""
    try:
        os.unlink(path)
    except OSError:
        pass


def copy_file(path: str, copy: str) -> None:
    """Copy a file's bytes, of this machine or of a store, into a new file."""
    import shutil

    if not is_url(path):
        shutil.copyfile(path, copy)
        return
    with open_log(path) as file, open(copy, "xb") as out:
        shutil.copyfileobj(file, out, BUFFER)


def temporary_directory(prefix: str) -> str:
    """Make a private folder; the caller removes it (`remove_directory`)."""
    import tempfile

    return tempfile.mkdtemp(prefix=prefix)


def remove_directory(path: str) -> None:
    """Remove a folder that `temporary_directory` made, with all that is in it."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def open_temporary(folder: str | None = None) -> tuple[BinaryIO, str]:
    """Return a new private file and its path; without a folder the file has no name, the path is "".

    Raises:
        OSError: There is no room for it.
    """
    import tempfile

    fd, path = tempfile.mkstemp(prefix="sessionlog-", dir=folder)
    if folder is None:
        os.unlink(path)
    return os.fdopen(fd, "w+b"), path if folder else ""


def reopen_temporary(path: str) -> BinaryIO:
    """Open a temporary file and unlink it: closing it deletes it."""
    file = open(path, "rb")  # noqa: SIM115 - the caller's to close
    os.unlink(path)
    return file
