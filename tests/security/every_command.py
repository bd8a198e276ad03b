"""Every command of the program, over a home in which several agents have left logs, some of them damaged."""

import os
import shutil
from pathlib import Path

from sessionlog.cli.app import COMMANDS
from tests.security.commands import NOW, STORY, run
from tests.sources.homes import LONG_AGO, all_cases, build_home

AGENTS = ("claude-code", "codex", "opencode", "gemini", "kimi", "llm", "pi", "otel")
OTHERS = frozenset(
    {"chat", "guard", "mcp", "run", "export", "ui"}
)  # they wait for input, start another program, or need a server


def build_logs(folder, monkeypatch):
    """Homes of some agents and sessions of our own, all found by the environment; returns the folders of logs."""
    home = Path(os.environ["HOME"])
    home.mkdir(exist_ok=True)
    for agent in AGENTS:
        case = next(case for case in all_cases() if case.startswith(f"{agent}/"))
        made = build_home(case, folder / agent)
        shutil.copytree(made, home, dirs_exist_ok=True)
        shutil.rmtree(made)
    own = folder / "own"
    own.mkdir(exist_ok=True)
    story = Path(STORY).read_bytes()
    lines = story.splitlines(keepends=True)
    (own / "whole.jsonl").write_bytes(story)
    (own / "torn.jsonl").write_bytes(story[:-40])
    (own / "damaged.jsonl").write_bytes(b"".join([*lines[:2], lines[2][:30] + b"\n", b"\0" * 50 + b"\n", *lines[3:]]))
    for path in own.iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO))
    config = folder / "config.toml"
    config.write_text('[budgets.daily]\nusd = 1\nperiod = "day"\n')
    monkeypatch.setenv("SESSIONLOG_CONFIG", str(config))
    monkeypatch.setenv("SESSIONLOG_DIR", str(own))
    return home, own


def all_commands(own):
    """A command line of each command, and of those that have several; some fail, as they would for a person."""
    whole, damaged = str(own / "whole.jsonl"), str(own / "damaged.jsonl")
    timed = ["--now", NOW, "--tz", "UTC"]
    lines = [
        ["usage", *timed], ["usage", "--json", "--by", "session,model", *timed], ["usage", "--no-ledger", *timed],
        ["usage", str(own), "--strict", *timed], ["sessions", *timed], ["tools", *timed], ["blocks", *timed],
        ["models", *timed], ["yield", *timed], ["advise", *timed],
        ["report", "--html", str(own.parent / "report.html"), "--pages", str(own.parent / "pages"), *timed],
        ["routing-quality", *timed], ["status", "--now", NOW], ["status", whole, "--json", "--now", NOW],
        ["budget", "--now", NOW], ["budget", "check"], ["budget", "reset"], ["sources"], ["sources", "--json"],
        ["find", "the", "--now", NOW], ["find", "--file", "app.py", "--json"], ["find", "--error", "failed"],
        ["replay", whole, "--plain"], ["replay", damaged, "--json"], ["replay", "whole", "--plain"],
        ["context", damaged, "--full"], ["audit", whole], ["diff", whole, damaged], ["watch", "--once", "--now", NOW],
        ["check"], ["check", str(own), "--json", "--strict"], ["scrub"], ["scrub", str(own), "--write", str(own.parent / "clean")],
        ["sql", "SELECT count(*) FROM usage"], ["sql", "--events", "FROM events", "--json"], ["ledger"], ["ledger", "sync"], ["ledger", "verify"], ["ledger", "rebuild"],
        ["ledger", "backup", str(own.parent / "backup" / "copy.sqlite")], ["ledger", "forget", "--yes", "--before", "2026-01-01"],
        ["archive", "--now", NOW], ["archive", "--json", "--now", NOW], ["pricing", "claude-opus-4-5"], ["demo"],
    ]  # fmt: skip
    assert {line[0] for line in lines} == set(COMMANDS) - OTHERS
    return lines


def run_all(own):
    """Run them; returns (command line, its outcome) of each."""
    return [(line, run(*line)) for line in all_commands(own)]
