"""`sessionlog context`: what fills the context window at one request of a session."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from sessionlog.analytics.session_requests import count_session_requests
from sessionlog.analytics.zones import resolve_zone
from sessionlog.archive.find import open_session
from sessionlog.cli.newest import newest_sessions
from sessionlog.cli.output import fail, note, print_json, print_text
from sessionlog.cli.reporting import (
    ReportContext,
    choose_one,
    note_archived,
    price_book,
    print_lines,
    read_settings,
    report_context,
)
from sessionlog.context.xray.report import xray
from sessionlog.render.context import render_context, render_context_csv
from sessionlog.render.notes import damage_note


def context(
    target: str | None,
    *,
    request: int | None,
    cache: bool,
    full: bool,
    as_json: bool,
    as_csv: bool,
    tz: str | None,
    now: str | None,
    prices: str | None,
    directory: str | None,
) -> None:
    """Show what fills the model's context window at a request of a session: system prompt, tools, history, results.

    It also shows what is largest, what is there several times, what was cached, and how the prompt grew. The total is
    the provider's count, where the log has it; the parts are estimates that are scaled to it.

    With --cache it compares each request with the one before it, and names the first thing that the provider could not
    find in its cache: another model, other tools, another system prompt, an edited or dropped message, time gone by.

    Example: sessionlog context s-9f2 --request 31
    """
    form, settings = choose_one(json=as_json, csv=as_csv), read_settings()
    if cache and (request is not None or full):
        fail("--cache shows all requests; leave out --request and --full")
    shared, folder = report_context(None, tz=tz, now=now, settings=settings), directory or settings.session_dir
    if target is None:
        [target] = newest_sessions(1, settings, directory)
    if cache:
        _show_cache_misses(target, folder, form, prices, shared)
        return
    with open_session(target, folder, os.environ) as (log, session, entry):
        report = xray(log, session, request=request)
    if entry is not None:
        report = replace(report, path=entry.path)
        note_archived(entry)
    request_count = count_session_requests(
        report.session, report.path if entry is None else None, env=shared.env, ledger=shared.ledger,
    )  # fmt: skip
    report = replace(report, session_requests=request_count)
    if form == "table":
        print_lines(partial(render_context, report, zone=resolve_zone(shared.zone), now=shared.now, full=full))
        return
    print_json(report.to_dict(full=full)) if form == "json" else print_text(render_context_csv(report))
    if report.problem_count:
        note(damage_note(report.problem_count, report.problems))


def _show_cache_misses(target: str, directory: str, form: str, prices: str | None, shared: ReportContext) -> None:
    from sessionlog.analytics.copied_responses import copied_beside
    from sessionlog.context.cache_misses import cache_misses
    from sessionlog.render.cache_misses import render_cache_misses, render_cache_misses_csv

    zone, book = resolve_zone(shared.zone), price_book(shared.settings, prices)
    with open_session(target, directory, os.environ) as (log, session, entry):
        report = cache_misses(log, session, price=book.price)
        copied = copied_beside(log, session) if report.misses else None
        if copied:
            report = cache_misses(log, session, price=book.price, copied=copied)
    if entry is not None:
        report = replace(report, path=entry.path)
        note_archived(entry)
    if form == "table":
        print_lines(partial(render_cache_misses, report, zone=zone, now=shared.now))
        return
    print_json(report.to_dict()) if form == "json" else print_text(render_cache_misses_csv(report))
    if report.problem_count:
        note(damage_note(report.problem_count, report.problems))
