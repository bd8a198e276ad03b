"""ClockReading: the present by two clocks, so that setting the wall clock does not change how long spans are.

Logs have wall-clock times; people and network time set that clock. The boot clock always advances, also while the
machine sleeps, but its values mean nothing in another boot. Spans within one boot are measured by the boot clock,
others by the wall clock. Where boots have no id (macOS, Windows), each process counts as a boot of its own: it detects
clock changes only within its lifetime.
"""

from __future__ import annotations

import os
import time

from sessionlog import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Clock = Callable[[], "ClockReading"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_known: list[str] = []


class ClockReading:
    """A time by both clocks.

    Attributes:
        wall_ns: Nanoseconds since 1970 UTC.
        boot: The id of the boot, or of the process where boots have none; empty if unknown.
        boot_ns: Nanoseconds of the boot clock; 0 if unknown.
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
    return ClockReading(wall_ns=time.time_ns(), boot=_known[0], boot_ns=_boot_clock_ns())


def _boot_clock_ns() -> int:
    """The boot clock: CLOCK_BOOTTIME also counts while the machine sleeps; the others stand in where it is missing."""
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
