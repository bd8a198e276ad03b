"""The kill harness: writers are killed with SIGKILL at random instants, and what they acknowledged must be in the log.

Each writer says so in a second file, with pwrite, after `emit` has returned: "acknowledged k". So the oracle does not
depend on the thing it judges. Sizes from 50 bytes to 1 MiB are mixed: SIGKILL tears a write(2) at a page boundary, and
the larger the write, the likelier it is hit. One session is used for several cycles, so that each writer meets what its
killed predecessor left.

    python -m tests.reliability.kill --cycles 100000 --writers 3 --seed 7
    python -m tests.reliability.kill --cycles 10000 --writers 2 --actors repair,sync,archive

Actors work on the log while it is written, and are killed like the writers: `repair` takes out the torn lines (the
harness adds one to each cycle, so that there is always something to do), `sync` brings a ledger up to date, `archive`
packs the log. What a killed repair had not copied yet the next one takes over, so one more is made at the end of each
session; these lines stand behind later ones, so with repairs the order within a writer is not judged.
"""

import argparse
import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.archive.keep import archive_logs
from sessionlog.errors import LogNotReadable
from sessionlog.files.replace import finish_replacing
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.repair import repair_log
from tests.reliability.children import fork, in_child, wait
from tests.reliability.oracle import check_bytes, read_log

ROOT = Path(__file__).parents[2]
CYCLES_PER_SESSION = 10
_CYCLES_PER_LEDGER = 500  # it keeps what was deleted, and the more it has, the longer each sync takes
_SIZES = (50, 300, 3_000, 20_000, 200_000, 1 << 20)
_OFTEN = (400, 300, 150, 100, 40, 10)
_ENOUGH = 4 << 20
_PATIENCE_SECONDS = 5.0
_TEXT = "0123456789abcdef" * (1 << 16)
_RECORD = 16  # bytes per writer and cycle in the second file: acknowledged, refused

Work = Callable[[str, str, int, int, int], None]
"""(folder, session, writer, seed, descriptor of the second file): writes until it is killed."""


@dataclass(slots=True)
class Tally:
    """What happened in a run.

    Attributes:
        cycles: Kills.
        acknowledged: Events whose `emit` had returned True.
        torn: Lines that a kill left unfinished.
        repaired: Lines that repairs have taken out.
        recovered: Lines that killed repairs had not copied, as far as the last repair of a session found them.
        findings: What must not be.
    """

    cycles: int = 0
    acknowledged: int = 0
    torn: int = 0
    repaired: int = 0
    recovered: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, found: dict[str, Any]) -> None:
        """Add another tally, as `asdict` gives it."""
        for name, value in found.items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        counts = f"{self.cycles} cycles, {self.acknowledged} events acknowledged, {self.torn} torn lines"
        return f"{counts}, {self.repaired} repaired, {self.recovered} recovered"


def write_until_killed(folder: str, session: str, writer: int, seed: int, second: int) -> None:
    """Emit events of mixed sizes for ever, each acknowledged in the second file."""
    chance = random.Random(seed)
    redact = chance.random() < 0.25  # a megabyte is searched for longer than it is written, and writes shall be hit
    log = SessionLogger(folder, session, work_dir="/work", redact=redact, notify=lambda text: None)
    acknowledged = refused = written = 0
    while True:
        if written > _ENOUGH:  # a starved parent kills late
            signal.pause()
        size = chance.choices(_SIZES, _OFTEN)[0]
        written += size
        if log.emit("tool.call", {"writer": writer, "n": acknowledged + refused, "output": _TEXT[:size]}):
            acknowledged += 1
        else:
            refused += 1
        record = acknowledged.to_bytes(8, "little") + refused.to_bytes(8, "little")
        os.pwrite(second, record, writer * _RECORD)


def repair_until_killed(path: Path, env: dict[str, str]) -> None:
    """Take out torn lines for ever."""
    while True:
        with suppress(LogNotReadable, OSError):  # a torn last line may be in the writing
            repair_log(path)


