"""Print how fast and how rightly `sessionlog usage` reads the homes of Claude Code and Codex, against ccusage.

    python tests/bench/bench_agents.py [--home FOLDER | --claude-megabytes 100 --codex-megabytes 100] [--rounds 5]
        [--zst] [--no-peer | --peer BINARY]

The homes are generated with a known truth (agent_homes.py). ccusage comes from npm, into a temporary folder; its native
binary is measured, without the start of Node. Where it differs from the truth, the traps that it is known to fall for
are subtracted: what is left would be a flaw of the truth, or news.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.measure import SESSIONLOG, print_table

PEER = "ccusage@20.0.24"
FLOOR = "read every byte"
CLASSES = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COUNTED = ("requests", "failed_requests", *CLASSES)

SOURCES = {"claude-code": ("claude", "CLAUDE_CONFIG_DIR"), "codex": ("codex", "CODEX_HOME")}
"""Source → the peer's word for it (also the folder's name), and the variable that names its home."""

PEER_CAUSES = {
    "claude-code": {
        "rows without request id": "Bedrock rows have only a message id: each row of a response counts as one",
        "stale progress row": "a progress echo of a sub-agent's early row beats the sub-agent's own last row",
        "split of zeros": "cache_creation {0, 0} hides cache_creation_input_tokens",
    },
    "codex": {
        "stale count": "a snapshot out of order adds the response before it once more",
        "inherited count after a stale one": "a replay ends with such a snapshot; the right count after it is added",
        "fresh sub-agent's first count repeated within a second": "both are taken for a replay of its parent's, and dropped",
        "packed rollout": ".jsonl.zst is not read (copies of its rows in branches are: not exact)",
    },
}
"""The traps (agent_homes.Truth) that the peer falls for, measured with one small log each."""

_READ = """
import os, sys
buffer = bytearray(1 << 18)
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
"""


@dataclass(slots=True)
class Contestant:
    """One command and what its runs took.

    Attributes:
        command: What to run.
        cold: Start every round with no ledger.
        wall: Seconds of each run.
        cpu: User and system seconds of each run.
        peak: Peak memory of each run in bytes.
        code: The last exit code.
        said: The last run's output.
        complained: The last run's errors.
    """

    command: list[str]
    cold: bool = True
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    code: int = 0
    said: bytes = b""
    complained: bytes = b""

    def run(self, env, folder):
        """Run it once, with its output in files: this process must stay small and out of the way."""
        with open(f"{folder}/out", "w+b") as out, open(f"{folder}/err", "w+b") as err:
            start = time.perf_counter()
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
            _, status, usage = os.wait4(process.pid, 0)
            self.wall.append(time.perf_counter() - start)
            process.returncode = self.code = os.waitstatus_to_exitcode(status)
            self.cpu.append(usage.ru_utime + usage.ru_stime)
            self.peak.append(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
            out.seek(0)
            err.seek(0)
            self.said, self.complained = out.read(), err.read()


def main():
    """Generate, install, measure, compare."""
    parser = argparse.ArgumentParser(description="sessionlog and ccusage over the homes of coding agents.")
    parser.add_argument("--home", type=Path, help="homes that agent_homes.py has written, with their truth beside")
    parser.add_argument("--claude-megabytes", type=float, default=100)
    parser.add_argument("--codex-megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--zst", action="store_true", help="pack a share of Codex's rollouts, which ccusage cannot read"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true", help="measure sessionlog alone")
    parser.add_argument("--peer", help="a ccusage binary, in place of npm's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        home = options.home or _make_homes(folder, options)
        peer = None if options.no_peer else options.peer or _install_peer(folder)
        for source in SOURCES:
            contestants = _contestants(source, home, peer)
            for number in range(options.rounds):
                for contestant in contestants.values():
                    contestant.run(_environment(folder, source, home, contestant, number), folder)
            truth = json.loads(home.with_name(f"{home.name}.truth.json").read_text())["sources"][source]
            if not truth["bytes"]:
                continue
            _print_speed(source, truth, contestants, options.rounds)
            _print_ours(truth, contestants, lambda *by, s=source: _ask(s, home, folder, *by))
            if peer:
                _print_peer(source, truth, contestants["ccusage"])


def _make_homes(folder, options):
    home = Path(folder) / "homes"
    script = str(Path(__file__).with_name("agent_homes.py"))
    sizes = ["--claude-megabytes", str(options.claude_megabytes), "--codex-megabytes", str(options.codex_megabytes)]
    command = [sys.executable, script, "--out", str(home), *sizes, "--seed", str(options.seed)]
    command += ["--zst"] if options.zst else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return home


def _install_peer(folder):
    """The peer's native binary, or None with a word of why."""
    npm = shutil.which("npm")
    if npm is None:
        print("no npm here: ccusage is left out\n")
        return None
    quiet = ["--no-audit", "--no-fund", "--loglevel", "error", "--cache", f"{folder}/npm-cache"]
    done = subprocess.run([npm, "install", "--prefix", f"{folder}/peer", *quiet, PEER], capture_output=True, text=True)
    found = sorted(Path(folder, "peer", "node_modules", "@ccusage").glob("ccusage-*/bin/ccusage*"))
    if done.returncode or not found:
        print(f"npm could not install {PEER}: ccusage is left out\n{done.stderr.strip()}\n")
        return None
    found[0].chmod(0o755)  # npm leaves this to the package's Node wrapper
    return str(found[0])


