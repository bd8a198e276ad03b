"""`sessionlog sessions`: which sessions there are, how they ended, what they cost."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sessionlog.analytics.sessions import SessionList, list_sessions
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, note, print_json, print_text
from sessionlog.render.sessions import render_sessions, render_sessions_csv, render_sessions_markdown


def sessions(
    paths: r.Paths = None,
    *,
    since: r.Since = None,
    until: r.Until = None,
    provider: r.Provider = None,
    model: r.Model = None,
    project: r.Project = None,
    status: r.Status = None,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="At most so many sessions, the newest.")] = 50,
    as_json: r.AsJson = False,
    as_csv: r.AsCsv = False,
    as_markdown: r.AsMarkdown = False,
    wide: Annotated[bool, typer.Option("--wide", help="All columns, whatever the width.")] = False,
    tz: r.Zone = None,
    now: r.Now = None,
    prices: r.Prices = None,
    strict: r.Strict = False,
) -> None:
    """List sessions: start, duration, status, models, calls, tokens, cost, and the first words of the prompt.

    Example: sessionlog sessions --since today --status error
    """
    r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(paths, tz=tz, now=now)
    filters = {"provider": provider, "model": model, "project": project, "status": status}
    with r.scan_progress() as progress:
        found = list_sessions(
            where.paths, window=since, until=until, tz=where.zone, now=where.now,
            prices=r.price_book(where.settings, prices),
            filters={key: value for key, value in filters.items() if value}, limit=limit, progress=progress,
        )  # fmt: skip
    _print(found, where, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown, wide=wide)
    if not found.sessions and not found.hidden:
        note(r.nothing_found(where, narrowed=found.window is not None or any(filters.values())))
    if strict and found.problem_count:
        raise typer.Exit(UNREADABLE)


def _print(
    found: SessionList, where: r.Reporting, *, as_json: bool, as_csv: bool, as_markdown: bool, wide: bool
) -> None:
    if as_json:
        print_json(found.to_dict())
    elif as_csv:
        print_text(render_sessions_csv(found))
    elif as_markdown:
        print_text(render_sessions_markdown(found, tz=where.zone, now=where.now))
    else:
        r.print_lines(partial(render_sessions, found, tz=where.zone, now=where.now, wide=wide, home=where.home))
    if as_json or as_csv or as_markdown:
        r.note_damage(found.problem_count, found.problems)
