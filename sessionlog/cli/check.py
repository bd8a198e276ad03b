"""`sessionlog check`: is every byte of these logs readable, and what else is odd about them?"""

from __future__ import annotations

from typing import Annotated

import typer

from sessionlog import files
from sessionlog.cli.output import FOUND, UNREADABLE, fail, print_json, print_text
from sessionlog.errors import LogNotReadable
from sessionlog.reader.check import check_logs
from sessionlog.reader.repair import repair_log
from sessionlog.reader.stream import MAX_LINE
from sessionlog.render.check import check_document, render_check, render_repair


def check(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Logs, or folders of logs.")],
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Move damaged bytes to NAME.quarantine.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Notes count as findings too.")] = False,
    secrets: Annotated[bool, typer.Option("--secrets", help="Look for keys and tokens that were logged.")] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Show each note, not only their number.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    max_line: Annotated[int, typer.Option(min=1024, help="Longest line to decode, in bytes.")] = MAX_LINE,
) -> None:
    """Name every damaged byte, file and line; with --repair save them apart and mend the log. Exit 1: damage found.

    Example: sessionlog check --repair ~/.local/state/sessionlog/sessions
    """
    missing = [path for path in paths if files.stat_path(path) is None]
    if missing:
        fail(f"{missing[0]}: no such file or folder", UNREADABLE)
    results = list(check_logs(paths, secrets=secrets, max_line=max_line))
    if as_json:
        print_json(check_document(results))
    else:
        print_text(render_check(results, notes=notes or strict or secrets))
    if repair:
        _repair([result.path for result in results if result.damage], max_line)
    elif any(result.damage for result in results) or (strict and any(result.notes for result in results)):
        raise typer.Exit(FOUND)


def _repair(damaged: list[str], max_line: int) -> None:
    failed = False
    for path in damaged:
        try:
            print_text(render_repair(repair_log(path, max_line=max_line)))
        except (LogNotReadable, OSError) as error:
            failed = True
            print_text(render_repair(str(error)))
    if failed:
        raise typer.Exit(FOUND)
