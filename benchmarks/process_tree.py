"""The memory of a process and its workers together: what `wait4` tells is only the greatest of them.

Pages that workers share with the process that forked them are counted once (Linux's proportional set size). A process
without children is left in peace: its own peak is exact afterwards.
"""

from __future__ import annotations

import os
import threading
from typing import Self

_INTERVAL = 0.02
"""Seconds between two looks; each look at a tree costs well below a millisecond."""


class TreeMemory(threading.Thread):
    """Looks at a tree of processes until told to stop.

    Attributes:
        peak: The greatest sum seen, in bytes; 0 if there never were children, or where there is no /proc.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._pid = pid
        self._done = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()

    def run(self) -> None:
        """Look, wait, look again."""
        while not self._done.wait(_INTERVAL):
            tree = _tree(self._pid)
            if len(tree) > 1:
                self.peak = max(self.peak, sum(map(_proportional, tree)))


def _tree(pid: int) -> list[int]:
    try:
        found = [pid]
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    found += _tree(int(child))
    except OSError:  # it has ended
        return []
    return found


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:")), 0)
    except OSError:
        return 0
