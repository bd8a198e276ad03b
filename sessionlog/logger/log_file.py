"""LogFile: the open end of one session's log, from first open to last sync.

It knows where the file is, whether it must be opened again (deleted, forked, failed), which `seq` comes next, and what
`durability` asks for. It knows nothing of events beyond the `seq` of the last line.
"""

from __future__ import annotations

import os
import re
from threading import Event as Signal
from threading import Thread

from sessionlog import files

SYNC_SECONDS = 0.5
_TAIL = 64 * 1024
_LARGEST_TAIL = 64 << 20
_SEQ = re.compile(rb'\{[^{}]{0,300}?"seq"\s*:\s*(\d{1,18})\b')


class LogFile:
    """One log file, opened late and opened again whenever that is needed."""

    def __init__(self, directory: str, name: str, durability: str) -> None:
        self.path = os.path.join(directory, name)
        self._directory = directory
        self._name = name
        self._durability = durability
        self._open: files.AppendFile | None = None
        self._syncer: _Syncer | None = None

    @property
    def is_open(self) -> bool:
        """There is a descriptor to append to."""
        return self._open is not None

    @property
    def unlocked(self) -> bool:
        """The lock's holder did not answer, so lines go in without it for a while."""
        return self._open is not None and self._open.unlocked

    def open(self) -> tuple[bool, int]:
        """Open the file; return (it is new, the seq after its last line).

        Raises:
            OSError: The folder or the file cannot be had.
        """
        if not os.path.isdir(self._directory):
            files.make_directories(self._directory)
        if files.stat_path(self.path) is None:
            twin = files.case_twin(self._directory, self._name)
            if twin is not None:
                raise FileExistsError(f"{self._name} differs from {twin} in case only")
        file = files.AppendFile(self._directory, self._name)
        if file.size == 0 and self._durability != "os":
            files.sync_directory(self._directory)
        self._open = file
        return file.size == 0, _next_seq(file.fd, file.size)

    def append(self, lines: bytes) -> None:
        """Append whole lines and do what durability asks for before returning.

        Raises:
            OSError: The lines are not (durably) in the file. The next append opens it again where that may help.
        """
        assert self._open is not None
        try:
            self._open.append(lines)
        except files.FileGoneError:
            self.release()
            raise
        if self._durability != "os":
            self._make_durable(self._open)

    def _make_durable(self, file: files.AppendFile) -> None:
        if self._durability == "fsync":
            self.sync()
        elif self._durability == "interval":
            if self._syncer is None:
                self._syncer = _Syncer(file.fd)
            if self._syncer.failed is not None:
                error = self._syncer.failed
                self.release()
                raise error
            self._syncer.dirty()

    def sync(self) -> None:
        """Push what was written to the disk; a descriptor whose sync failed is not trusted again."""
        if self._open is None:
            return
        try:
            files.sync(self._open.fd)
        except OSError:
            self.release()  # the kernel may have dropped the pages: a second sync on it would lie
            raise

    def release(self) -> None:
        """Let go of the descriptor without syncing; the next use opens the file again."""
        file, self._open = self._open, None
        syncer, self._syncer = self._syncer, None
        if syncer is not None:
            syncer.stop()
        if file is not None:
            file.close()

    def after_fork(self) -> None:
        """Forget the parent's descriptor and thread: its lock is shared, its thread did not come along."""
        self._syncer = None
        self.release()


class _Syncer:
    """The thread that `durability="interval"` asks for: it syncs at most half a second after a write."""

    def __init__(self, fd: int) -> None:
        self._fd = files.duplicate(fd)
        self._wake = Signal()
        self._stopped = False
        self.failed: OSError | None = None
        self._thread = Thread(target=self._run, name="sessionlog-sync", daemon=True)
        self._thread.start()

    def dirty(self) -> None:
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        pause = Signal()
        while True:
            self._wake.wait()
            if self._stopped:
                break
            pause.wait(SYNC_SECONDS * 0.8)
            self._wake.clear()
            try:
                files.sync(self._fd)
            except OSError as error:
                self.failed = error  # the writer's next append reports it
                break
        files.close(self._fd)

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()


def _next_seq(fd: int, size: int) -> int:
    """Return the seq after the last whole line's, 0 for an empty file."""
    count = _TAIL
    while size:
        tail = files.read_tail(fd, size, count)
        whole = count >= size
        lines = tail.split(b"\n")
        for line in reversed(lines if whole else lines[1:]):
            match = _SEQ.match(line.lstrip())
            if match:
                return int(match.group(1)) + 1
        if whole or count >= _LARGEST_TAIL:
            break
        count *= 16
    return 0
