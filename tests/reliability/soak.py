"""The soak: writers, followers and a syncer run side by side, writers are killed and begin again, and nothing grows.

Each second the memory (resident set) and the open descriptors of every process are read from /proc; after a warm-up they
must stay flat. At the end what each writer acknowledged is in the logs, once and in order, followers have seen all of
it, and the ledger equals a scan.

    python -m tests.reliability.soak --minutes 30
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import Problem
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.follow import follow
from tests.reliability.children import fork, wait
from tests.reliability.oracle import check_bytes, read_log

WRITERS = 4
PAUSE_SECONDS = 0.002
_GROWTH = 1.10
"""How much more memory than after the warm-up is flat: allocators keep what they have had."""
_SLACK_KB = 4_096
_OPEN_FOR_A_MOMENT = 8
"""Descriptors of a ledger, of what SQLite keeps beside it, and of the log that is read."""
_RECORD = 8


@dataclass(slots=True)
class Soaked:
    """What a soak has seen.

    Attributes:
        seconds: How long it took.
        acknowledged: Events whose `emit` had returned True.
        kills: Writers that were killed and begun again.
        syncs: Reports that the syncer has made.
        memory: Process → (kilobytes after the warm-up, the most after that).
        descriptors: Process → the same of open descriptors.
        findings: What must not be.
    """

    seconds: float = 0.0
    acknowledged: int = 0
    kills: int = 0
    syncs: int = 0
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)
    descriptors: dict[str, tuple[int, int]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.seconds:.0f} s, {self.acknowledged} events acknowledged, {self.kills} kills, {self.syncs} syncs",
            *(
                f"{name}: {before / 1024:.1f} MB, at most {most / 1024:.1f} MB; descriptors {self.descriptors[name]}"
                for name, (before, most) in self.memory.items()
            ),
        ]
        return "\n".join(lines)


class _Home:
    """Where the soak happens; a counter for each writer, follower and the syncer in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.sessions = folder / "sessions"
        self.sessions.mkdir(mode=0o700)
        self.env = {"HOME": str(folder), "SESSIONLOG_DIR": str(self.sessions)}
        self.ledger = str(folder / "ledger" / "ledger.sqlite")
        self.counters = os.open(folder / "counters", os.O_RDWR | os.O_CREAT, 0o600)

    def log(self, writer: int) -> Path:
        return self.sessions / f"soak-{writer}.jsonl"

    def count(self, place: int, value: int) -> None:
        os.pwrite(self.counters, value.to_bytes(_RECORD, "little"), place * _RECORD)

    def counted(self, place: int) -> int:
        return int.from_bytes(os.pread(self.counters, _RECORD, place * _RECORD), "little")


def _write(home: _Home, writer: int, pause: float) -> None:
    """Emit events for ever, numbered on from where the killed predecessor was."""
    with SessionLogger(home.sessions, f"soak-{writer}", notify=lambda text: None) as log:
        number = home.counted(writer)
        while True:
            if log.emit(
                "llm.response", {"n": number, "usage": {"input": 3, "output": 1}, "text": "x" * (number % 900)}
            ):
                number += 1
                home.count(writer, number)
            time.sleep(pause)


def _follow(home: _Home, writer: int) -> None:
    """Read a log as it grows."""
    for item in follow(str(home.log(writer))):
        if not isinstance(item, Problem) and item.type == "llm.response":
            home.count(WRITERS + writer, max(home.counted(WRITERS + writer), item.data["n"] + 1))


def _sync(home: _Home) -> None:
    """Bring a ledger up to date for ever."""
    done = 0
    while True:
        aggregate_usage(env=home.env, ledger=home.ledger, jobs=1)
        done += 1
        home.count(2 * WRITERS, done)
        time.sleep(0.05)


