"""`sessionlog diff`: two sessions side by side, from where they part."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from sessionlog.analytics.diff.report import diff_sessions
from sessionlog.analytics.diff.side import Side, renamed
from sessionlog.archive.entry import Entry
from sessionlog.archive.find import open_session
from sessionlog.cli.newest import newest_sessions
from sessionlog.cli.output import FOUND, Leave, fail, note, print_json
from sessionlog.cli.reporting import note_archived, price_book, print_lines, reporting, scan_progress
from sessionlog.render.diff import render_diff
from sessionlog.render.notes import damage_note


def diff(
    pair: list[str] | None,
    *,
    full: bool,
    as_json: bool,
    now: str | None,
    prices: str | None,
    directory: str | None,
) -> None:
    """Compare two sessions: where they part, what each said from there, tools, tokens, cost and time.

    They are equal if the same was said: prompts, answers, tool calls and results. Ids, times and models do not count.
    Neither does what was taken back (/undo), nor what a parent had dropped when a fork was made. Exits with 0 if they
    are equal, with 1 if not.

    Example: sessionlog diff s-9f2 s-a01
    """
    where = reporting(None, now=now)
    if not pair:
        pair = newest_sessions(2, where.settings, directory)
    if len(pair) != 2:
        fail("name both sessions, or none")
    a, b = pair
    folder, book = directory or where.settings.session_dir, price_book(where.settings, prices)
    with open_session(a, folder, os.environ) as left, open_session(b, folder, os.environ) as right:
        with scan_progress() as progress:
            found = diff_sessions(
                left[:2], right[:2], full=full, prices=book, now=where.now, progress=progress, env=where.env,
                ledger=where.ledger,
            )  # fmt: skip
        found = replace(found, left=_as_it_was(found.left, left[2]), right=_as_it_was(found.right, right[2]))
    if as_json:
        print_json(found.to_dict())
        if found.problem_count:
            note(damage_note(found.problem_count, found.problems))
    else:
        print_lines(partial(render_diff, found, full=full))
    if not found.is_equal:
        raise Leave(FOUND)


def _as_it_was(side: Side, entry: Entry | None) -> Side:
    """A side with the path that its log had, where only the archive has it."""
    if entry is None:
        return side
    note_archived(entry)
    return renamed(side, entry.path)
