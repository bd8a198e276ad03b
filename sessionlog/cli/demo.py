"""`sessionlog demo`: write made-up logs into a temporary folder, and show reports on them."""

from __future__ import annotations

import os
import shlex
import shutil
from time import time_ns

from sessionlog import files
from sessionlog.cli.options import settings_of
from sessionlog.cli.output import print_text
from sessionlog.cli.replay import replay
from sessionlog.cli.reports import report_function
from sessionlog.cli.routing_quality import routing_quality
from sessionlog.demo import record_demo
from sessionlog.demo.agents import write_agents
from sessionlog.render.escape import terminal


def demo(*, directory: str | None) -> None:
    """Write logs of three agents and of a scripted one (made-up work, real formats), and show the reports on them.

    Example: sessionlog demo
    """
    folder = directory or files.temporary_directory("sessionlog-demo-")
    home, sessions = os.path.join(folder, "agents"), os.path.join(folder, "sessions")
    session = record_demo(sessions)
    write_agents(home, now_ns=time_ns())
    steps: tuple[tuple[str, dict[str, list[str]], str], ...] = (
        ("usage", {}, "What Claude Code, Codex and Gemini CLI used here, and what that cost."),
        ("usage", {"by": ["day,model"]}, "On which days, drawn to scale."),
        ("sessions", {}, "What they did, and how each session ended."),
        ("tools", {}, "Which tools they called, and which of these failed."),
    )
    for name, options, text in steps:
        _heading(text, name, *(word for option, value in options.items() for word in (f"--{option}", *value)), home)
        report_function(name)(**settings_of(name, {"paths": [home], **options}))
    _heading("A session that a program recorded with SessionLogger, as a conversation.",
             "replay", session.partition("-")[0], "--dir", sessions)  # fmt: skip
    replay(**settings_of("replay", {"target": session, "directory": sessions, "no_pager": True}))
    _heading("If you route requests among providers: how often the router's choice was kept.",
             "routing-quality", sessions)  # fmt: skip
    routing_quality(**settings_of("routing-quality", {"paths": [sessions]}))
    print_text(
        f"\nAll of this was made up; the logs stay in {terminal(folder)}.\n"
        "Your own: `sessionlog usage`, or put `with SessionLogger() as log:` around your agent (see the README).\n"
    )


def _heading(text: str, *words: str) -> None:
    """Print what comes next, and the command as the user can type it."""
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 100))
    print_text(f"\n{'─' * width}\n{text}\n$ sessionlog {terminal(shlex.join(words))}\n\n")
