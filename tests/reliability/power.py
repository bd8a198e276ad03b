"""Power loss, as a model: what was written is recorded, and cut at any byte that no sync has covered.

A file system may lose, truncate, zero or fill with rubbish whatever has not been synced; what has been synced stays.
So a crash state is the synced part and then any prefix of the rest, in which blocks of 512 bytes may be zeroed or
scrambled. Every such state must read back what was promised, and must go on to be a log.

    python -m tests.reliability.power --states 2000000 --seed 7
"""

import argparse
import errno
import os
import random
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sessionlog.logger import syncer
from sessionlog.logger.session_logger import SessionLogger
from tests.reliability.oracle import check_recorded, read_log
from tests.reliability.seam import watched

BLOCK = 512
EVENTS = 24
_STATES_OF_A_SESSION = 10_000
_SYNC_SECONDS = 0.002  # of `interval`: so short that a session has several syncs
_AFTER = 1_000_000  # the number of the event written after the power is back


@dataclass(slots=True)
class Recorder:
    """A watch that keeps what happens to the log, and syncs nothing.

    Attributes:
        states: (content of the file, length that is on the disk, acknowledged events) after each step.
        short: Which writes are cut short.
        writes: How many there were.
    """

    states: list[tuple[bytes, int, tuple[int, ...]]] = field(default_factory=lambda: [(b"", 0, ())])
    short: set[int] = field(default_factory=set)
    writes: int = 0
    _refuse: bool = False
    _lock: Any = field(default_factory=threading.Lock)

    def __call__(self, name: str, real: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Note writes, cuts and syncs of the regular file."""
        if name == "fsync":
            return None
        if name not in {"write", "ftruncate", "fdatasync"} or not stat.S_ISREG(os.fstat(args[0]).st_mode):
            return real(*args, **kwargs)
        with self._lock:
            return self._note(name, real, args)

    def _note(self, name: str, real: Any, args: tuple[Any, ...]) -> Any:
        content, durable, acknowledged = self.states[-1]
        if name == "fdatasync":
            self.states.append((content, len(content), acknowledged))
            return None
        if name == "ftruncate":
            self.states.append((content[: args[1]], durable, acknowledged))
            return real(*args)
        if self._refuse:
            self._refuse = False
            raise OSError(errno.ENOSPC, "No space left on device")
        self.writes += 1
        piece = args[1]
        if self.writes in self.short:  # half of it, and then there is no room for the rest
            self._refuse = True
            piece = piece[: len(piece) // 2]
        self.states.append((content + piece, durable, acknowledged))
        return real(args[0], piece)

    def acknowledge(self, number: int) -> None:
        """The event was acknowledged: from here on it has been promised."""
        with self._lock:
            content, durable, acknowledged = self.states[-1]
            self.states.append((content, durable, (*acknowledged, number)))


def record(folder: Path, durability: str, events: int, seed: int) -> Recorder:
    """Run a session, some of whose writes fail half-way, and return what happened to its file."""
    chance = random.Random(seed)
    recorder = Recorder(short=set(chance.sample(range(3, events), 2)))
    with watched(recorder):
        log = SessionLogger(folder, "s", durability=durability, work_dir="/w", notify=lambda text: None)  # type: ignore[arg-type]
        for n in range(events):
            size = chance.choice((20, 300, 2_000, 9_000))
            if log.emit("tool.call", {"n": n, "output": "x" * size}):
                recorder.acknowledge(n)
            if durability == "interval":
                time.sleep(chance.choice((0, 0, 0.002)))  # sometimes its thread comes in between
        log.close()
    os.unlink(log.path)
    return recorder


def crash_states(recorder: Recorder, count: int, seed: int) -> Iterator[tuple[bytes, tuple[int, ...], tuple[int, ...]]]:
    """Yield (what is left of the file, events acknowledged by then, events acknowledged when it was last synced)."""
    chance = random.Random(seed)
    synced: tuple[int, ...] = ()
    steps = []
    for (_, before, _), (content, durable, acknowledged) in zip(recorder.states, recorder.states[1:], strict=False):
        if durable != before:
            synced = acknowledged
        steps.append((content, durable, acknowledged, synced))
    unsynced = [step for step in steps if len(step[0]) > step[1]]
    for _ in range(count):
        content, durable, acknowledged, kept = chance.choice(unsynced if chance.random() < 0.9 else steps)
        left = bytearray(content[: chance.randint(durable, len(content))])
        if chance.random() < 0.5:
            _spoil(left, durable, chance)
        yield bytes(left), acknowledged, kept


def _spoil(left: bytearray, durable: int, chance: random.Random) -> None:
    for block in range(durable // BLOCK * BLOCK, len(left), BLOCK):
        start, end = max(block, durable), min(block + BLOCK, len(left))
        how = chance.randrange(4)
        if how == 0:
            left[start:end] = bytes(end - start)
        elif how == 1:
            left[start:end] = chance.randbytes(end - start)


def check_state(path: Path, left: bytes, promised: tuple[int, ...], events: int) -> list[str]:
    """Put the state on the disk; what was promised must be read, before and after the log is continued."""
    path.write_bytes(left)
    findings = _missing(path, promised, events)
    log = SessionLogger(path.parent, path.stem, work_dir="/w", notify=lambda text: None)
    if not log.emit("tool.call", {"n": _AFTER}):
        findings.append("the log could not be continued")
    log.close()
    findings += [f"continued: {finding}" for finding in _missing(path, (*promised, _AFTER), events)]
    path.unlink()
    return findings


def _missing(path: Path, promised: tuple[int, ...], events: int) -> list[str]:
    return check_recorded(read_log(path), [*range(events), _AFTER], promised)


@dataclass(slots=True)
class Tally:
    """What a run has seen.

    Attributes:
        states: Crash states that were read, continued and judged.
        sessions: Recorded sessions that they are of.
        findings: What must not be.
    """

    states: int = 0
    sessions: int = 0
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.states} states of {self.sessions} sessions, {len(self.findings)} findings"


def run_states(folder: Path, states: int, seed: int, minutes: float) -> Tally:
    """Judge crash states of session after session, `fsync` and `interval` in turn, until there are enough."""
    tally, until = Tally(), time.monotonic() + 60 * minutes
    with patch.object(syncer, "SYNC_SECONDS", _SYNC_SECONDS):
        while tally.states < states and not tally.findings and time.monotonic() < until:
            durability = ("fsync", "interval")[tally.sessions % 2]
            of_session = seed + tally.sessions
            recorder = record(folder, durability, EVENTS, of_session)
            tally.sessions += 1
            for left, acknowledged, synced in crash_states(recorder, _STATES_OF_A_SESSION, of_session):
                promised = acknowledged if durability == "fsync" else synced
                found = check_state(folder / "s.jsonl", left, promised, EVENTS)
                tally.findings += [f"session {of_session}, {durability}: {finding}" for finding in found]
                tally.states += 1
                if found or tally.states == states or time.monotonic() > until:
                    break
    return tally


def main() -> None:
    """Judge as many states as one likes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=2_000_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="the longest time that it may take")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        tally = run_states(Path(folder), options.states, options.seed, options.minutes)
    print(tally, *tally.findings, sep="\n")
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    raise SystemExit(1 if tally.findings else 0)


if __name__ == "__main__":
    main()
