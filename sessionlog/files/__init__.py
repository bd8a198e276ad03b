"""THE seam to the operating system: only this folder opens, appends, locks, syncs, renames.

Faults are injected here in tests (`os` and `fcntl` are replaced in its modules), and everything the promises say about
files is kept here: regular files only, no symlink followed when writing, 0600 files in 0700 folders, one write(2) per
line, an unfinished line never glued to the next one.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import time
from _weakref import ref
from collections.abc import Iterable
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # typing itself costs an agent's start 3 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

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
_FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY")
_UNSETTLED = -2  # a folder's mtime that nothing equals
_TICK_NS, _COARSE_NS = 20_000_000, 2_100_000_000  # clocks of file systems tick every 1-10 ms, on FAT every two seconds


class FileGoneError(OSError):
    """The open log has been deleted, replaced, emptied, or its descriptor taken: open it anew and nothing is lost.

    Attributes:
        lines: What was appended to it before that was known: the new file has it, or `append_once` puts it there.
    """

    lines = b""


def open_flags(base: int, *names: str) -> int:
    """Return the flags of `os.open`, with those of the names that this platform has."""
    for name in names:
        base |= getattr(os, name, 0)
    return base


def make_directories(path: str) -> list[str]:
    """Make a folder and its missing parents, each 0700 whatever the umask; return the folders that got an entry."""
    if is_directory(path):
        return []
    parent = os.path.dirname(path)
    changed = make_directories(parent) if parent != path else []
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        if os.stat(path).st_mode & 0o700 != 0o700:
            os.chmod(path, 0o700)
    return [*changed, parent]


class _Folder:
    """A folder's descriptor, which all logs of it in this process share; the last one that lets go of it closes it.

    With one for each log, half as many logs could be open.
    """

    __slots__ = ("__weakref__", "fd", "identity")

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, open_flags(os.O_RDONLY, "O_DIRECTORY", "O_CLOEXEC"))
        self.identity: tuple[int, int] | None = None  # from here on it will be closed, whatever happens
        status = os.fstat(self.fd)
        self.identity = status.st_dev, status.st_ino

    def __del__(self) -> None:
        try:
            if _is_still(self.fd, self.identity):
                close(self.fd)
            _folders.pop(self.identity, None)  # if another thread's took its place: that one is not shared
        except Exception:  # noqa: BLE001, S110 - it was not opened; or at exit, where the system closes
            pass


_folders: dict[tuple[int, int] | None, ref[_Folder]] = {}


def _open_folder(path: str) -> _Folder:
    """Return the open folder at a path; without a lock, which a signal handler could wait for in vain."""
    status = os.stat(path)
    known = _folders.get((status.st_dev, status.st_ino))
    shared = None if known is None else known()
    if shared is not None and _is_still(shared.fd, shared.identity):  # its host may have closed all descriptors
        return shared
    folder = _Folder(path)
    _folders[folder.identity] = ref(folder)
    return folder


class AppendFile:
    """A log open at its end. `append` is the promise: whole lines, one write(2), nothing glued, nothing interleaved.

    The file is kept with its folder's descriptor: paths are resolved once, and a change of the folder's mtime is the
    sign that the file may have been deleted. Asking for that by the folder's path takes a microsecond more; asking the
    file itself (fstat) before each write costs 1.3 times as much, for the kernel must then give every write a time of
    its own.

    Attributes:
        fd: The file's descriptor.
        size: Its length when it was opened.
        whole: Its length after our last append, when it ends in a whole line; -1 if nobody knows, -2 before the first.
        others: Where bytes end that somebody else put between two of our appends; 0 if nobody has.
        unlocked_until: Monotonic time before which the lock is not waited for again, 0 while it can be had.
    """

    __slots__ = (
        "_folder",
        "_folder_mtime",
        "_name",
        "_owned",
        "_shared",
        "fd",
        "others",
        "size",
        "unlocked_until",
        "whole",
    )

    def __init__(self, directory: str, name: str) -> None:
        """Open `directory/name`, creating it 0600.

        Raises:
            OSError: It cannot be opened, is not a regular file, or belongs to somebody else.
        """
        flags = open_flags(os.O_RDWR | os.O_CREAT | os.O_APPEND, *_FLAGS, "O_NOFOLLOW")
        self.fd = self._folder = -1
        self._name = name
        self._shared: _Folder | None = None
        self._owned: dict[int, tuple[int, int] | None] = {}  # descriptor -> the file it was opened for
        self._folder_mtime = _UNSETTLED
        self.whole = -2
        self.others, self.unlocked_until = 0, 0.0
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
        self._owned[fd] = None  # from here on it will be closed, whatever happens
        status = os.fstat(fd)
        self._owned[fd] = status.st_dev, status.st_ino
        return status

    @property
    def identity(self) -> tuple[int, int] | None:
        """(device, inode) of the file."""
        return self._owned[self.fd]

    def append(self, line: bytes) -> None:
        """Append whole lines in one write.

        A previous writer's unfinished line is ended first (a blank line is legal, and that is the whole repair). A
        write that fails half-way is rolled back if the file is exactly as long as we made it; else the next append
        heals it.

        Raises:
            FileGoneError: Nothing was written, and opening the file anew will help.
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
            if size != self.whole or not locked:
                line = self._healed(line, size, locked)
            self.whole = -1
            written = os.write(fd, line)
            if written != len(line):
                _finish(fd, line, written, size, alone=locked or fcntl is None)
            self.whole = size + len(line)
            if locked:
                self.unlocked_until = 0.0
            elif fcntl is not None and (not os.fstat(fd).st_nlink or (changed >= 0 and self._is_unlinked())):
                raise _replaced_meanwhile(line)
        finally:
            if fcntl is not None:  # also when an interrupt came between taking the lock and knowing of it
                try:
                    fcntl.flock(fd, _UNLOCK)
                except Exception:  # noqa: BLE001 - the lines are in the file: that stays true
                    self.whole = -1  # others go on without the lock, so their last line may be torn

    def append_once(self, lines: bytes) -> None:
        """Append whole lines unless the file has them: the process that replaced the log may have copied them.

        Raises:
            OSError: As in `append`.
        """
        lock(self.fd)  # until `append` gives it back
        if not _holds(self.fd, lines):
            self.append(lines)
        elif fcntl is not None:
            unlock(self.fd)

    def _lock_late(self, error: Exception) -> bool:
        """Wait for the lock, but only once in ten seconds: a stopped holder must not slow every event down."""
        if self.fd < 0 or getattr(error, "errno", None) == errno.EBADF:  # by its host, or by a destructor at exit
            raise FileGoneError(errno.EBADF, "the log was closed by somebody else") from error
        if self.unlocked_until and time.monotonic() < self.unlocked_until:
            return False
        if lock(self.fd):
            return True
        self.unlocked_until = time.monotonic() + UNLOCKED_SECONDS
        return False

    def _check_exists(self, changed: int) -> None:
        """The folder has changed: make sure that the file is still ours and has a name.

        The folder's new mtime is remembered only when it is older than the clock's tick: a deletion within the same
        tick would leave it as it is. It was read before the file was asked, so a deletion after that shows next time.
        """
        status = os.fstat(self.fd)
        is_ours = (status.st_dev, status.st_ino) == self._owned[self.fd]
        if not status.st_nlink or not is_ours or (changed >= 0 and self._is_unlinked()):
            raise FileGoneError(errno.ENOENT, "the log was deleted while it was open")
        if changed >= 0:
            tick = _TICK_NS if changed % 1_000_000 else _COARSE_NS
            self._folder_mtime = changed if time.time_ns() - changed > tick else _UNSETTLED

    def _is_unlinked(self) -> bool:
        """Whether the name was deleted while the file has another one, a hard link (a repair makes one).

        A file that was renamed looks the same, and goes on: only the kernel knows which name was opened. Where it does
        not say so, the folder of a repair does.
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

    def _healed(self, line: bytes, size: int, locked: bool) -> bytes:
        """Others may have written: begin a new line unless the file ends in a whole one and nobody can interfere."""
        if size == 0 and (self.size or self.whole > 0):
            raise FileGoneError(errno.ENOENT, "the log was emptied while it was open")
        self.others = size if size > (self.size if self.whole == -2 else self.whole) >= 0 else self.others
        if size and ((not locked and fcntl is not None) or read_tail(self.fd, size, 1) != b"\n"):
            return b"\n" + line
        return line

    def close(self) -> None:
        """Let go of the descriptors, unless the host has closed them and they are another file's by now."""
        for fd, identity in self._owned.items():
            if _is_still(fd, identity):
                close(fd)
        self._owned.clear()
        self.fd = self._folder = -1
        self._shared = None

    def __del__(self) -> None:
        try:  # noqa: SIM105 - see below
            self.close()
        except Exception:  # noqa: BLE001, S110 - at exit even `suppress` may be gone; the system closes then
            pass


