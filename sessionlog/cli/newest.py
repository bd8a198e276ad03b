"""The default session of a command: the newest one of this folder, else of the machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from sessionlog.cli.output import fail, note
from sessionlog.cli.reporting import report_context, scan_progress
from sessionlog.errors import LogNotReadable
from sessionlog.render.escape import one_line
from sessionlog.settings import Settings
from sessionlog.sources.find import log_at

if TYPE_CHECKING:
    from sessionlog.analytics.sessions import SessionSummary


def newest_sessions(count: int, settings: Settings, directory: str | None = None) -> list[str]:
    """Return paths or ids of the newest sessions, oldest first, and name them on stderr.

    Args:
        count: How many.
        settings: They name the ledger.
        directory: Choose only among the sessions of this folder of logs.
    """
    from sessionlog.analytics.sessions import list_sessions

    with scan_progress() as progress:
        ledger = None if directory else settings.ledger_path
        env = report_context(None, settings=settings).env
        found = list_sessions(directory, env=env, ledger=ledger, progress=progress).rows
    here = ""
    with suppress(OSError):  # a folder that was deleted
        here = os.path.realpath(os.getcwd())
    existing = sorted((one for one in found if not one.archived), key=lambda one: one.last_ns or 0)
    in_folder = [one for one in existing if one.project and os.path.realpath(one.project) == here]
    chosen, scope = (in_folder, "this folder") if len(in_folder) >= count else (existing, "all")
    if len(chosen) < count:
        fail("there is only one session" if chosen else "no session is logged here yet: `sessionlog demo` writes some")
    chosen = chosen[-count:]
    names = ", ".join(f"{one.source} {one_line(one.session, 60)}" for one in chosen)
    note(f"{names}: the newest of {scope}")
    return [_target(one) for one in chosen]


def _target(one: SessionSummary) -> str:
    """Return the log's path if it holds only this session, as a path opens faster than an id; else the id."""
    try:
        log = log_at(one.path)
    except LogNotReadable:
        return one.session
    names: Sequence[str] = list(log.source.name_sessions(one.path))
    return one.path if names == [one.session] else one.session
