"""Kill writers with SIGKILL in the middle of their work, over and over, and account for every event and byte.

A script of its own, for it forks. Oracle: a child writes "acknowledged k" with pwrite into a second file after emit has
returned; the parent demands {acknowledged} ⊆ {read} ⊆ {emitted}, every event once, each writer's order kept, and every
byte of the log in an event, a line end, or a Problem. Prints one JSON object; `--seed` replays a run.
"""

import argparse
import json
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time

from sessionlog.errors import Problem
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.stream import read_events

SLOT = struct.Struct("<q")
SIZES = (50, 50, 50, 300, 300, 300, 3_000, 20_000, 200_000, 1_000_000)


def write_until_killed(folder: str, acks: int, writer: int, cycle: int, seed: int) -> None:
    """The child: emit without end, and say after each emit that it was acknowledged."""
    chance = random.Random(seed)
    log = SessionLogger(folder, "victim", work_dir="/", notify=lambda text: None)
    number = 0
    while True:
        data = {"id": [cycle, writer, number], "text": "x" * chance.choice(SIZES)}
        if log.emit("tool.call", data):
            number += 1
            os.pwrite(acks, SLOT.pack(number), writer * SLOT.size)


class Account:
    """What was acknowledged in one log, and whether all of it can be read."""

    def __init__(self) -> None:
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.failures: list[str] = []
        self.events = self.torn = 0

    def settle(self, path: str) -> None:
        """Read the log and compare."""
        seen: dict[tuple[int, int], list[int]] = {}
        covered = 0
        for item in read_events(path, max_line=64 << 20):
            if isinstance(item, Problem):
                self.torn += 1
                covered += item.length
                continue
            covered += len(item.raw or b"")
            if item.type == "tool.call":
                cycle, writer, number = item.data["id"]
                seen.setdefault((cycle, writer), []).append(number)
        for key, count in self.acknowledged.items():
            numbers = seen.pop(key, [])
            self.events += len(numbers)
            if numbers != sorted(set(numbers)):
                self.failures.append(f"{key}: doubled or out of order: {numbers[:20]}")
            if not set(range(count)) <= set(numbers):
                self.failures.append(f"{key}: lost {sorted(set(range(count)) - set(numbers))[:5]} of {count}")
            if any(number > count for number in numbers):
                self.failures.append(f"{key}: read {max(numbers)} beyond the {count} emitted")
        if seen:
            self.failures.append(f"events of nobody: {list(seen)[:3]}")
        with open(path, "rb") as file:
            content = file.read()
        unaccounted = len(content) - content.count(b"\n") - covered
        if unaccounted:
            self.failures.append(f"{unaccounted} bytes neither in an event nor named as a problem")


def run(cycles: int, writers: int, seed: int, per_log: int, folder: str) -> dict[str, object]:
    """Run the cycles, a new log every `per_log` of them."""
    chance = random.Random(seed)
    account = Account()
    events = torn = 0
    failures: list[str] = []
    path = os.path.join(folder, "victim.jsonl")
    acks = os.open(os.path.join(folder, "acks"), os.O_RDWR | os.O_CREAT, 0o600)
    for cycle in range(cycles):
        os.ftruncate(acks, 0)
        children = []
        for writer in range(writers):
            child = os.fork()
            if child == 0:
                try:
                    write_until_killed(folder, acks, writer, cycle, chance.randrange(2**32) + writer)
                finally:
                    os._exit(70)
            children.append(child)
        time.sleep(chance.uniform(0.001, 0.025))
        chance.shuffle(children)
        for child in children:
            os.kill(child, signal.SIGKILL)
            time.sleep(0.001 if writers > 1 else 0)
        for child in children:
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                failures.append(f"cycle {cycle}: a writer ended by itself ({status})")
        for writer in range(writers):
            slot = os.pread(acks, SLOT.size, writer * SLOT.size)
            account.acknowledged[cycle, writer] = SLOT.unpack(slot)[0] if len(slot) == SLOT.size else 0
        if (cycle + 1) % per_log == 0 or cycle + 1 == cycles:
            if os.path.exists(path):
                account.settle(path)
                os.unlink(path)
            failures += account.failures
            events, torn = events + account.events, torn + account.torn
            account = Account()
    return {"cycles": cycles, "writers": writers, "seed": seed, "events": events, "torn": torn, "failures": failures}


def main() -> None:
    """Parse the arguments, run in a folder of its own, print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-log", type=int, default=25)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="sessionlog-kill-")
    try:
        result = run(options.cycles, options.writers, options.seed, options.per_log, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
