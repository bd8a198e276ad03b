"""The shim below Python (`shim.c`), steered from inside the process that it is loaded into.

The Python seam (`seam.py`) fails calls before they are made, so it proves nothing of calls that do not go through it.
The shim sees every call that Python makes of the C library on files below one folder, and fails those for real. A child
runs the scenarios, many in one process, and answers in a file:

    LD_PRELOAD=shim.so python -m tests.reliability.shim faults FOLDER ANSWER EVERY

EVERY n: of all faults, every n-th is tried.
"""

import ctypes
import errno
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

from sessionlog.cli import main as command
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.faults import MODES, Fault, run_scenario
from tests.reliability.oracle import check_health, check_recorded, read_log
from tests.reliability.seam import SleepingClock, put, watched

SOURCE = Path(__file__).with_name("shim.c")
CAUSES = ("ENOSPC", "EIO", "EINTR", "EDQUOT", "EROFS", "EACCES", "EMFILE", "ESTALE", "EBADF", "short")
SHORT = -1
REPAIR_READS = frozenset({"read", "lseek", "fstat", "stat", "listdir", "close", "readlink"})
"""Calls that the reading half makes by itself: Python's own file objects, and folders that are walked."""


def build(folder: Path) -> Path | None:
    """Compile the shim into a folder; None where there is no compiler for it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "shim.so"
    done = subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], capture_output=True)
    return library if done.returncode == 0 else None


class Shim:
    """The shim in this process."""

    def __init__(self) -> None:
        self._c: Any = ctypes.CDLL(None)
        self._c.shim_kind.restype = ctypes.c_char_p
        for function in (self._c.shim_seen, self._c.shim_passed, self._c.shim_fired):
            function.restype = ctypes.c_long
        self._c.shim_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]
        self._kinds = [self._c.shim_kind(kind).decode() for kind in range(self._c.shim_kinds())]

    def watch(self, folder: Path) -> None:
        """Begin to count, and end what was armed."""
        self._c.shim_watch(os.fsencode(folder))

    def arm(self, fault: Fault) -> None:
        """Let a call fail from now on."""
        error = SHORT if fault.cause == "short" else getattr(errno, fault.cause)
        self._c.shim_arm(fault.call.encode(), fault.nth, error, fault.mode != "once")

    def enter(self, inside: bool) -> None:
        """Note that the Python seam sees the calls that are made now."""
        self._c.shim_enter(inside)

    def stop(self) -> None:
        """Let no call fail any more, and count no more."""
        self._c.shim_stop()

    def seen(self) -> Counter[str]:
        """How often each kind of call was made."""
        return Counter({kind: self._c.shim_seen(n) for n, kind in enumerate(self._kinds)})

    def passed(self) -> Counter[str]:
        """How often the Python seam has not seen it."""
        return Counter({kind: self._c.shim_passed(n) for n, kind in enumerate(self._kinds)})


class ShimFuse:
    """What `faults.Fuse` is, in the shim.

    Attributes:
        fault: None only counts.
    """

    def __init__(self, shim: Shim, fault: Fault | None) -> None:
        self.shim = shim
        self.fault = fault
        self._armed = True

    @property
    def armed(self) -> bool:
        """Whether the fault can happen now."""
        return self._armed

    @armed.setter
    def armed(self, armed: bool) -> None:
        self._armed = armed
        if not armed:
            self.shim.stop()


@contextmanager
def shimmed(fuse: ShimFuse) -> Iterator[None]:
    """Let the fault happen; waiting for a lock takes no time."""
    with pytest.MonkeyPatch.context() as patch:
        put(patch, "time", SleepingClock())
        if fuse.fault is not None:
            fuse.shim.arm(fuse.fault)
        try:
            yield
        finally:
            fuse.shim.stop()


@contextmanager
def compared(fuse: ShimFuse) -> Iterator[None]:
    """Let the Python seam see what it can, so that the shim knows what it does not see."""

    def watch(name: str, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        fuse.shim.enter(True)
        try:
            return real(*args, **kwargs)
        finally:
            fuse.shim.enter(False)

    with watched(watch):
        yield


def run_logger(folder: Path, fuse: ShimFuse, durability: str, seam: Any = shimmed) -> list[str]:
    """Run the scenario of `faults` under the shim."""
    fuse.shim.watch(folder / "new")
    return run_scenario(folder, fuse, durability, seam)


def run_repair(folder: Path, fuse: ShimFuse, seam: Any = shimmed) -> list[str]:
    """Damage a log, repair it under a fault while its writer goes on, repair it again without, and judge."""
    place = folder / "new"
    log = SessionLogger(place, "s", work_dir="/w", notify=lambda text: None)
    acknowledged = [n for n in range(3) if log.emit("tool.call", {"n": n})]
    with open(log.path, "ab") as file:
        file.write(b'{"session_id":"torn"\n')
    acknowledged += [n for n in range(3, 6) if log.emit("tool.call", {"n": n})]
    fuse.shim.watch(place)
    with seam(fuse):
        findings = _check_repair(place, {0, 1, 3})
        acknowledged += [n for n in range(6, 8) if log.emit("tool.call", {"n": n})]
        fuse.armed = False
        acknowledged += [n for n in range(8, 10) if log.emit("tool.call", {"n": n})]
        findings += check_health(log.health(), len(acknowledged), 10)
        findings += _check_repair(place, {0})
    log.close()
    findings += check_recorded(read_log(log.path), range(10), acknowledged)
    left = {name for name in os.listdir(place) if os.path.isfile(place / name) or os.listdir(place / name)}
    if left != {"s.jsonl", "s.jsonl.quarantine"}:  # but for an empty folder that could not be removed
        findings.append(f"left: {left}")
    elif b'{"session_id":"torn"\n' not in (place / "s.jsonl.quarantine").read_bytes():
        findings.append("the damaged bytes were not saved")
    shutil.rmtree(place)
    return findings


def _check_repair(place: Path, codes: set[int]) -> list[str]:
    """What is wrong with how `sessionlog check --repair` ends."""
    out = io.TextIOWrapper(io.BytesIO())
    with redirect_stdout(out), redirect_stderr(out):
        code = command(["check", "--repair", str(place)])
    if code in codes:
        return []
    out.seek(0)
    return [f"check --repair ended with {code}: {out.read()}"]


SCENARIOS: dict[str, Callable[..., list[str]]] = {
    "emit": lambda folder, fuse, *seam: run_logger(folder, fuse, "os", *seam),
    "fsync": lambda folder, fuse, *seam: run_logger(folder, fuse, "fsync", *seam),
    "repair": run_repair,
}


def all_faults(seen: Counter[str], reading: bool) -> Iterator[Fault]:
    """Every fault that a scenario with these calls can meet."""
    for call, times in seen.items():
        for nth, cause, mode in itertools.product(range(1, times + 1), CAUSES, MODES):
            short = cause == "short" and call != "write"
            for_ever = cause == "EINTR" and mode != "once"  # Python makes an interrupted call again, for ever
            if not short and not for_ever and not (reading and call in REPAIR_READS):
                yield Fault(call=call, nth=nth, cause=cause, mode=mode)


def run_faults(folder: Path, every: int) -> dict[str, Any]:
    """Run each scenario under every n-th of its faults; return what was found and how many runs there were."""
    shim, runs, findings = Shim(), 0, []
    for name, scenario in SCENARIOS.items():
        fuse = ShimFuse(shim, None)
        findings += [f"{name} without a fault: {finding}" for finding in scenario(folder, fuse)]
        faults = list(all_faults(shim.seen(), reading=name == "repair"))
        for fault in faults[every // 2 :: every]:
            runs += 1
            try:
                found = scenario(folder, ShimFuse(shim, fault))
            except BaseException as error:
                shim.stop()
                found = [f"raised {error!r}"]
            findings += [f"{name}: {fault}: {finding}" for finding in found]
            with suppress(FileNotFoundError):
                shutil.rmtree(folder / "new")
    return {"runs": runs, "findings": findings}


def run_comparison(folder: Path, _: int) -> dict[str, Any]:
    """Run each scenario with both seams; return how often each kind of call was made, and how often past Python's."""
    shim, answer = Shim(), {}
    for name, scenario in SCENARIOS.items():
        findings = scenario(folder, ShimFuse(shim, None), compared)
        answer[name] = {"findings": findings, "seen": +shim.seen(), "passed": +shim.passed()}
    return answer


def main() -> None:
    """Run in a child into which the shim was loaded."""
    work, folder, answer, every = sys.argv[1:]
    result = {"faults": run_faults, "comparison": run_comparison}[work](Path(folder), int(every))
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