def _replaced_meanwhile(line: bytes) -> FileGoneError:
    """Without the lock it is not known whether a line came in time to be taken over."""
    error = FileGoneError(errno.ENOENT, "the log was replaced while it was written to")
    error.lines = line.lstrip(b"\n")
    return error


def _holds(fd: int, lines: bytes) -> bool:
    """Whether a file has these lines, beginning with a line of it."""
    before, place = b"\n", 0
    while piece := read_at(fd, place, max(BUFFER, len(lines))):
        before = before[-len(lines) :] + piece
        if b"\n" + lines in before:
            return True
        place += len(piece)
    return False


def _is_still(fd: int, identity: tuple[int, int] | None) -> bool:
    try:
        status = os.fstat(fd)
    except Exception as error:  # noqa: BLE001 - out of memory is no reason to keep descriptors
        return getattr(error, "errno", None) != errno.EBADF
    return identity is None or (status.st_dev, status.st_ino) == identity


def check_owner(status: os.stat_result, name: str) -> None:
    """Refuse a file that belongs to another user; root may use all.

    Raises:
        PermissionError: It does.
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
    """Take the file's exclusive lock before a deadline; False when it cannot be had (a stopped holder, no locks)."""
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
    """Write the rest after a short write, or take the piece back if no other writer can have come behind it."""
    try:
        while written < len(line):
            more = os.write(fd, line[written:])
            if not more:
                raise OSError(errno.ENOSPC, "no more bytes taken")  # noqa: TRY301 - the piece must be taken back
            written += more
    except BaseException:
        with suppress(OSError):
            if alone and os.fstat(fd).st_size == size + written:
                os.ftruncate(fd, size)
        raise


