"""The only code that opens, appends to, locks, syncs and renames files.

Tests inject faults here (they replace `os` and `fcntl` in these modules). What docs/promises.md promises about files is
kept here: regular files only, no symlink followed when writing, 0600 files in 0700 folders, one write(2) per line, an
unfinished line never joined to the next one.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import time
from _weakref import ref

from sessionlog.files.urls import VERSIONED as VERSIONED
from sessionlog.files.urls import is_url as is_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, BinaryIO, TypeVar

    from sessionlog.files.remote import Folder

    _T = TypeVar("_T")

fcntl: Any
try:
    import fcntl
except ImportError:  # no POSIX locks: appending works, several writers per file are not protected
    fcntl = None

_SYNCED_TOGETHER = 8
BUFFER = 1 << 20
LOCK_SECONDS = 0.05
UNLOCKED_SECONDS = 10.0
_TRY_EXCLUSIVE: int = getattr(fcntl, "LOCK_EX", 0) | getattr(fcntl, "LOCK_NB", 0)
_UNLOCK: int = getattr(fcntl, "LOCK_UN", 0)
_FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY")
NOT_APPENDED, _UNKNOWN = -2, -1
"""`AppendFile.clean_end` before the first append, and where another writer may have left an unfinished line."""
_NO_MTIME = -2  # a folder's mtime that nothing equals
_TICK_NS, _COARSE_NS = 20_000_000, 2_100_000_000  # clocks of file systems tick every 1-10 ms, on FAT every two seconds


class FileGoneError(OSError):
    """The open log was deleted, replaced or emptied, or its descriptor was closed: open it again and nothing is lost.

    Attributes:
        lines: What was appended before that was noticed. The new file may have it; `append_once` adds it if not.
    """

    lines = b""


def open_flags(base: int, *names: str) -> int:
    """Return the flags of `os.open`, with those of the names that this platform has."""
    for name in names:
        base |= getattr(os, name, 0)
    return base


_TO_READ = open_flags(os.O_RDONLY, *_FLAGS)


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


class _Folder:
    """A folder's descriptor, shared by all logs of the folder in this process and closed with the last of them.

    With one descriptor per log, only half as many logs could be open.
    """

    __slots__ = ("__weakref__", "fd", "identity")

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, open_flags(os.O_RDONLY, "O_DIRECTORY", "O_CLOEXEC"))
        self.identity: tuple[int, int] | None = None
        try:
            status = os.fstat(self.fd)
            self.identity = status.st_dev, status.st_ino
        finally:
            _close_with(self)


class _Reference(ref[_Folder]):
    """A weak reference that closes its folder's descriptor when the folder is gone.

    `_Folder.__del__` would be too early: while that runs, weak references still give the folder to other threads, whose
    descriptor would then be closed, or be another file's.
    """

    __slots__ = ("fd", "identity")

    fd: int
    identity: tuple[int, int] | None


def _close_with(folder: _Folder) -> None:
    """Close the descriptor of a folder when the folder is gone; until then other logs find it."""
    reference = _Reference(folder, _close_folder)
    reference.fd, reference.identity = folder.fd, folder.identity
    _references.add(reference)
    _folders[folder.identity] = reference


_references: set[_Reference] = set()  # one that is dropped before its folder is never called
_folders: dict[tuple[int, int] | None, _Reference] = {}


def _close_folder(reference: Any) -> None:
    try:
        fd, identity = reference.fd, reference.identity
        _references.discard(reference)
        if _folders.get(identity) is reference:
            _folders.pop(identity, None)  # this may remove another thread's entry, which is then not shared
        if identity is None or _is_same_file(fd, identity):
            close(fd)
    except Exception:  # noqa: BLE001, S110 - at exit, where the system closes
        pass


def _open_folder(path: str) -> _Folder:
    """Return the open folder at a path. Takes no lock: a signal handler could wait for it for ever."""
    status = os.stat(path)
    known = _folders.get((status.st_dev, status.st_ino))
    shared = None if known is None else known()
    if shared is not None and _is_same_file(shared.fd, shared.identity):  # its host may have closed all descriptors
        return shared
    return _Folder(path)


class AppendFile:
    """A log open for appending: whole lines in one write(2), never joined to an unfinished line, never interleaved.

    The folder's descriptor is kept open: paths are resolved once, and a change of the folder's mtime means that the
    file may have been deleted. A stat of the folder's path takes a microsecond more. An fstat of the file before each
    write makes the append cost 1.3 times as much, because the kernel must then give every write its own timestamp.

    Attributes:
        fd: The file's descriptor.
        size: Its length when it was opened.
        clean_end: Its length after our last append, if it ends in a whole line; `NOT_APPENDED` before the first append,
            another negative number if the end is unknown.
        foreign_end: Offset after the last bytes that another process appended between two of our appends; 0 if none.
        unlocked_until: Monotonic time before which the lock is not waited for again; 0 while locking works.
    """

    __slots__ = (
        "_folder",
        "_folder_mtime",
        "_name",
        "_owned",
        "_shared",
        "clean_end",
        "fd",
        "foreign_end",
        "size",
        "unlocked_until",
    )

    def __init__(self, directory: str, name: str) -> None:
        """Open `directory/name`, creating it 0600.

        Raises:
            OSError: It cannot be opened, is not a regular file, or belongs to another user.
        """
        flags = open_flags(os.O_RDWR | os.O_CREAT | os.O_APPEND, *_FLAGS, "O_NOFOLLOW")
        self.fd = self._folder = -1
        self._name = name
        self._shared: _Folder | None = None
        self._owned: dict[int, tuple[int, int] | None] = {}  # descriptor -> the file it was opened for
        self._folder_mtime = _NO_MTIME
        self.clean_end = NOT_APPENDED
        self.foreign_end, self.unlocked_until = 0, 0.0
        try:
            if os.open in os.supports_dir_fd:
                self._shared = _open_folder(directory)
                self._folder = self._shared.fd
                self.fd = os.open(name, flags, 0o600, dir_fd=self._folder)
            else:
                self.fd = os.open(os.path.join(directory, name), flags, 0o600)
            self.size = check_log(self.fd, name, self._own(self.fd))
        except BaseException:
            self.close()
            raise

    def _own(self, fd: int) -> os.stat_result:
        self._owned[fd] = None  # from here on `close` closes it
        status = os.fstat(fd)
        self._owned[fd] = status.st_dev, status.st_ino
        return status

    @property
    def identity(self) -> tuple[int, int] | None:
        """(device, inode) of the file."""
        return self._owned[self.fd]

    def append(self, line: bytes) -> None:
        """Append whole lines in one write.

        A newline goes first where a previous writer left an unfinished line (a blank line is legal). A write that fails
        half-way is rolled back if the file is exactly as long as we made it; else the next append begins a new line.

        Raises:
            FileGoneError: Nothing was written, and opening the file again will help.
            OSError: Nothing of the lines is in the file, or only an unfinished piece of them.
        """
        fd, locked = self.fd, False
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(fd, _TRY_EXCLUSIVE)  # inlined: the uncontended case is nearly every case
                    locked = True
                except (OSError, ValueError) as error:
                    locked = self._lock_late(error)
            changed = os.fstat(self._folder).st_mtime_ns if self._folder >= 0 else -1
            if changed != self._folder_mtime:
                self._check_exists(changed)
            size = os.lseek(fd, 0, 2)
            if size != self.clean_end or not locked:
                line = self._with_newline(line, size, locked)
            self.clean_end = _UNKNOWN
            written = os.write(fd, line)
            if written != len(line):
                _finish(fd, line, written, size, alone=locked or fcntl is None)
            self.clean_end = size + len(line)
            if locked:
                self.unlocked_until = 0.0
            elif fcntl is not None and (not os.fstat(fd).st_nlink or (changed >= 0 and self._is_unlinked())):
                raise _replaced_meanwhile(line)
        finally:
            if fcntl is not None:  # even if not `locked`: an interrupt may have come right after the flock
                try:
                    fcntl.flock(fd, _UNLOCK)
                except Exception:  # noqa: BLE001 - the lines are in the file: that stays true
                    self.clean_end = _UNKNOWN  # others append without the lock now: the last line may be torn

    def append_once(self, lines: bytes) -> None:
        """Append whole lines unless the file has them: the process that replaced the log may have copied them.

        Raises:
            OSError: As in `append`.
        """
        lock(self.fd)  # `append` releases it
        if not _holds(self.fd, lines):
            self.append(lines)
        elif fcntl is not None:
            unlock(self.fd)

    def _lock_late(self, error: Exception) -> bool:
        """Wait for the lock, but only once in ten seconds: a stopped process that has it must not slow every event."""
        if self.fd < 0 or getattr(error, "errno", None) == errno.EBADF:  # closed by the host, or by `__del__` at exit
            raise FileGoneError(errno.EBADF, "the log's descriptor was closed by other code") from error
        if self.unlocked_until and time.monotonic() < self.unlocked_until:
            return False
        if lock(self.fd):
            return True
        self.unlocked_until = time.monotonic() + UNLOCKED_SECONDS
        return False

    def _check_exists(self, changed: int) -> None:
        """After a change of the folder: check that the descriptor is still our file and that the file has a name.

        The folder's new mtime is kept only if it is older than the clock's tick: a deletion within the same tick would
        not change it. It was read before this check, so a later deletion is noticed by the next append.
        """
        status = os.fstat(self.fd)
        is_ours = (status.st_dev, status.st_ino) == self._owned[self.fd]
        if not status.st_nlink or not is_ours or (changed >= 0 and self._is_unlinked()):
            raise FileGoneError(errno.ENOENT, "the log was deleted while it was open")
        if changed >= 0:
            tick = _TICK_NS if changed % 1_000_000 else _COARSE_NS
            self._folder_mtime = changed if time.time_ns() - changed > tick else _NO_MTIME

    def _is_unlinked(self) -> bool:
        """Whether the name was deleted while the file has another one, a hard link (a repair makes one).

        A file that was renamed looks the same but stays in use: only the kernel knows which name was opened. Where it
        does not report that, the existence of a repair's folder decides.
        """
        try:
            status = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
            if (status.st_dev, status.st_ino) == self._owned[self.fd]:
                return False
        except FileNotFoundError:
            pass
        except OSError:
            return False
        try:
            return os.readlink(f"/proc/self/fd/{self.fd}").endswith(" (deleted)")
        except OSError:
            pass
        try:
            os.stat(work_folder(self._name), dir_fd=self._folder)
        except OSError:
            return False
        return True

    def _with_newline(self, line: bytes, size: int, locked: bool) -> bytes:
        """Other writers may have appended: begin a new line unless we hold the lock and the file ends in a newline."""
        if size == 0 and (self.size or self.clean_end > 0):
            raise FileGoneError(errno.ENOENT, "the log was emptied while it was open")
        if size > (self.size if self.clean_end == NOT_APPENDED else self.clean_end) >= 0:
            self.foreign_end = size
        if size and ((not locked and fcntl is not None) or read_tail(self.fd, size, 1) != b"\n"):
            return b"\n" + line
        return line

    def close(self) -> None:
        """Close the descriptors, except those that the host closed and the system has reused for another file."""
        for fd, identity in self._owned.items():
            if _is_same_file(fd, identity):
                close(fd)
        self._owned.clear()
        self.fd = self._folder = -1
        self._shared = None

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001, S110 - at exit the modules it needs may be gone; the system closes then
            pass


def _replaced_meanwhile(line: bytes) -> FileGoneError:
    """Return the error for a line written without the lock: a repair may have copied it or not."""
    error = FileGoneError(errno.ENOENT, "the log was replaced while it was written to")
    error.lines = line.lstrip(b"\n")
    return error


def _holds(fd: int, lines: bytes) -> bool:
    """Whether a file has these lines, the first of them at the start of a line."""
    before, place = b"\n", 0
    while piece := read_at(fd, place, max(BUFFER, len(lines))):
        before = before[-len(lines) :] + piece
        if b"\n" + lines in before:
            return True
        place += len(piece)
    return False


def _is_same_file(fd: int, identity: tuple[int, int] | None) -> bool:
    try:
        status = os.fstat(fd)
    except Exception as error:  # noqa: BLE001 - out of memory is no reason to keep descriptors
        return getattr(error, "errno", None) != errno.EBADF
    return identity is None or (status.st_dev, status.st_ino) == identity


def check_owner(status: os.stat_result, name: str) -> None:
    """Check that a file belongs to this user; root may use all files.

    Raises:
        PermissionError: It belongs to another user.
    """
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    if user not in (0, status.st_uid):
        raise PermissionError(f"{name} belongs to user {status.st_uid}")


def check_log(fd: int, name: str, status: os.stat_result) -> int:
    """Return the length of an open log.

    Raises:
        OSError: It is not a regular file, or belongs to another user.
    """
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{name} is not a regular file")
    check_owner(status, name)
    if status.st_size == 0 and status.st_mode & 0o777 != 0o600 and hasattr(os, "fchmod"):
        os.fchmod(fd, 0o600)  # a umask may have taken bits away
    return status.st_size


def lock(fd: int, seconds: float = LOCK_SECONDS) -> bool:
    """Acquire a file's exclusive lock within `seconds`; False if another process keeps it or there are no locks."""
    deadline = time.monotonic() + seconds
    while fcntl is not None:
        try:
            fcntl.flock(fd, _TRY_EXCLUSIVE)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.0005)
        except OSError:
            return False
        else:
            return True
    return False


