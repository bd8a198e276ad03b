"""LogFile: one session's log, open for appending, from first open to last sync.

It knows the file's path, whether it must be opened again (deleted, forked, failed), which `seq` comes next, and what
`durability` requires. It knows nothing of events beyond the `seq` of the last line.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

from sessionlog import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.logger.syncer import Syncer

Append = Callable[[bytes], None]

_TAIL = 64 * 1024
_LARGEST_TAIL = 64 << 20
_SEQ = rb'\{[^{}]{0,300}?"seq"\s*:\s*(\d{1,18})\b'  # compiled when a session is continued


class NotSyncedError(OSError):
    """The lines are in the file, but they may not be on the disk."""


class LogFile:
    """One log file, opened by the first append and opened again when needed.

    Attributes:
        path: Where it is.
    """

    def __init__(self, directory: str, name: str, durability: str) -> None:
        self.path = os.path.join(directory, name)
        self._directory = directory
        self._name = name
        self._durability = durability
        self._open: files.AppendFile | None = None
        self._syncer: Syncer | None = None
        self._next_seq: int | None = None
        self._alone = False
        self._end: int | None = 0  # the length after our last append; None after one that failed
        self._foreign_end = 0
        self._identity: tuple[int, int] | None = None

    @property
    def is_open(self) -> bool:
        """There is a descriptor to append to."""
        return self._open is not None

    @property
    def unlocked(self) -> bool:
        """Another process does not release the lock, so lines are appended without it for a while."""
        return self._open is not None and self._open.unlocked_until > 0

    def is_empty(self) -> bool:
        """Whether the session has no event yet, from this or another writer."""
        status = files.stat_path(self.path)
        return status is None or status.st_size == 0

    def foreign_end(self) -> int:
        """Return the offset after the last bytes of another writer, as far as known; 0 if there are none. One stat.

        A file that was deleted or replaced has none: it is written from the beginning.
        """
        if self._open is not None:
            self._note(self._open)
        status = files.stat_path(self.path)
        if status is None or self._end is None or self._identity not in {None, (status.st_dev, status.st_ino)}:
            return self._foreign_end
        return status.st_size if status.st_size > self._end else self._foreign_end

    def _note_opened(self, identity: tuple[int, int] | None, size: int) -> None:
        """Update `_foreign_end` for a file just opened: its bytes are another writer's, unless we wrote them before."""
        before, self._identity = self._identity, identity
        if before in {None, self._identity} and self._end is not None and size > self._end:
            self._foreign_end = size

    def _note(self, file: files.AppendFile) -> None:
        if file.clean_end != files.NOT_APPENDED:
            self._end = file.clean_end if file.clean_end >= 0 else None
        self._foreign_end = max(self._foreign_end, file.foreign_end)

    def open(self) -> tuple[bool, int]:
        """Open the file; return (no line of it is whole yet, the seq after its last line).

        The seq is read once: after an error the writer continues its own numbers.

        Raises:
            OSError: The folder or the file cannot be made or opened.
        """
        changed = [self._directory]
        if not files.is_directory(self._directory):
            changed += files.make_directories(self._directory)
        if not self._alone and files.stat_path(self.path) is None:
            twin = _case_twin(self._directory, self._name)
            if twin is not None:
                raise FileExistsError(f"{self._name} differs from {twin} in case only")
            self._alone = True  # checked once: a folder may hold a hundred thousand logs
        file = files.AppendFile(self._directory, self._name)
        try:
            if self._durability != "os":
                for folder in changed:
                    files.sync_directory(folder)
            new, seq = file.size == 0, self._next_seq or 0
            if self._next_seq is None:
                new, seq = _next_seq(file.fd, file.size)
        except BaseException:
            file.close()
            raise
        self._next_seq = seq
        self._open = file
        self._note_opened(file.identity, file.size)
        return new, seq

    def append(self, lines: bytes) -> None:
        """Append whole lines.

        Raises:
            OSError: The lines are not in the file; `release` it, so that the next use opens it again.
        """
        assert self._open is not None
        self._open.append(lines)

    def append_once(self, lines: bytes) -> None:
        """Append whole lines unless the file has them. Raises what `append` raises."""
        assert self._open is not None
        self._open.append_once(lines)

    def make_durable(self) -> None:
        """Sync as `durability` requires before an event is acknowledged.

        Raises:
            NotSyncedError: The sync failed; `release` the file.
        """
        if self._durability == "os" or self._open is None:
            return
        try:
            if self._durability == "fsync":
                files.sync(self._open.fd)
            else:
                if self._syncer is None:
                    from sessionlog.logger.syncer import Syncer

                    self._syncer = Syncer(self._open.fd)
                self._syncer.mark_dirty()
        except Exception as error:
            raise NotSyncedError(getattr(error, "errno", None) or errno.EIO, f"not synced: {error}") from error

    def shortest_append(self) -> Append:
        """Return a function for `append` and `make_durable` with the fewest calls, valid until the file is released."""
        if self._open is not None and self._durability == "os":
            return self._open.append
        return self._append_durably

    def _append_durably(self, lines: bytes) -> None:
        self.append(lines)
        self.make_durable()

    def sync(self) -> None:
        """Sync everything that was written to the disk."""
        if self._open is not None:
            files.sync(self._open.fd)

    def release(self) -> None:
        """Close the descriptor; the next use opens the file again."""
        file, self._open = self._open, None
        syncer, self._syncer = self._syncer, None
        if syncer is not None:
            syncer.stop()
        if file is not None:
            self._note(file)
            file.close()

    def forget(self) -> None:
        """Drop all state, as after a fork: the lock is shared with the parent, the sync thread was not copied."""
        syncer, self._syncer = self._syncer, None
        if syncer is not None:
            syncer.abandon()
        self._next_seq = None
        self.release()

    def __del__(self) -> None:
        try:
            if self._syncer is not None:
                self._syncer.stop()
        except Exception:  # noqa: BLE001, S110 - at exit the modules may be gone; the last sync has been done
            pass


def _next_seq(fd: int, size: int) -> tuple[bool, int]:
    """Return (no line is whole, the seq after the last line's): a writer may have been killed in its first line."""
    count = _TAIL
    while size:
        tail = files.read_tail(fd, size, count)
        whole = count >= size
        lines = tail.split(b"\n")
        for line in reversed(lines if whole else lines[1:]):
            match = re.match(_SEQ, line.lstrip())
            if match:
                return len(lines) == 1, int(match.group(1)) + 1
        if whole or count >= _LARGEST_TAIL:
            return whole and len(lines) == 1, 0
        count *= 16
    return True, 0


def _case_twin(directory: str, name: str) -> str | None:
    """Return an entry that differs from `name` in case only: on some file systems they are one file."""
    folded = name.casefold()
    return next((entry for entry in files.list_names(directory) if entry.casefold() == folded and entry != name), None)
