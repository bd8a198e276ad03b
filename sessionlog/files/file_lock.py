"""The lock of an open file, which processes share. It is free again when its process ends, however that ends."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # no POSIX locks: appending works, several writers per file are not protected
    fcntl = None

LOCK_SECONDS = 0.05
TRY_EXCLUSIVE: int = getattr(fcntl, "LOCK_EX", 0) | getattr(fcntl, "LOCK_NB", 0)
UNLOCK: int = getattr(fcntl, "LOCK_UN", 0)


def lock(fd: int, seconds: float = LOCK_SECONDS) -> bool:
    """Acquire a file's exclusive lock within `seconds`; False if another process keeps it or there are no locks."""
    deadline = time.monotonic() + seconds
    while fcntl is not None:
        try:
            fcntl.flock(fd, TRY_EXCLUSIVE)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.0005)
        except OSError:
            return False
        else:
            return True
    return False


def unlock(fd: int) -> None:
    """Release the lock explicitly: a forked child may keep the descriptor open for longer."""
    fcntl.flock(fd, UNLOCK)
