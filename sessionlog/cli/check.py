"""`sessionlog check`: find damaged bytes and other problems in logs and exports, and repair our own logs."""

from __future__ import annotations

from sessionlog import files
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, Exit, fail, note, print_json, print_text
from sessionlog.engine.shares import map_shares
from sessionlog.errors import LogNotReadable
from sessionlog.events.limits import MAX_LINE
from sessionlog.reader.repair import Repair, repair_log
from sessionlog.render.check import OF_EXPORTS, check_document, is_left, render_check, render_repair
from sessionlog.sources.check import check_sources
from sessionlog.sources.names import NATIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessionlog.reader.check import FileCheck


def check(
    *, paths: list[str] | None, repair: bool, strict: bool, notes: bool, as_json: bool, max_line: int | None
) -> None:
    """Name every damaged byte by file and line; with --repair move them to a file of their own and mend our own logs.

    Of an export to parquet, compare all files with the digests in their manifests. Exit code 1: damage was found and is
    still there.

    Example: sessionlog check --repair ~/.local/state/sessionlog/sessions
    """
    context = r.report_context(paths, any_file=True)
    if context.paths:
        from sessionlog.analytics.place import places_among

        if places := places_among(context.paths):
            if repair:
                fail(f"--repair is for logs, and {places[0]} is an export: restore its damaged files from a copy")
            _check_places(places, context, strict=strict, notes=notes, as_json=as_json)
            return
    max_line = max_line or MAX_LINE
    with r.scan_progress() as progress:
        found = list(check_sources(context.paths, context.env, max_line=max_line, progress=progress, spread=map_shares))
    results = [result for _, result in found]
    repairs = _repair(found, max_line) if repair else None
    if as_json:
        print_json(check_document(results, repairs))
    else:
        print_text(render_check(results, notes=notes or strict, repairing=repair))
        print_text("".join(render_repair(path, done) for path, done in (repairs or {}).items()))
    if not results:
        note(r.nothing_found(context, narrowed=False))
    damaged = any(is_left(result, (repairs or {}).get(result.path)) for result in results)
    if damaged or (strict and any(result.notes for result in results)):
        raise Exit(FOUND)


def _check_places(places: Sequence[str], context: r.ReportContext, *, strict: bool, notes: bool, as_json: bool) -> None:
    """Check what machines have exported."""
    from sessionlog.analytics.window import utc_nanoseconds
    from sessionlog.engine.place_check import check_place

    with r.scan_progress("checking files") as progress:
        now_ns = utc_nanoseconds(context.now)
        results = [result for place in places for result in check_place(place, now_ns, progress=progress)]
    if as_json:
        print_json(check_document(results, nouns=OF_EXPORTS))
    else:
        print_text(render_check(results, notes=notes or strict, nouns=OF_EXPORTS))
    if any(result.damaged or (strict and result.notes) for result in results):
        raise Exit(FOUND)


def _repair(found: Sequence[tuple[str, FileCheck]], max_line: int) -> dict[str, Repair | str]:
    """Repair our own logs; return by path what was done, or why nothing was."""
    repairs: dict[str, Repair | str] = {}
    for source, result in found:
        if not result.damaged:
            continue
        if files.is_url(result.path):
            repairs[result.path] = "--repair does not change remote logs"
            continue
        if source not in NATIVE:
            repairs[result.path] = f"--repair does not change logs of {source}" if source else "it cannot be read"
            continue
        try:
            repairs[result.path] = repair_log(result.path, max_line=max_line)
        except (LogNotReadable, OSError) as error:
            repairs[result.path] = str(error).removeprefix(f"{result.path}: ")
    return repairs
