"""`sessionlog demo`: a scripted agent is recorded into a temporary folder, and every report is shown on it."""

from __future__ import annotations

import shlex
import shutil

from sessionlog import files
from sessionlog.cli.options import settings_of
from sessionlog.cli.output import print_text
from sessionlog.cli.replay import replay
from sessionlog.cli.reports import command_of
from sessionlog.cli.routing_quality import routing_quality
from sessionlog.demo import record_demo
from sessionlog.render.escape import terminal


def demo(*, directory: str | None) -> None:
    """Record a small scripted run (made-up work, real events), and show every report on it.

    Example: sessionlog demo
    """
    folder = directory or files.temporary_directory("sessionlog-demo-")
    session = record_demo(folder)
    _heading("replay", session.partition("-")[0], "--dir", folder)
    replay(**settings_of("replay", {"target": session, "directory": folder, "no_pager": True}))
    _heading("sessions", folder)
    command_of("sessions")(**settings_of("sessions", {"paths": [folder]}))
    _heading("usage", folder)
    command_of("usage")(**settings_of("usage", {"paths": [folder]}))
    _heading("routing-quality", folder)
    routing_quality(**settings_of("routing-quality", {"paths": [folder]}))
    print_text(
        f"\nThis was a scripted agent; its logs stay in {terminal(folder)}.\n"
        "Your own: `sessionlog usage`, or put `with SessionLogger() as log:` around your agent (see the README).\n"
    )


def _heading(*words: str) -> None:
    """Say the command as it can be typed; of a session's id the time is enough."""
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 100))
    print_text(f"\n{'─' * width}\n$ sessionlog {terminal(shlex.join(words))}\n\n")
