"""`sessionlog scrub`: find secrets in the logs, and write copies of the logs without them."""

from __future__ import annotations

import os
from functools import partial

from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, Exit, fail, note, print_json
from sessionlog.engine.shares import map_shares
from sessionlog.render.scrub import render_scrub, scrub_document
from sessionlog.sources.scrub import scrub_logs


def scrub(*, paths: list[str] | None, write: str | None, as_json: bool) -> None:
    """Find keys, tokens and passwords in any agent's logs; shows their kind and place, never the secret itself.

    The originals are only read. Exit code 1: secrets were found, or a file could not be searched completely.

    Example: sessionlog scrub ~/.claude --write scrubbed
    """
    context = r.report_context(paths, tz=None, now=None, any_file=True)
    for path in paths or () if write is not None else ():
        if _is_inside(write or "", path):
            fail(f"--write {write}: is inside {path}, which is only read; name a folder elsewhere")
    with r.scan_progress() as progress:
        results = list(scrub_logs(context.paths, context.env, copies=write, progress=progress, spread=map_shares))
    if as_json:
        print_json(scrub_document(results))
    else:
        r.print_lines(partial(render_scrub, results, home=context.home, folder=write or ""))
    if not results:
        note(r.nothing_found(context, narrowed=False))
    if any(result.counts or result.problem for result in results):
        raise Exit(FOUND)


def _is_inside(folder: str, path: str) -> bool:
    inner, outer = os.path.realpath(folder), os.path.realpath(path)
    return inner == outer or inner.startswith(outer + os.sep)