def _contestants(source, home, peer):
    word = SOURCES[source][0]
    contestants = {FLOOR: Contestant([sys.executable, "-c", _READ, str(home / word)])}
    if peer:
        report = [peer, word, "daily", "--json", "--offline"]
        contestants["ccusage"] = Contestant(report)
        contestants["ccusage --single-thread"] = Contestant([*report, "--single-thread"])
    usage = [*SESSIONLOG, "usage", "--source", source, "--json"]
    contestants["sessionlog"] = Contestant(usage)
    contestants["sessionlog, again"] = Contestant(usage, cold=False)
    return contestants


def _environment(folder, source, home, contestant, number):
    """Nobody's settings, logs or ledger but those under `folder`; `again` finds what the run before it has left."""
    word, variable = SOURCES[source]
    ours = f"{folder}/{source}-{number}"
    if contestant.cold:
        shutil.rmtree(ours, ignore_errors=True)
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "TMPDIR"}}
    homes = {f"XDG_{name}_HOME": f"{ours}/{name.lower()}" for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    for path in (*homes.values(), f"{ours}/home", f"{ours}/sessions"):
        os.makedirs(path, exist_ok=True)
    env = kept | homes | {"HOME": f"{ours}/home", "SESSIONLOG_DIR": f"{ours}/sessions", "TZ": "UTC", "TERM": "dumb"}
    return env | {variable: str(home / word)}


def _ask(source, home, folder, *by):
    """Our report grouped otherwise, unmeasured; None if there is none."""
    asked = Contestant([*SESSIONLOG, "usage", "--source", source, "--json", "--tz", "UTC", "--by", ",".join(by)])
    asked.run(_environment(folder, source, home, asked, "asked"), folder)
    return json.loads(asked.said) if asked.code == 0 else None


def _print_speed(source, truth, contestants, rounds):
    stored = truth["stored_bytes"] / 1e6
    print(f"== {source}: {stored:.0f} MB, {truth['files']:,} files, {truth['rows']:,} rows", end="")
    print(f"; medians of {rounds} interleaved rounds, {os.cpu_count()} cores\n")
    base = contestants.get("ccusage", contestants[FLOOR])
    rows = [
        [
            name if run.code == 0 else f"{name} (exit {run.code})",
            f"{statistics.median(run.wall) * 1e3:.0f}",
            f"{stored / statistics.median(run.wall):.0f}",
            f"{statistics.median(base.wall) / statistics.median(run.wall):.2f}",
            f"{statistics.median(run.cpu):.2f}",
            f"{max(run.peak) / 1e6:.0f}",
        ]
        for name, run in contestants.items()
    ]
    compared = "x as fast as ccusage" if "ccusage" in contestants else "x as fast as reading"
    print_table(["", "wall ms", "MB/s", compared, "CPU s", "peak MB"], rows)


def _print_ours(truth, contestants, ask):
    run = contestants["sessionlog"]
    report = json.loads(run.said) if run.code == 0 and run.said else {}
    if not report.get("rows"):
        complaint = (run.complained.decode().strip().splitlines() or ["no word of why"])[0]
        print(f"\nsessionlog: reports nothing of this source (exit {run.code}: {complaint})")
        return
    print("\nsessionlog against the truth:")
    _print_differences(truth["totals"], report["totals"], COUNTED)
    by_day = ask("day", "model")
    if by_day is None:
        return
    ours = {f"{row['day']} {row['model']}": row for row in by_day["rows"]}
    wrong = _unequal(truth["by_day_model"], ours)
    print(f"days and models: {'EXACT' if not wrong else f'{len(wrong)} differ'}")
    for line in wrong[:10]:
        print(f"  {line}")


def _print_peer(source, truth, run):
    report = json.loads(run.said) if run.code == 0 else None
    if not isinstance(report, dict):
        print(f"\nccusage reports nothing (exit {run.code}): {run.complained.decode().strip()}\n")
        return
    totals = _peer_tokens(report["totals"])
    flaws = {trap: truth["traps"][trap] for trap in PEER_CAUSES[source] if trap in truth["traps"]}
    names = [name for name in CLASSES if name in totals]
    print("\nccusage against the truth:")
    _print_differences(truth["totals"], totals, names)
    rows = [[trap, *(f"{sums[name]:+,}" for name in names)] for trap, sums in flaws.items()]
    left = {name: totals[name] - truth["totals"][name] - sum(trap[name] for trap in flaws.values()) for name in names}
    print("\nwhy, as far as known:")
    print_table(["", *names], [*rows, ["UNEXPLAINED", *(f"{left[name]:+,}" for name in names)]])
    for trap in flaws:
        print(f"  {trap}: {PEER_CAUSES[source][trap]}")
    theirs = {}
    for day in report["daily"]:
        models = day.get("models") or {row["modelName"]: row for row in day["modelBreakdowns"]}
        theirs |= {f"{day['date']} {model}": _peer_tokens(row) for model, row in models.items()}
    wrong = _unequal(truth["by_day_model"], theirs)
    print(f"\ndays and models that differ: {len(wrong)} of {len(truth['by_day_model'])}")
    across = truth["kinds"].get("across midnight", 0)
    if across:
        print(f"({across} responses run across midnight; ccusage takes the day of the last row, the truth the first)")
    for line in wrong[:10]:
        print(f"  {line}")
    print()


def _peer_tokens(row):
    """The peer's names as ours; its `inputTokens` excludes cached tokens if its total says so."""
    tokens = {
        "input_tokens": row["inputTokens"],
        "output_tokens": row["outputTokens"],
        "cache_read_tokens": row["cacheReadTokens"],
        "cache_write_tokens": row["cacheCreationTokens"],
    }
    if "reasoningOutputTokens" in row:
        tokens["reasoning_tokens"] = row["reasoningOutputTokens"]
    if row.get("totalTokens") == row["inputTokens"] + row["outputTokens"]:
        tokens["input_tokens"] -= row["cacheReadTokens"]
    return tokens


def _print_differences(truth, found, names):
    if all(found.get(name, 0) == truth[name] for name in names):
        print(f"totals: EXACT ({', '.join(f'{name} {truth[name]:,}' for name in names)})")
        return
    rows = []
    for name in names:
        difference = found.get(name, 0) - truth[name]
        share = f"{difference / truth[name]:+.4%}" if truth[name] else ""
        rows.append([name, f"{truth[name]:,}", f"{found.get(name, 0):,}", f"{difference:+,}", share])
    print_table(["totals", "truth", "found", "difference", ""], rows)


def _unequal(truth, found):
    """One line for each group whose tokens differ."""
    lines = []
    for key in sorted(truth.keys() | found.keys()):
        wanted, seen = truth.get(key, {}), found.get(key, {})
        names = [name for name in CLASSES if name in seen or not seen]
        differences = {name: seen.get(name, 0) - wanted.get(name, 0) for name in names}
        if any(differences.values()):
            lines.append(f"{key}: " + ", ".join(f"{name} {n:+,}" for name, n in differences.items() if n))
    return lines


if __name__ == "__main__":
    main()
