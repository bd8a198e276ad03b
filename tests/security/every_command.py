"""Every command of the program, over a home in which several agents have left logs, some of them damaged."""

import asyncio
import io
import json
import os
import shutil
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sessionlog.cli.app import COMMANDS, SUBCOMMANDS
from tests.security.commands import NOW, STORY, run
from tests.sources.homes import LONG_AGO, all_cases, build_home

AGENTS = ("claude-code", "codex", "opencode", "gemini", "kimi", "llm", "pi", "otel")
NAMES = frozenset(COMMANDS) | {f"{name} {word}" for name, words in SUBCOMMANDS.items() for word in words}
"""All commands, with their subcommands."""

_ASK = """
import os, urllib.request
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", b'{"model": "m", "messages": []}')
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10)
except OSError:
    pass
"""
"""A program that asks a model; nobody listens at its server."""

_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


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
    """A command line of each command, and of those that have several; some fail, as they would for a person.

    What reads stdin or a terminal is run by `run_line`.
    """
    beside = own.parent
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
        ["export", str(beside / "place"), "--parquet", "--events"], ["export", "--otlp", "http://192.0.2.1:4318", "--dry-run"],
        ["run", "--dir", str(beside / "recorded"), "--upstream", "openai=http://127.0.0.1:9", "--", sys.executable, "-c", _ASK],
        ["chat", f"{__name__}:answer", "--dir", str(beside / "chats")],
        ["guard", "claude-code"], ["guard", "codex", "--strict"], ["guard", "--install", "claude-code"],
        ["mcp"], ["ui"],
    ]  # fmt: skip
    assert {name for line in lines for name in (line[0], " ".join(line[:2])) if name in NAMES} == NAMES
    return lines


def run_all(own):
    """Run them; returns (command line, its outcome) of each."""
    return [(line, run_line(line)) for line in all_commands(own)]


def run_line(line):
    """Run a command line; `chat`, `guard` and `mcp` are told something on stdin, `ui` is looked at on a screen."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(_Stdin(line[0]))))
        patch.setattr("sessionlog.cli.guard._SECONDS", 60.0)  # its end would be that of this process
        if line[0] == "ui":
            _on_a_screen(patch, shown)
        outcome = run(*line)
    if not outcome.code:  # else it was a place that cannot be used
        assert line[0] != "ui" or shown
        assert line[0] != "mcp" or b"sessionlog.usage/1" in outcome.out
    return outcome


def answer(messages, **options):
    """The agent of `chat`."""
    return f"hello, {len(messages)}"


class _Stdin(io.RawIOBase):
    """What a command reads; that of `mcp` ends when the last question is answered, as a client would end it."""

    def __init__(self, command):
        self.left, self.waits = _stdin(command).encode(), command == "mcp"

    def readable(self):
        return True

    def readinto(self, buffer):
        for _ in range(3000 if self.waits and not self.left else 0):
            if b'"id":1,' in sys.stdout.buffer.getvalue():
                break
            time.sleep(0.01)
        piece, self.left = self.left[: len(buffer)], self.left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


def _stdin(command):
    """The text that a command reads."""
    if command == "chat":
        return "hello\n/usage\n"
    if command == "guard":
        home = Path(os.environ["HOME"])
        log = next(iter(sorted(home.glob(".claude/projects/*/*.jsonl"))), home / "none.jsonl")
        hook = {"session_id": log.stem, "transcript_path": str(log), "cwd": "/w", "hook_event_name": "PreToolUse",
                "tool_name": "Bash", "tool_input": {"command": "ls"}}  # fmt: skip
        return json.dumps(hook)
    if command == "mcp":
        calls = [("initialize", _HELLO), ("tools/call", {"name": "usage", "arguments": {"since": None}})]
        asked = [{"jsonrpc": "2.0", "id": n, "method": name, "params": given} for n, (name, given) in enumerate(calls)]
        asked.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return "".join(f"{json.dumps(one)}\n" for one in asked)
    return ""


def _on_a_screen(patch, shown):
    """Let `ui` take its streams for a terminal, open the first session if there is one, and quit."""
    app = pytest.importorskip("sessionlog.ui.app", reason="the terminal application needs sessionlog[tui]")

    has_logs = os.path.isdir(os.environ["SESSIONLOG_DIR"])

    async def look(self):
        async with self.run_test(size=(120, 30)) as pilot:
            await _until(pilot, "whole" if has_logs else "No sessions")
            if has_logs:
                await pilot.press("enter")
                await _until(pilot, "▸")
            shown.append("all")
            await pilot.press("q")

    terminal = SimpleNamespace(isatty=lambda: True)
    patch.setattr("sessionlog.cli.ui.sys", SimpleNamespace(stdin=terminal, stdout=terminal, stderr=terminal))
    patch.setattr(app.SessionlogApp, "run", lambda self: asyncio.run(look(self)))


async def _until(pilot, word):
    """Wait until a word is on the screen."""
    text = ""
    for _ in range(1000):
        await pilot.pause(0.01)
        strips = pilot.app.screen._compositor.render_strips()
        text = "\n".join("".join(segment.text for segment in strip) for strip in strips)
        if word in text:
            return
    raise AssertionError(text)
