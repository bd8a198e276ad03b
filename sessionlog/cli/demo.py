"""`sessionlog demo`: a scripted agent is recorded into a temporary folder, and every report is shown on it."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from sessionlog import files
from sessionlog.cli.output import print_text
from sessionlog.cli.replay import replay
from sessionlog.cli.routing_quality import routing_quality
from sessionlog.cli.sessions import sessions
from sessionlog.cli.usage import usage
from sessionlog.demo import record_demo


def demo(
    directory: Annotated[str | None, typer.Option("--dir", help="Record here instead of a temporary folder.")] = None,
) -> None:
    """Record a small scripted run (made-up work, real events) and show replay, sessions, usage and routing quality.

    Example: sessionlog demo
    """
    folder = directory or files.temporary_directory("sessionlog-demo-")
    session = record_demo(folder)
    _heading(f"sessionlog replay {session}")
    replay(session, directory=folder, no_pager=True)
    _heading(f"sessionlog sessions {folder}")
    sessions([folder])
    _heading(f"sessionlog usage {folder}")
    usage([folder])
    _heading(f"sessionlog routing-quality {folder}")
    routing_quality([folder])
    print_text(
        f"\nThis was a scripted agent; its logs stay in {folder}.\n"
        "Your own: `sessionlog usage`, or put `with SessionLogger() as log:` around your agent (see the README).\n"
    )


def _heading(command: str) -> None:
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 100))
    print_text(f"\n{'─' * width}\n$ {command}\n\n")
