"""`sessionlog diff`: two sessions side by side, from where they part."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from sessionlog.analytics.diff.gates import GateName, parse_limit
from sessionlog.analytics.diff.report import SessionDiff, check_gates, diff_sessions
from sessionlog.analytics.diff.side import Side, renamed
from sessionlog.archive.entry import Entry
from sessionlog.archive.find import open_session
from sessionlog.cli.newest import newest_sessions
from sessionlog.cli.output import FOUND, Exit, fail, note, print_json
from sessionlog.cli.reporting import note_archived, own_prices, print_lines, report_context, scan_progress
from sessionlog.render.diff import render_diff
from sessionlog.render.notes import damage_note


def diff(
    pair: list[str] | None,
    *,
    full: bool,
    max_cost: str | None,
    max_requests: str | None,
    max_tokens: str | None,
    max_duration: str | None,
    same_tools: bool,
    as_json: bool,
    now: str | None,
    prices: str | None,
    directory: str | None,
) -> None:
    """Compare two sessions: where they part, the messages of each from there, tools, tokens, cost and time.

    They are equal if their messages are: prompts, answers, tool calls and results. Ids, times and models do not count.
    Neither do turns that /undo removed, nor messages that a parent had dropped when a fork was made. Exits with 0 if
    they are equal, with 1 if not.

    With limits it exits with 1 only if B exceeds one, whatever else differs. A cost that is not known exceeds any.

    Example: sessionlog diff s-9f2 s-a01

    Example: sessionlog diff before.jsonl after.jsonl --max-cost +10% --max-requests +2 --same-tools
    """
    given: dict[GateName, str | None] = {
        "max-cost": max_cost, "max-requests": max_requests, "max-tokens": max_tokens, "max-duration": max_duration,
    }  # fmt: skip
    limits = {gate: parse_limit(gate, limit) for gate, limit in given.items() if limit is not None}
    found = check_gates(_compare(pair, directory, prices, now, full=full), limits, same_tools=same_tools)
    if as_json:
        print_json(found.to_dict())
        if found.problem_count:
            note(damage_note(found.problem_count, found.problems))
    else:
        print_lines(partial(render_diff, found, full=full))
    if found.failed_gates or not (found.gates or found.is_equal):
        raise Exit(FOUND)


def _compare(
    pair: list[str] | None, directory: str | None, prices: str | None, now: str | None, *, full: bool
) -> SessionDiff:
    context = report_context(None, now=now)
    if not pair:
        pair = newest_sessions(2, context.settings, directory)
    if len(pair) != 2:
        fail("name both sessions, or none")
    a, b = pair
    folder, book = directory or context.settings.session_dir, own_prices(context.settings, prices)
    with open_session(a, folder, os.environ) as left, open_session(b, folder, os.environ) as right:
        with scan_progress() as progress:
            found = diff_sessions(
                left[:2], right[:2], full=full, prices=book, now=context.now, progress=progress, env=context.env,
                ledger=context.ledger,
            )  # fmt: skip
        return replace(
            found, left=_with_logged_path(found.left, left[2]), right=_with_logged_path(found.right, right[2])
        )


def _with_logged_path(side: Side, entry: Entry | None) -> Side:
    """Return a side read from the archive with the path that its log had."""
    if entry is None:
        return side
    note_archived(entry)
    return renamed(side, entry.path)
