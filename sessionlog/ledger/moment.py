"""Moment: now by two clocks, so that setting the one on the wall does not fool what has to end in time.

The wall clock is what logs are written by; people and networks set it. The clock of the boot only runs, also while the
machine sleeps, but tells nothing of other boots. Within one boot spans are measured by it, and by the wall otherwise.
"""

from __future__ import annotations

import os
import time

from sessionlog import files

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    Clock = Callable[[], "Moment"]

_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_known: list[str] = []


class Moment:
    """A time by both clocks.

    Attributes:
        wall_ns: Nanoseconds since 1970 UTC.
        boot: Which boot of the machine; empty where the system has no name for it.
        boot_ns: Nanoseconds since then; 0 where there is no name.
    """

    __slots__ = ("boot", "boot_ns", "wall_ns")

    def __init__(self, *, wall_ns: int, boot: str = "", boot_ns: int = 0) -> None:
        self.wall_ns = wall_ns
        self.boot = boot
        self.boot_ns = boot_ns


def moment_now() -> Moment:
    """Return the present by both clocks."""
    if not _known:
        _known.append(_boot_id())
    if not _known[0]:
        return Moment(wall_ns=time.time_ns())
    clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Moment(wall_ns=time.time_ns(), boot=_known[0], boot_ns=time.clock_gettime_ns(clock))


def _boot_id() -> str:
    if not hasattr(time, "CLOCK_BOOTTIME") or not os.path.exists(_BOOT_ID):
        return ""
    try:
        return (files.read_small(_BOOT_ID) or b"").decode("ascii", "replace").strip()
    except OSError:
        return ""
