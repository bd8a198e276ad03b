"""What is at a path, on this machine or in a store: its status, the names in a folder; and making folders."""

from __future__ import annotations

import os
import stat

from sessionlog.files.descriptors import close, open_flags
from sessionlog.files.urls import is_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sessionlog.files.remote import Folder


def stat_path(path: str) -> os.stat_result | None:
    """Return the status of the file a path names, None when there is none."""
    if "://" in path and is_url(path):
        from sessionlog.files import remote

        return remote.stat(path)
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def identity_of(path: str) -> tuple[int, int] | None:
    """Return (device, inode) of the file at a path; None if there is none."""
    status = stat_path(path)
    return None if status is None else (status.st_dev, status.st_ino)


def is_directory(path: str) -> bool:
    """Whether a path names a folder."""
    status = stat_path(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def is_file(path: str) -> bool:
    """Whether a path names a regular file."""
    status = stat_path(path)
    return status is not None and stat.S_ISREG(status.st_mode)


def exists(path: str) -> bool:
    """Whether there is anything at a path, even a link that leads nowhere."""
    return stat_path(path) is not None if is_url(path) else os.path.lexists(path)


def real_path(path: str) -> str:
    """Return the absolute path with links resolved; a URL as it is."""
    return path if is_url(path) else os.path.realpath(path)


def absolute_path(path: str) -> str:
    """Return the absolute path; a URL as it is."""
    return path if is_url(path) else os.path.abspath(path)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder, none if it cannot be read."""
    try:
        return [entry.name for entry in scan_folder(folder)] if is_url(folder) else os.listdir(folder)
    except OSError:
        return []


def scan_folder(folder: str) -> Iterable[os.DirEntry[str] | Folder]:
    """Return the entries of a folder.

    Raises:
        OSError: It cannot be listed.
    """
    if is_url(folder):
        from sessionlog.files import remote

        return remote.entries(folder)
    return os.scandir(folder)


def walk_folder(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder below a folder, and itself, with the names of its files, all sorted; links are not followed."""
    if not is_url(folder):
        for place, folders, names in os.walk(folder):
            folders.sort()
            yield place, sorted(names)
        return
    found = list(scan_folder(folder))
    yield folder, [entry.name for entry in found if not entry.is_dir()]
    for entry in found:
        if entry.is_dir():
            yield from walk_folder(entry.path)


def find_paths(folder: str, *patterns: str) -> list[str]:
    """Return the paths below a folder whose names match, level by level, sorted; `*` finds no hidden names."""
    from glob import escape, glob

    if not is_url(folder):
        return sorted(glob(os.path.join(escape(folder), *patterns)))
    from fnmatch import fnmatchcase

    found = [folder]
    for pattern in patterns:
        found = [
            f"{place}/{name}"
            for place in found
            for name in list_names(place)
            if fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))
        ]
    return sorted(found)


def make_directories(path: str) -> list[str]:
    """Make a folder and its missing parents, each 0700 whatever the umask; return the folders that got an entry."""
    if is_directory(path):
        return []
    parent = os.path.dirname(path)
    changed = make_directories(parent) if parent != path else []
    try:
        os.mkdir(path, 0o700)
        if os.stat(path).st_mode & 0o700 != 0o700:
            os.chmod(path, 0o700)
    except FileExistsError:
        pass
    return [*changed, parent]


def make_private(path: str) -> None:
    """Make an empty 0600 file, unless there is one."""
    try:
        close(os.open(path, open_flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL, "O_CLOEXEC"), 0o600))
    except FileExistsError:
        pass
