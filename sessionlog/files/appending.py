"""AppendFile: a log open for appending.

One write(2) per line, an unfinished line never joined to the next one, regular files only, no symlink followed.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from _weakref import ref

from sessionlog.files.descriptors import BUFFER, LOG_FLAGS, close, open_flags, read_at, read_tail
from sessionlog.files.file_lock import TRY_EXCLUSIVE, UNLOCK, fcntl, lock, unlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

UNLOCKED_SECONDS = 10.0
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
        flags = open_flags(os.O_RDWR | os.O_CREAT | os.O_APPEND, *LOG_FLAGS, "O_NOFOLLOW")
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
                    fcntl.flock(fd, TRY_EXCLUSIVE)  # inlined: the uncontended case is nearly every case
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
                    fcntl.flock(fd, UNLOCK)
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


def append_private(path: str, pieces: Iterable[bytes]) -> None:
    """Append bytes to a 0600 file beside a log and sync it before returning."""
    file = AppendFile(*os.path.split(os.path.abspath(path)))
    try:
        for piece in pieces:
            file.append(piece)
        os.fsync(file.fd)
    finally:
        file.close()


def work_folder(path: str) -> str:
    """Return the folder beside a log in which its replacement is made."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.repair")


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


def _is_same_file(fd: int, identity: tuple[int, int] | None) -> bool:
    try:
        status = os.fstat(fd)
    except Exception as error:  # noqa: BLE001 - out of memory is no reason to keep descriptors
        return getattr(error, "errno", None) != errno.EBADF
    return identity is None or (status.st_dev, status.st_ino) == identity
