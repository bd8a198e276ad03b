"""The seam to the operating system, held open: `os`, `fcntl` and `time` of `files` replaced by watched doubles.

A `Watch` sees every call before and after it is made; it may raise instead, or shorten a write.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sessionlog import files
from sessionlog.files import appending, descriptors, file_lock, paths, reading, replace, whole_files

MODULES = (files, appending, descriptors, file_lock, paths, reading, replace, whole_files)
"""The modules that are the seam, for files of this machine."""

CALLS = (
    "open", "fstat", "lseek", "write", "pread", "ftruncate", "fdatasync", "fsync", "mkdir", "stat", "chmod", "fchmod",
    "dup", "close", "link", "replace", "unlink", "rmdir", "listdir",
)  # fmt: skip

Watch = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""(name, real function, arguments, keyword arguments) → what the caller gets."""


class Double:
    """Stands for a module; the functions named go through a watch."""

    def __init__(self, module: Any, names: tuple[str, ...], watch: Watch) -> None:
        self._module = module
        for name in names:
            setattr(self, name, self._watched(name, getattr(module, name), watch))
        if hasattr(module, "supports_dir_fd"):
            self.supports_dir_fd = {self.open}

    @staticmethod
    def _watched(name: str, real: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
        return lambda *args, **kwargs: watch(name, real, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class SleepingClock:
    """A `time` whose sleep takes none: waiting is counted instead of done.

    Attributes:
        slept: Seconds that would have passed.
    """

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        """Return real time and what was slept."""
        return time.monotonic() + self.slept

    def sleep(self, seconds: float) -> None:
        """Let time pass without waiting."""
        self.slept += seconds

    time_ns = staticmethod(time.time_ns)


def put(patch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    """Replace a name in every module of the seam that has it."""
    for module in MODULES:
        if name in vars(module):
            patch.setattr(module, name, value)


@contextmanager
def watched(watch: Watch) -> Iterator[SleepingClock]:
    """Put the doubles in place; give the clock that counts the waiting."""
    clock = SleepingClock()
    with pytest.MonkeyPatch.context() as patch:
        put(patch, "os", Double(os, CALLS, watch))
        put(patch, "fcntl", Double(fcntl, ("flock",), watch))
        put(patch, "time", clock)
        yield clock
