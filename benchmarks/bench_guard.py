"""Print what a call of `sessionlog guard` takes, as a process, against `python -c pass`.

A small home of Claude Code: one session, budgets of a day, of seven days and of a session. The hook's JSON is that of a
tool call. Each round measures every situation once:

- nothing has changed since the log was read;
- the log has one more response, far from the limits: the ledger decides as it is;
- the same near a limit, or for a new log: the log is read first;
- a budget is spent: the call is denied.

On a machine that others use CPU time is the steadier figure.

python benchmarks/bench_guard.py [--rounds 25]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, print_table

BARE = "python -c pass"
SESSION = "11111111-2222-4333-8444-555555555555"
GUARD = (*SESSIONLOG, "guard", "claude-code")
FAR = (
    '[budgets.daily]\nusd = 2000\nperiod = "day"\n[budgets.weekly]\ntokens = 2_000_000_000\nwindow = "7d"\n'
    '[budgets.each]\nrequests = 100_000\nper = "session"\n'
)
NEAR = FAR.replace("usd = 2000", "usd = {usd}").replace('period = "day"', 'period = "day"\nwarn = 99.9')
SPENT = FAR.replace("100_000", "1")


class Home:
    """A home folder with one session of Claude Code, and the guard's settings."""

    def __init__(self, folder):
        self.config = Path(folder, "config", "sessionlog", "config.toml")
        self._log = Path(folder, ".claude", "projects", "-src-api", f"{SESSION}.jsonl")
        self._count = 0
        for path in (self.config, self._log):
            path.parent.mkdir(parents=True)
        self._append({"type": "user", "message": {"role": "user", "content": "make the tests pass"}})
        for _ in range(20):
            self.respond()
        self.env = {"HOME": folder, "PATH": os.environ["PATH"], "TZ": "UTC", "PWD": folder}
        self.env |= {f"XDG_{name}_HOME": os.path.join(folder, name.lower()) for name in ("CONFIG", "DATA", "STATE")}
        self.env |= {"PYTHONPATH": str(Path(__file__).parents[1])}

    def _append(self, row):
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        row |= {"sessionId": SESSION, "cwd": "/src/api", "version": "2.1.330", "timestamp": time, "uuid": f"u-{time}"}
        with self._log.open("ab") as log:
            log.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def respond(self):
        """Log one more response with a tool call."""
        self._count += 1
        call = {"type": "tool_use", "id": f"toolu_{self._count}", "name": "Bash", "input": self._input()}
        usage = {"input_tokens": 900, "cache_read_input_tokens": 60_000, "output_tokens": 700}
        message = {"id": f"msg_{self._count}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [call]}
        self._append({"type": "assistant", "requestId": f"req_{self._count}", "message": {**message, "usage": usage}})

    def _input(self):
        return {"command": f"pytest tests/part_{self._count}.py", "description": "Run tests"}

    def hook(self):
        """The JSON of the hook before the last response's tool call."""
        where = {"session_id": SESSION, "transcript_path": str(self._log), "cwd": "/src/api"}
        call = {"tool_name": "Bash", "tool_input": self._input(), "tool_use_id": f"toolu_{self._count}"}
        return json.dumps({**where, "hook_event_name": "PreToolUse", **call}).encode()

    def run(self, command, given=b""):
        """Run a command; return its output and its wall and CPU seconds."""
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run(command, input=given, env=self.env, cwd=self.env["PWD"], capture_output=True, check=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return ended.stdout + ended.stderr, wall, cpu

    def limit_for(self, more):
        """A daily budget in US dollars that the responses up to now and so many more have used up."""
        document = json.loads(self.run([*SESSIONLOG, "status", "--json"])[0])
        return round(document["usage"]["budgets"]["daily"]["used"] * (1 + more / self._count), 6)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time a call of `sessionlog guard`.")
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        home = Home(folder)
        home.config.write_text(FAR)
        found = {}
        for number in range(rounds + 1):
            for name, run in measure_once(home):
                if number:  # the first round writes the .pyc files
                    found.setdefault(name, []).append(run)
    print(f"{rounds} rounds, {os.cpu_count()} cores\n")
    bare = found[BARE]
    rows = [
        [name, *(f"{statistics.median(run[one] for run in runs) * 1e3:.1f}" for one in (0, 1)),
         *(f"{statistics.median(run[one] for run in runs) / statistics.median(run[one] for run in bare):.1f}"
           for one in (0, 1)),
         f"{min(run[0] for run in runs) / min(run[0] for run in bare):.1f}"]
        for name, runs in found.items()
    ]  # fmt: skip
    print_table(["", "p50 ms", "CPU ms", "x pass (p50)", "(CPU)", "(min)"], rows)


def measure_once(home):
    """Yield the name of each situation with its wall and CPU seconds."""
    home.config.write_text(FAR)
    home.run([*SESSIONLOG, "usage", "--json"])
    yield BARE, home.run([sys.executable, "-c", "pass"])[1:]
    yield "allowed, nothing changed", answer(home)
    home.respond()
    yield "allowed, one more response", answer(home)
    home.config.write_text(NEAR.format(usd=home.limit_for(2)))
    home.respond()
    yield "allowed near a limit: the log is read", answer(home)
    home.config.write_text(SPENT)
    yield "denied", answer(home, denied=True)


def answer(home, *, denied=False):
    """Return the wall and CPU seconds of a hook, whose answer has to be this one."""
    printed, *seconds = home.run(GUARD, home.hook())
    assert (b"is spent" in printed) if denied else not printed, printed
    return seconds


if __name__ == "__main__":
    main()
