"""ClockReading: now by two clocks, so that setting the one on the wall does not fool what has to end in time.

The wall clock is what logs are written by; people and networks set it. The clock of the boot only runs, also while the
machine sleeps, but tells nothing of other boots. Within one boot spans are measured by it, and by the wall otherwise.
Where boots have no name (macOS, Windows) a process stands for one: what it sees itself cannot be fooled, what other
processes saw before it can.
"""

from __future__ import annotations

import os
import time

from sessionlog import files

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    Clock = Callable[[], "ClockReading"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_known: list[str] = []


class ClockReading:
    """A time by both clocks.

    Attributes:
        wall_ns: Nanoseconds since 1970 UTC.
        boot: Which boot of the machine, or which process where boots have no name; empty if it is not known.
        boot_ns: Nanoseconds of that clock; 0 if it is not known.
    """

    __slots__ = ("boot", "boot_ns", "wall_ns")

    def __init__(self, *, wall_ns: int, boot: str = "", boot_ns: int = 0) -> None:
        self.wall_ns = wall_ns
        self.boot = boot
        self.boot_ns = boot_ns


def read_clock() -> ClockReading:
    """Return the present by both clocks."""
    if not _known:
        _known.append(_boot_id() or f"process-{os.urandom(8).hex()}")
    return ClockReading(wall_ns=time.time_ns(), boot=_known[0], boot_ns=_running_ns())


def _running_ns() -> int:
    """What the clock that only runs says: the first of these that goes on while the machine sleeps."""
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        clock = getattr(time, name, None)
        if clock is not None:
            return time.clock_gettime_ns(clock)
    return time.monotonic_ns()


def _boot_id() -> str:
    if not hasattr(time, "CLOCK_BOOTTIME") or not os.path.exists(_BOOT_ID):
        return ""
    try:
        return (files.read_small(_BOOT_ID) or b"").decode("ascii", "replace").strip()
    except OSError:
        return ""