def run_soak(folder: Path, *, seconds: float, seed: int, pause: float = PAUSE_SECONDS) -> Soaked:
    """Run everything for so long, a fifth of it to warm up, and judge it."""
    home, soaked, chance = _Home(folder), Soaked(), random.Random(seed)
    for writer in range(WRITERS):
        with SessionLogger(home.sessions, f"soak-{writer}") as log:
            log.emit("note", {})
    works: dict[str, Callable[[], None]] = {
        **{f"writer {n}": lambda n=n: _write(home, n, pause) for n in range(WRITERS)},
        **{f"follower {n}": lambda n=n: _follow(home, n) for n in range(2)},
        "syncer": lambda: _sync(home),
    }
    children = {name: fork(work) for name, work in works.items()}
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        time.sleep(min(1.0, seconds / 20))
        for name, pid in children.items():
            if name != "writer 0":  # of this one the memory would begin anew
                _sample(soaked, name, pid, warm=passed > seconds / 5)
        if chance.random() < 0.2:
            os.kill(children["writer 0"], signal.SIGKILL)
            wait(children["writer 0"])
            children["writer 0"] = fork(works["writer 0"])
            soaked.kills += 1
    for name, pid in children.items():
        if name.startswith("writer"):
            os.kill(pid, signal.SIGKILL)
            wait(pid)
    deadline = time.monotonic() + 10
    while any(home.counted(WRITERS + n) < home.counted(n) for n in range(2)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for name, pid in children.items():
        if not name.startswith("writer"):
            os.kill(pid, signal.SIGKILL)
            wait(pid)
    soaked.seconds = time.monotonic() - begun
    _judge(home, soaked)
    return soaked


def _sample(soaked: Soaked, name: str, pid: int, *, warm: bool) -> None:
    status = Path(f"/proc/{pid}/status").read_text()
    memory = int(status.partition("VmRSS:")[2].split()[0])
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    for kept, value in ((soaked.memory, memory), (soaked.descriptors, descriptors)):
        before, most = kept.get(name, (value, value))
        kept[name] = (before, max(most, value)) if warm else (value, value)


def _judge(home: _Home, soaked: Soaked) -> None:
    soaked.syncs = home.counted(2 * WRITERS)
    for writer in range(WRITERS):
        log, acknowledged = read_log(home.log(writer)), home.counted(writer)
        soaked.acknowledged += acknowledged
        numbers = [event.data["n"] for event in log.of_type("llm.response")]
        # a killed writer may have written one that it did not acknowledge: its successor gives that number again
        if list(dict.fromkeys(numbers)) not in (list(range(acknowledged)), list(range(acknowledged + 1))):
            soaked.findings.append(f"writer {writer}: {acknowledged} acknowledged, {len(numbers)} in the log")
        if len(numbers) > acknowledged + 1 + (soaked.kills if not writer else 0):
            soaked.findings.append(f"writer {writer}: events are in the log twice")
        soaked.findings += check_bytes(log)
        if writer < 2 and home.counted(WRITERS + writer) < acknowledged:
            soaked.findings.append(f"follower {writer} has seen {home.counted(WRITERS + writer)} of {acknowledged}")
    for name, (before, most) in soaked.memory.items():
        if most > before * _GROWTH + _SLACK_KB:
            soaked.findings.append(f"{name}: memory grew from {before} to {most} kB")
    for name, (before, most) in soaked.descriptors.items():
        if most > before + _OPEN_FOR_A_MOMENT:
            soaked.findings.append(f"{name}: {before} descriptors became {most}")
    kept = aggregate_usage(env=home.env, ledger=home.ledger, jobs=1, live=True).to_dict()
    scanned = aggregate_usage(env=home.env, ledger=None, jobs=1, live=True).to_dict()
    if kept["totals"] != scanned["totals"]:
        soaked.findings.append(f"the ledger has {kept['totals']}, the logs have {scanned['totals']}")


def main() -> None:
    """Soak for as long as one likes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        soaked = run_soak(Path(folder), seconds=options.minutes * 60, seed=options.seed)
    print(soaked, *soaked.findings, sep="\n")
    sys.exit(1 if soaked.findings else 0)


if __name__ == "__main__":
    main()
