"""The fault loop: call N of each kind fails, for N = 1, 2, … until none is left, in each way that it can.

A scenario of a few emits is first run without faults, to count its calls. Then it is run once for every call, cause and
mode, and judged each time: emit never raises, the account adds up, acknowledged events are in the log, nothing is
glued, no descriptor is left open, and the log tells of what was lost as soon as it can.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.oracle import check_bytes, check_gaps, check_health, check_recorded, read_log
from tests.reliability.seam import watched

CAUSES = (
    "ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EPERM", "ENOENT", "ENOTDIR", "EISDIR", "ELOOP", "EMFILE", "ENFILE",
    "ENAMETOOLONG", "EFBIG", "EINTR", "EAGAIN", "ENOLCK", "ESTALE", "ENODEV", "EBADF", "short", "MemoryError",
)  # fmt: skip
MODES = ("once", "persistent", "recover")
Seam = Callable[[Any], AbstractContextManager[Any]]
"""Puts a fuse between the scenario and the system: a `Fuse`, or what has its `fault` and `armed`."""
_EVENTS = 6
_TORN = (
    b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-21T10:00:00.000000Z","data":{"v":1}}\n'
    b'{"session_id":"s","seq":1,"type":"tool.call","ts":"2026-11-21T10:0'
)
_RECOVERS_AT = 4  # in mode `recover` the fault goes away before this event


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong.

    Attributes:
        call: The function's name.
        nth: Which call of it, from 1.
        cause: A name of `CAUSES`; `short` lets a write take half of its bytes.
        mode: `once`; `persistent`, until the scenario is over; `recover`, until two thirds of it.
    """

    call: str
    nth: int
    cause: str
    mode: str


@dataclass(slots=True)
class Fuse:
    """A watch that makes the fault happen.

    Attributes:
        fault: None only counts.
        calls: How often each function was called while the scenario ran.
        armed: Whether the fault can happen now.
        fired: How often it did.
    """

    fault: Fault | None
    calls: Counter[str] = field(default_factory=Counter)
    armed: bool = True
    fired: int = 0

    def __call__(self, name: str, real: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Count the call, and let it fail if it is its turn."""
        if self.armed:
            self.calls[name] += 1
        if name in {"fsync", "fdatasync"}:
            real, args = _sync_nothing, ()  # the disk's time is not what is tested
        fault = self.fault
        if not self.armed or fault is None or name != fault.call:
            return real(*args, **kwargs)
        if self.calls[name] < fault.nth or (fault.mode == "once" and self.calls[name] > fault.nth):
            return real(*args, **kwargs)
        self.fired += 1
        if fault.cause == "short":
            descriptor, piece = args
            return real(descriptor, piece[: len(piece) // 2])
        if name == "close":
            real(*args)  # Linux closes, whatever it says
        if fault.cause == "MemoryError":
            raise MemoryError
        code = getattr(errno, fault.cause)
        raise OSError(code, os.strerror(code))


def _sync_nothing() -> None:
    return None


def all_faults(folder: Path, durability: str, *, torn: bool = False) -> Iterator[Fault]:
    """Every fault that the scenario can meet."""
    count = Fuse(None)
    run_scenario(folder, count, durability, torn=torn)
    for call, times in count.calls.items():
        for nth in range(1, times + 1):
            for cause in CAUSES:
                if cause == "short" and call != "write":
                    continue
                for mode in MODES:
                    yield Fault(call=call, nth=nth, cause=cause, mode=mode)


def run_scenario(folder: Path, fuse: Any, durability: str, seam: Seam = watched, *, torn: bool = False) -> list[str]:
    """Emit some events under a fault, one more without it, close, and judge.

    With `torn` the log is there already, and a killed writer has left half a line at its end.
    """
    before = _descriptors()
    if torn:
        (folder / "new").mkdir(mode=0o700)
        (folder / "new" / "s.jsonl").write_bytes(_TORN)
    acknowledged: list[int] = []
    with seam(fuse):
        log = SessionLogger(folder / "new", "s", durability=durability, work_dir="/w", notify=lambda text: None)  # type: ignore[arg-type]
        for n in range(_EVENTS):
            if fuse.fault is not None and fuse.fault.mode == "recover" and n == _RECOVERS_AT:
                fuse.armed = False
            size = 9_000 if n == 2 else 40
            if log.emit("llm.response" if n == 3 else "tool.call", {"n": n, "output": "x" * size}):
                acknowledged.append(n)
        fuse.armed = False
        if log.emit("tool.call", {"n": _EVENTS}):
            acknowledged.append(_EVENTS)
        health = log.health()
        log.close()
    findings = check_health(health, len(acknowledged), _EVENTS + 1)
    if acknowledged[-1:] != [_EVENTS]:
        return [*findings, f"no recovery: the event after the fault was not recorded ({health})"]
    written = read_log(log.path)
    read = {event.data.get("n") for event in written.events}
    doubtful = len(read & set(range(_EVENTS)) - set(acknowledged))  # in the file, but their sync failed
    if doubtful and (durability != "fsync" or fuse.fault is None or fuse.fault.call != "fdatasync"):
        findings.append(f"{doubtful} events are in the log that were said to be lost")
    findings += check_bytes(written) + check_gaps(written, health.dropped - doubtful)
    findings += check_recorded(written, range(_EVENTS + 1), acknowledged)
    if not written.content.endswith(b"\n"):
        findings.append("the file does not end in a newline")
    left = _open_files(_descriptors() - before)
    if left and not (fuse.fault and (fuse.fault.call, fuse.fault.cause) == ("fstat", "EBADF")):  # then it is not ours
        findings.append(f"left open: {left}")
    os.unlink(log.path)
    os.rmdir(folder / "new")
    return findings


def _descriptors() -> set[str]:
    """The numbers in use. What they stand for is asked of new ones alone: else most of the time would go there."""
    if not os.path.isdir("/proc/self/fd"):
        return set()
    names = set(os.listdir("/proc/self/fd"))
    own = os.dup(0)  # the lowest number that is free: the listing had it
    os.close(own)
    return names - {str(own)}


def _open_files(descriptors: set[str]) -> set[str]:
    names = set()
    for name in descriptors:
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if "/new" in target:
            names.add(f"{name} → {target}")
    return names
