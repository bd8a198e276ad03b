"""`sessionlog sessions`: which sessions there are, how they ended, what they cost."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sessionlog.analytics.sessions import list_sessions
from sessionlog.cli import reporting as r
from sessionlog.render.sessions import render_sessions, render_sessions_csv, render_sessions_markdown

_TABLE = 50
"""Sessions that a table shows unless told otherwise; programs get all."""


def sessions(
    paths: r.Paths = None,
    *,
    since: r.Since = None,
    until: r.Until = None,
    provider: r.Provider = None,
    model: r.Model = None,
    project: r.Project = None,
    status: r.Status = None,
    source: r.Source = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="At most so many sessions, the newest.", show_default=f"{_TABLE} in the table"
        ),
    ] = None,
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
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(paths, tz=tz, now=now)
    filters = {
        "provider": provider,
        "model": model,
        "project": project,
        "status": status,
        "source": r.split_list(source),
    }
    with r.scan_progress() as progress:
        found = list_sessions(
            where.paths, env=where.env, window=since, until=until, tz=where.zone, now=where.now,
            prices=r.price_book(where.settings, prices),
            filters={key: value for key, value in filters.items() if value},
            limit=_TABLE if limit is None and form == "table" else limit, progress=progress,
        )  # fmt: skip
    r.print_report(
        found, form, left_out=found.hidden, thing="session",
        csv=partial(render_sessions_csv, found),
        markdown=partial(render_sessions_markdown, found, tz=where.zone, now=where.now),
        table=partial(render_sessions, found, tz=where.zone, now=where.now, wide=wide, home=where.home),
    )  # fmt: skip
    r.end_report(found, where, empty=not found.sessions and not found.hidden, filters=filters, strict=strict)
