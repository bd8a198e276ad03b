"""Print what each command costs on a small home of which nothing is new: whole processes, against `python -c pass`.

The home has the logs of three agents and four sessions of our own. Goals: JSON 3, tables 6.5, help 12 times the bare
interpreter. Rounds are interleaved; on a busy machine the least CPU time tells most.

    python benchmarks/bench_startup.py [--rounds 15] [--only WORD ...]
"""

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import SESSIONLOG, measure, print_table
from sessionlog.demo import record_demo
from sessionlog.demo.agents import write_agents

BARE = "python -c pass"
LONG_AGO = 1_700_000_000
GOALS = {"json": 3.0, "table": 6.5, "help": 12.0}
_BUDGET = '[budgets.daily]\nusd = 20\nperiod = "day"\n[budgets.weekly]\ntokens = 100_000_000\nwindow = "7d"\n'

REPORTS = {
    "usage": ["usage"], "usage --by day": ["usage", "--by", "day"], "calendar": ["calendar"], "models": ["models"],
    "sessions": ["sessions"], "tools": ["tools"], "blocks": ["blocks"], "sources": ["sources"], "status": ["status"],
    "budget": ["budget"], "ledger": ["ledger"], "pricing MODEL": ["pricing", "claude-opus-4-5"],
    "routing-quality": ["routing-quality"], "find WORD": ["find", "tests"], "yield": ["yield"], "advise": ["advise"],
    "context": ["context"], "diff": ["diff"], "audit SESSION": ["audit", "s-importer"],
    "sql SELECT": ["sql", "SELECT COUNT(*) FROM records"], "check": ["check"],
}  # fmt: skip
"""Commands that print a table, or with `--json` a document."""

OTHERS = {
    "--version": ["--version"], "status --line": ["status", "--line"], "usage --csv": ["usage", "--csv"],
    "usage --markdown": ["usage", "--markdown"], "usage --since 7d --json": ["usage", "--since", "7d", "--json"],
    "budget check": ["budget", "check"], "ledger sync": ["ledger", "sync"], "watch --once": ["watch", "--once"],
    "replay": ["replay", "--plain"], "report --html -": ["report", "--html", "-"],
    "export --dry-run": ["export", "--otlp", "http://localhost:9", "--dry-run"], "archive --dry-run": ["archive", "--dry-run"],
}  # fmt: skip


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the start of each command.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="*", help="commands whose name has one of these words")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sessionlog-bench-") as folder:
        _make_home(folder)
        commands, kinds = _commands(folder)
        if options.only:
            commands = {
                name: words for name, words in commands.items()
                if name == BARE or any(word in name for word in options.only)
            }  # fmt: skip
        measure(commands, rounds=2, folder=folder)  # reads the logs, writes the .pyc files
        found = measure(commands, rounds=options.rounds, folder=folder)
    print(f"a small home without news, stdout a pipe; {options.rounds} rounds, {os.cpu_count()} cores\n")
    bare = found[BARE]
    rows = []
    for name, runs in found.items():
        ratio, goal = min(runs.cpu) / min(bare.cpu), GOALS.get(kinds.get(name, ""))
        rows.append([
            name, f"{runs.least * 1e3:.0f}", f"{runs.median * 1e3:.0f}", f"{runs.least / bare.least:.1f}",
            f"{ratio:.1f}", "" if goal is None else f"{goal:g}", "" if goal is None or ratio <= goal else "over",
            runs.peak_mb, str(runs.code),
        ])  # fmt: skip
    print_table(["", "min ms", "median", "x pass", "x CPU", "goal", "", "peak MB", "exit"], rows)


def _make_home(folder):
    """Write the logs of three agents and of our own, and settle them, so that the ledger trusts their times."""
    for name in [name for name in os.environ if name.startswith(("SESSIONLOG_", "CODEX_", "CLAUDE_", "GEMINI_"))]:
        del os.environ[name]
    home = os.path.join(folder, "home")
    os.environ["HOME"] = home
    write_agents(home, now_ns=int(datetime.now(UTC).timestamp()) * 10**9)
    record_demo(os.path.join(folder, "state", "sessionlog", "sessions"))
    for place in (folder, *Path(folder).rglob("*")):
        os.utime(place, (LONG_AGO, LONG_AGO))
    budgets = Path(folder, "budgets", "sessionlog", "config.toml")
    budgets.parent.mkdir(parents=True)
    budgets.write_text(_BUDGET)


def _commands(folder):
    """Return the command lines by name, and the kind of each that has a goal."""
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        "import sessionlog": [sys.executable, "-c", "import sessionlog"],
        "import SessionLogger": [sys.executable, "-c", "from sessionlog import SessionLogger"],
    }
    kinds = {}
    for name, words in REPORTS.items():
        command = _with_budgets(folder, words)
        commands |= {f"{name} --json": [*command, "--json"], name: command}
        kinds |= {f"{name} --json": "json", name: "table"}
    commands |= {name: _with_budgets(folder, words) for name, words in OTHERS.items()}
    for words in ([], ["usage"], ["export"]):
        name = " ".join([*words, "--help"])
        commands[name], kinds[name] = [*SESSIONLOG, *words, "--help"], "help"
    return commands, kinds


def _with_budgets(folder, words):
    """Return a command line; those of budgets have a config file, and a ledger of their own: it is of another place."""
    own = os.path.join(folder, "budgets")
    start = ["env", f"XDG_CONFIG_HOME={own}", f"XDG_DATA_HOME={own}/data"] if words[0] == "budget" else []
    return [*start, *SESSIONLOG, *words]


if __name__ == "__main__":
    main()