def unlock(fd: int) -> None:
    """Give back a lock that was had, at once: a forked child may hold the descriptor for longer."""
    fcntl.flock(fd, _UNLOCK)


def sync(fd: int) -> None:
    """Push the file's data to the disk."""
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
    if full is None or fcntl is None:
        getattr(os, "fdatasync", os.fsync)(fd)
    else:
        fcntl.fcntl(fd, full)


def sync_directory(path: str) -> None:
    """Push a folder's entries to the disk, so that a new file's name survives a power loss."""
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
    with suppress(FileExistsError):
        close(os.open(path, open_flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL, "O_CLOEXEC"), 0o600))


def duplicate(fd: int) -> int:
    """Return a second descriptor of the same open file, for a thread that syncs while the writer goes on."""
    return os.dup(fd)


def close(fd: int) -> None:
    """Close a descriptor; an error here has nothing left to lose."""
    with suppress(Exception):
        os.close(fd)


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
    """Return up to `count` bytes of an open file from a place on."""
    if hasattr(os, "pread"):
        return os.pread(fd, count, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, count)


def replace_file(path: str, pieces: Iterable[bytes], *, like: os.stat_result | None = None) -> None:
    """Write a file whole or not at all: same folder, synced, renamed over, folder synced."""
    temporary = write_beside(path, pieces, like)
    try:
        os.replace(temporary, path)
    except BaseException:
        remove_file(temporary)
        raise
    sync_directory(os.path.dirname(temporary))


def write_beside(path: str, pieces: Iterable[bytes], like: os.stat_result | None) -> str:
    """Write a synced file of another name into the same folder; return its path."""
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
                os.fchmod(out.fileno(), like.st_mode & 0o777)
    except BaseException:
        remove_file(temporary)
        raise
    return temporary


def remove_file(path: str) -> None:
    """Remove a file if that can be done."""
    with suppress(OSError):
        os.unlink(path)


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
    """Make a private folder for a demonstration; the caller removes it."""
    import tempfile  # noqa: PLC0415 - 8 ms that a logger never needs

    return tempfile.mkdtemp(prefix=prefix)


