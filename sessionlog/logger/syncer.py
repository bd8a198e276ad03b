"""Syncer: the thread behind `durability="interval"`. What was written is on the disk half a second later.

It has a descriptor of its own, so that the writer may close the file at any time without losing a sync.
"""

from __future__ import annotations

import atexit
import sys
from threading import Event as Signal
from threading import Thread

from sessionlog import files

SYNC_SECONDS = 0.5
_MARGIN = 0.8  # the sync itself takes time too


class Syncer:
    """Syncs one file at most `SYNC_SECONDS` after it was marked dirty, and once more when it is stopped."""

    def __init__(self, fd: int) -> None:
        """Start the thread; where none can be started, `mark_dirty` syncs at once.

        Raises:
            OSError: The descriptor cannot be duplicated.
        """
        self._fd = files.duplicate(fd)
        self._dirty = Signal()
        self._stopping = Signal()
        self._failed: OSError | None = None
        self._threaded = True
        atexit.register(self._at_exit)
        try:
            Thread(target=self._run, name="sessionlog-sync", daemon=True).start()
        except RuntimeError:  # no more threads, or the interpreter is shutting down
            self._threaded = False

    def mark_dirty(self) -> None:
        """Request a sync of what was written.

        Raises:
            OSError: The last sync failed; the file must be opened again.
        """
        if self._failed is not None:
            raise self._failed
        if not self._threaded or sys.is_finalizing():  # the thread is stopped, and may hold the signals' locks
            files.sync(self._fd)
        elif not self._dirty.is_set():
            self._dirty.set()

    def stop(self) -> None:
        """Sync in the background what is dirty, then end the thread."""
        atexit.unregister(self._at_exit)
        if not self._threaded or sys.is_finalizing():
            self.abandon()
            return
        self._stopping.set()
        self._dirty.set()

    def abandon(self) -> None:
        """Close the descriptor: after a fork there is no thread that would."""
        atexit.unregister(self._at_exit)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            files.close(fd)

    def _run(self) -> None:
        while self._failed is None and not self._stopping.is_set():
            self._dirty.wait()
            self._stopping.wait(SYNC_SECONDS * _MARGIN)
            self._dirty.clear()
            self._sync()
        self.abandon()

    def _sync(self) -> None:
        try:
            files.sync(self._fd)
        except OSError as error:
            self._failed = error  # the writer's next append reports it

    def _at_exit(self) -> None:
        self._sync()