def sync_until_killed(path: Path, env: dict[str, str]) -> None:
    """Bring a ledger up to date for ever."""
    while True:
        aggregate_usage(env=env, ledger=env["LEDGER"], jobs=1)


def archive_until_killed(path: Path, env: dict[str, str]) -> None:
    """Pack the log for ever, whether it is closed or not."""
    for number in itertools.count():
        archive_logs(env["ARCHIVE"], env, closed_ns=-number)


ACTORS = {"repair": repair_until_killed, "sync": sync_until_killed, "archive": archive_until_killed}


def run_kills(
    folders: Sequence[Path],
    *,
    cycles: int,
    writers: int,
    seed: int,
    work: Work = write_until_killed,
    actors: Sequence[str] = (),
    minutes: float = math.inf,
) -> Tally:
    """Run kill cycles, session after session, and judge each session's log; sessions go round the folders.

    `actors` are names in `ACTORS` of what works on the log beside the writers; after `minutes` no session begins.
    """
    chance = random.Random(seed)
    tally, until = Tally(), time.monotonic() + 60 * minutes
    while tally.cycles < cycles and not tally.findings and time.monotonic() < until:
        folder = folders[tally.cycles // CYCLES_PER_SESSION % len(folders)] / "sessions"
        folder.mkdir(mode=0o700, exist_ok=True)
        if tally.cycles % _CYCLES_PER_LEDGER == 0:
            for one in folders:
                shutil.rmtree(one / "beside", ignore_errors=True)
        session = f"kill-{tally.cycles}"
        count = min(CYCLES_PER_SESSION, cycles - tally.cycles)
        second = os.open(folder / f"{session}.acknowledged", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            for cycle in range(count):
                names = range(cycle * writers, (cycle + 1) * writers)
                _run_cycle(folder, session, names, second, chance, work, actors, is_last=cycle == count - 1)
            tally.add(in_child(partial(_judge_session, folder, session, second, count, writers, actors)))
        finally:
            os.close(second)
        if not tally.findings:  # what failed is kept for a look
            for path in folder.glob(f"*{session}.*"):
                path.unlink()
    return tally


def _env(folder: Path) -> dict[str, str]:
    """An environment in which these sessions are the only logs."""
    beside = str(folder.parent / "beside")
    return {"HOME": beside, "SESSIONLOG_DIR": str(folder), "LEDGER": f"{beside}/ledger", "ARCHIVE": f"{beside}/archive"}


def _run_cycle(
    folder: Path,
    session: str,
    names: range,
    second: int,
    chance: random.Random,
    work: Work,
    actors: Sequence[str],
    *,
    is_last: bool,
) -> None:
    children: list[int] = []
    path = folder / f"{session}.jsonl"
    if actors:
        if path.exists() and path.stat().st_size:  # a log begins with a session.start
            with path.open("ab") as file:
                file.write(b'{"session_id":"torn"\n')
        children += [fork(lambda act=ACTORS[actor]: act(path, _env(folder))) for actor in actors]
    for name in names:
        seed = chance.getrandbits(32)
        children.append(fork(lambda name=name, seed=seed: work(str(folder), session, name, seed, second)))
    chance.shuffle(children)
    time.sleep(chance.uniform(0.0005, 0.004 if not actors else 0.04))  # actors take longer to begin
    if is_last and "repair" in actors:  # however busy the machine is, one repair of each session comes to its end
        _wait_for(Path(f"{path}.quarantine"))
    for child in children:  # the first dies while the others write, and then they go as well
        os.kill(child, signal.SIGKILL)
        if len(children) > 1:
            time.sleep(chance.uniform(0.0, 0.0015))
    for child in children:
        wait(child)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.001)


def _judge_session(
    folder: Path, session: str, second: int, cycles: int, writers: int, actors: Sequence[str]
) -> dict[str, Any]:
    """Judge a session and its ledger: in a process of its own, because what is forked from a small one begins sooner."""
    tally, path = Tally(cycles=cycles), folder / f"{session}.jsonl"
    if "repair" in actors:
        tally.recovered = finish_replacing(str(path)) or 0
    _judge(path, second, cycles * writers, tally, in_order="repair" not in actors)
    if actors:
        _judge_ledger(_env(folder), tally)
    return asdict(tally)


def _judge(path: Path, second: int, names: int, tally: Tally, *, in_order: bool) -> None:
    content = os.pread(second, names * _RECORD, 0).ljust(names * _RECORD, b"\0")
    if not path.exists():
        if content.strip(b"\0"):
            tally.findings.append(f"{path}: events were acknowledged, but there is no log")
        return
    log = read_log(path)
    read: dict[int, list[int]] = defaultdict(list)
    for event in log.of_type("tool.call"):
        read[event.data["writer"]].append(event.data["n"])
    findings = check_bytes(log)
    for name in range(names):
        acknowledged = int.from_bytes(content[name * _RECORD :][:8], "little")
        refused = int.from_bytes(content[name * _RECORD + 8 :][:8], "little")
        tally.acknowledged += acknowledged
        if refused:
            findings.append(f"writer {name}: {refused} events were refused")
        got = read.pop(name, []) if in_order else sorted(read.pop(name, []))
        if got not in (list(range(acknowledged)), list(range(acknowledged + 1))):  # one may have been on its way
            findings.append(f"writer {name}: {acknowledged} acknowledged, the log has {_shown(got)}")
    findings += [f"writer {name} never existed" for name in read]
    tally.torn += sum(1 for problem in log.problems if problem.length)
    quarantine = Path(f"{path}.quarantine")
    tally.repaired += quarantine.read_bytes().count(b"\n") if quarantine.exists() else 0
    tally.findings += [f"{path}: {finding}" for finding in findings]


def _judge_ledger(env: dict[str, str], tally: Tally) -> None:
    """The ledger that killed syncs have left says what the logs say."""
    kept = aggregate_usage(env=env, ledger=env["LEDGER"], jobs=1, live=True).to_dict()
    scanned = aggregate_usage(env=env, ledger=None, jobs=1, live=True).to_dict()
    if (kept["totals"], kept["rows"]) != (scanned["totals"], scanned["rows"]):
        tally.findings.append(f"{env['SESSIONLOG_DIR']}: the ledger has {kept['totals']}, the logs {scanned['totals']}")


def _shown(numbers: list[int]) -> str:
    wrong = [n for at, n in enumerate(numbers) if n != at]
    return f"{len(numbers)} events, the first out of place: {wrong[:3]}"


def run_apart(folders: Sequence[Path], *, cycles: int, writers: int, seed: int, actors: Sequence[str] = ()) -> Tally:
    """Do what `run_kills` does in a process of its own: forks of a large one take ten times as long as what they do."""
    command = [
        sys.executable, "-m", "tests.reliability.kill", "--json", f"--cycles={cycles}", f"--writers={writers}",
        f"--seed={seed}", f"--actors={','.join(actors)}", *(f"--folder={folder}" for folder in folders),
    ]  # fmt: skip
    out = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    try:
        return Tally(**json.loads(out.stdout))
    except ValueError:
        raise AssertionError(f"the harness ended with {out.returncode}: {out.stderr}") from None


def main() -> None:
    """Run as many cycles as one likes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--actors", default="", help=f"comma-separated: {', '.join(ACTORS)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no session after this time")
    parser.add_argument("--folder", action="append", help="where logs are written; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    if not options.json:
        print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        tally = run_kills(
            [Path(folder) for folder in options.folder or [temporary]],
            cycles=options.cycles, writers=options.writers, seed=options.seed,
            actors=[name for name in options.actors.split(",") if name], minutes=options.minutes,
        )  # fmt: skip
    if options.json:
        print(json.dumps(asdict(tally)))
    else:
        print(tally, *tally.findings, sep="\n")
    raise SystemExit(1 if tally.findings or not tally.cycles else 0)


if __name__ == "__main__":
    main()
