"""RLock: the lock for what threads share. The exception of a signal, as Ctrl-C's, never leaves it held.

Until Python 3.13 `with lock:` acquires and enters its block in one step. On 3.14 the signal's exception can come
between the two, and the block then has no end that releases: a plain lock stays held, and whoever acquires it next
waits for ever. Reentrant, because a signal handler runs in a thread that may hold the lock already.

In a generator that is a context manager the exception can come before its caller's block in every version. The lock is
released when the exception is gone, and the generator with it.
"""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class InterruptSafeRLock(_thread.RLock):  # type: ignore[misc]  # the stubs call it final; it is not
    """A reentrant lock whose `with` is atomic; `__exit__` stays C's, which an exception cannot precede."""

    __slots__ = ()
    _recursion_count: Callable[[], int]

    def __enter__(self) -> bool:  # type: ignore[override]  # without the arguments of `acquire`
        """Acquire the lock; after an exception it is as it was before."""
        held = self._recursion_count()
        try:
            return self.acquire()
        except BaseException:
            while self._recursion_count() > held:
                self.release()
            raise


RLock = _thread.RLock if sys.version_info < (3, 14) else InterruptSafeRLock  # before, some have no `_recursion_count`