def write_all(fd: int, data: bytes) -> None:
    """Write all of these bytes, in as many writes as the system asks for."""
    _finish(fd, data, 0, 0, alone=False)


def _finish(fd: int, line: bytes, written: int, size: int, *, alone: bool) -> None:
    """Write the rest after a short write; if that fails, truncate the piece unless another writer may follow it."""
    try:
        while written < len(line):
            more = os.write(fd, line[written:])
            if not more:
                raise OSError(errno.ENOSPC, "no more bytes written")  # noqa: TRY301 - the piece must be truncated
            written += more
    except BaseException:
        try:
            if alone and os.fstat(fd).st_size == size + written:
                os.ftruncate(fd, size)
        except OSError:
            pass
        raise


def unlock(fd: int) -> None:
    """Release the lock explicitly: a forked child may keep the descriptor open for longer."""
    fcntl.flock(fd, _UNLOCK)


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


def work_folder(path: str) -> str:
    """Return the folder beside a log in which its replacement is made."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.repair")


def make_private(path: str) -> None:
    """Make an empty 0600 file, unless there is one."""
    try:
        close(os.open(path, open_flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL, "O_CLOEXEC"), 0o600))
    except FileExistsError:
        pass


def duplicate(fd: int) -> int:
    """Return a second descriptor of the same open file, for a thread that syncs while the writer continues."""
    return os.dup(fd)


def close(fd: int) -> None:
    """Close a descriptor and ignore errors."""
    try:
        os.close(fd)
    except Exception:  # noqa: BLE001, S110 - it is closed, or the system closes it
        pass


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


def read_at(fd: int, start: int, count: int) -> bytes:
    """Return up to `count` bytes of an open file from the offset `start` on."""
    if hasattr(os, "pread"):
        return os.pread(fd, count, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, count)


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
    """Make a private folder; the caller removes it (`remove_directory`)."""
    import tempfile

    return tempfile.mkdtemp(prefix=prefix)


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


def copy_file(path: str, copy: str) -> None:
    """Copy a file's bytes, of this machine or of a store, into a new file."""
    import shutil

    if not is_url(path):
        shutil.copyfile(path, copy)
        return
    with open_log(path) as file, open(copy, "xb") as out:
        shutil.copyfileobj(file, out, BUFFER)


def remove_directory(path: str) -> None:
    """Remove a folder that `temporary_directory` made, with all that is in it."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)


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


def stat_open(file: BinaryIO) -> os.stat_result:
    """Return the status of an open file."""
    name = getattr(file, "name", "")
    status = stat_path(name) if isinstance(name, str) and is_url(name) else None
    return os.fstat(file.fileno()) if status is None else status


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


def read_small(path: str, limit: int = 1 << 20) -> bytes | None:
    """Return the bytes of a small file such as config.toml; None when it does not exist."""
    if stat_path(path) is None:
        return None
    with open_log(path, buffer=0) as file:
        return file.read(limit)


def real_path(path: str) -> str:
    """Return the absolute path with links resolved; a URL as it is."""
    return path if is_url(path) else os.path.realpath(path)


def absolute_path(path: str) -> str:
    """Return the absolute path; a URL as it is."""
    return path if is_url(path) else os.path.abspath(path)