def open_temporary(folder: str | None = None) -> tuple[BinaryIO, str]:
    """Return a new private file, and its path: in a folder, or "" of one that has no name and goes when it is closed.

    Raises:
        OSError: There is no room for it.
    """
    import tempfile  # noqa: PLC0415 - 8 ms that a logger never needs

    fd, path = tempfile.mkstemp(prefix="sessionlog-", dir=folder)
    if folder is None:
        os.unlink(path)
    return os.fdopen(fd, "w+b"), path if folder else ""


def take_temporary(path: str) -> BinaryIO:
    """Open a temporary file, and take its name from it.

    Raises:
        OSError: It is not there.
    """
    file = open(path, "rb")  # noqa: SIM115 - the caller's to close
    os.unlink(path)
    return file


def copy_file(path: str, copy: str) -> None:
    """Copy a file's bytes into a new file, in a private folder of ours."""
    import shutil  # noqa: PLC0415 - 5 ms that a logger never needs

    shutil.copyfile(path, copy)


def remove_directory(path: str) -> None:
    """Remove a folder that `temporary_directory` made, with all that is in it."""
    import shutil  # noqa: PLC0415 - see copy_file

    shutil.rmtree(path, ignore_errors=True)


def stat_path(path: str) -> os.stat_result | None:
    """Return the state of the file a path names, None when there is none."""
    with suppress(OSError, ValueError):
        return os.stat(path)
    return None


def identity_of(path: str) -> tuple[int, int] | None:
    """Return (device, inode) of the file at a path; None if there is none."""
    status = stat_path(path)
    return None if status is None else (status.st_dev, status.st_ino)


def is_directory(path: str) -> bool:
    """Whether a path names a folder."""
    status = stat_path(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder, none if it cannot be read."""
    with suppress(OSError):
        return os.listdir(folder)
    return []


def stat_open(file: BinaryIO) -> os.stat_result:
    """Return the state of an open file."""
    return os.fstat(file.fileno())


def open_log(path: str, *, buffer: int = BUFFER) -> BinaryIO:
    """Open a regular file for reading; devices, pipes and other people's links are refused.

    Args:
        path: The file.
        buffer: Bytes to read at once; 0 reads what is asked for and no more.

    Raises:
        LogNotReadable: Missing, not a regular file, a link to another user's file, or no permission. Reading the file
            raises it too, where the system fails.
    """
    from sessionlog.errors import LogNotReadable  # noqa: PLC0415 - 1 ms that a logger never needs

    try:
        link = os.lstat(path)
        fd = os.open(path, open_flags(os.O_RDONLY, *_FLAGS))
    except (OSError, ValueError) as error:
        raise LogNotReadable(f"{path}: {reason_of(error)}") from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and (not stat.S_ISLNK(link.st_mode) or status.st_uid == link.st_uid):
        raw = _LogReader(path, opener=lambda *_: fd)
        return io.BufferedReader(raw, buffer) if buffer else raw
    os.close(fd)
    regular = stat.S_ISREG(status.st_mode)
    raise LogNotReadable(f"{path}: {'a link to a file of another user' if regular else 'not a regular file'}")


class _LogReader(io.FileIO):
    """A file whose errors name it: one log that cannot be read must not look like a failure of the whole command."""

    def readinto(self, buffer: Any, /) -> int:
        with self._named():
            return super().readinto(buffer)

    def read(self, size: int | None = -1, /) -> bytes:
        with self._named():
            return super().read(size)

    def readall(self) -> bytes:
        with self._named():
            return super().readall()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            from sessionlog.errors import LogNotReadable  # noqa: PLC0415 - as in `open_log`

            raise LogNotReadable(f"{self.name}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """Say in lower-case words why the operating system refused."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def read_small(path: str, limit: int = 1 << 20) -> bytes | None:
    """Return the bytes of a small file such as config.toml; None when it does not exist."""
    if stat_path(path) is None:
        return None
    with open_log(path, buffer=0) as file:
        return file.read(limit)


real_path = os.path.realpath
"""Return the absolute path with links resolved."""
