"""Interrupt: end the turn of `codex exec` by SIGINT, as Ctrl-C does, because no answer of a hook ends it.

Codex runs hooks as its children. Only a run of `codex exec` is interrupted: it logs the turn as aborted and exits, and
can be resumed. The terminal program would exit as well, and there a person sees why calls are denied.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from sessionlog import files

_PROGRAM, _RUN = "codex", frozenset({"exec", "e"})
_MOST_PARENTS, _LONGEST = 4, 1 << 16


def interrupt_codex_run() -> bool:
    """Interrupt the `codex exec` that runs this process; return whether there is one.

    It is found by `/proc`, so on Linux alone: the nearest parent that runs the program, by its executable file.
    """
    process = os.getppid()
    for _ in range(_MOST_PARENTS):
        if process <= 1:
            break
        if _program(process) == _PROGRAM:
            if _RUN.isdisjoint(_read(process, "cmdline").split("\0")[1:]):
                return False
            with suppress(OSError):  # it has just ended
                os.kill(process, signal.SIGINT)
            return True
        process = _parent(process)
    return False


def _program(process: int) -> str:
    """The file name of a process's program; "" if it is not known, as that of another user's process.

    An update replaces the file while the program runs: then the system adds a mark to its name.
    """
    try:
        return os.path.basename(os.readlink(f"/proc/{process}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def _parent(process: int) -> int:
    """The parent of a process; 0 if it is not known. Field 4 of `stat`; the name in field 2 may hold anything."""
    fields = _read(process, "stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _read(process: int, name: str) -> str:
    try:
        return (files.read_small(f"/proc/{process}/{name}", _LONGEST) or b"").decode("utf-8", "replace")
    except Exception:  # noqa: BLE001 - it has ended, or is another user's
        return ""
