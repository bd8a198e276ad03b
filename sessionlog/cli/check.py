"""`sessionlog check`: is every byte of these logs readable, and what else is odd about them?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from sessionlog import files
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, note, print_json, print_text
from sessionlog.errors import LogNotReadable
from sessionlog.reader.check import FileCheck, check_logs
from sessionlog.reader.repair import repair_log
from sessionlog.reader.stream import MAX_LINE
from sessionlog.render.check import check_document, render_check, render_repair


def check(
    paths: r.Paths = None,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Move damaged bytes to NAME.quarantine.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Notes count as findings too.")] = False,
    secrets: Annotated[bool, typer.Option("--secrets", help="Look for keys and tokens that were logged.")] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Show each note, not only their number.")] = False,
    as_json: r.AsJson = False,
    max_line: Annotated[int, typer.Option(metavar="BYTES", min=1024, help="Longest line to decode.")] = MAX_LINE,
) -> None:
    """Name every damaged byte by file and line; with --repair save them apart and mend the log.

    Exit code 1: damage was found and is still there.

    Example: sessionlog check --repair ~/.local/state/sessionlog/sessions
    """
    where = r.reporting(paths, tz=None, now=None)
    there = [path for path in where.paths if files.stat_path(path) is not None]
    results = list(check_logs(there, secrets=secrets, max_line=max_line))
    if as_json:
        print_json(check_document(results))
    else:
        print_text(render_check(results, notes=notes or strict or secrets))
    if not results:
        note(r.nothing_found(where, narrowed=False))
    if repair:
        damaged = _repair(results, max_line, say=note if as_json else typer.echo)
    else:
        damaged = any(result.damaged for result in results)
    if damaged or (strict and any(result.notes for result in results)):
        raise typer.Exit(FOUND)


def _repair(results: Sequence[FileCheck], max_line: int, *, say: Callable[[str], None]) -> bool:
    """Mend what can be mended, and return whether damage is left."""
    left = False
    for result in results:
        if not result.damaged:
            continue
        try:
            done = repair_log(result.path, max_line=max_line)
            left |= done.pieces < result.damaged
            say(render_repair(done).rstrip())
        except (LogNotReadable, OSError) as error:
            left = True
            say(render_repair(str(error)).rstrip())
    return left
