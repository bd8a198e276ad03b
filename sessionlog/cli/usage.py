"""`sessionlog usage`: what was used, by whom, and what it cost."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.cli import reporting as r
from sessionlog.render.usage import render_usage, render_usage_csv, render_usage_markdown


def usage(
    paths: r.Paths = None,
    *,
    since: r.Since = None,
    until: r.Until = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="KEYS",
            help="Group by: source, provider, model, response_model, session, project, branch, agent, version, hour, "
            "day, week, month, status, route, harness, meta.KEY.",
        ),
    ] = "provider,model",
    provider: r.Provider = None,
    model: r.Model = None,
    project: r.Project = None,
    status: r.Status = None,
    source: r.Source = None,
    sort: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column of the JSON or a group key; -NAME turns it round.")
    ] = None,
    limit: r.Limit = None,
    merge_worktrees: Annotated[
        bool, typer.Option("--merge-worktrees", help="Count git worktrees as the project they belong to.")
    ] = False,
    as_json: r.AsJson = False,
    as_csv: r.AsCsv = False,
    as_markdown: r.AsMarkdown = False,
    wide: Annotated[bool, typer.Option("--wide", help="All columns, whatever the width.")] = False,
    tz: r.Zone = None,
    now: r.Now = None,
    prices: r.Prices = None,
    strict: r.Strict = False,
) -> None:
    """Report tokens, cache hits, success, throughput and cost per provider and model.

    Example: sessionlog usage --since 7d --by day,model
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
        report = aggregate_usage(
            where.paths, env=where.env, window=since, until=until, by=r.split_list([by]),
            tz=where.zone, now=where.now, prices=r.price_book(where.settings, prices),
            filters={key: value for key, value in filters.items() if value}, sort=sort, limit=limit,
            merge_worktrees=merge_worktrees, progress=progress,
        )  # fmt: skip
    r.print_report(
        report, form, left_out=report.hidden_rows, thing="row",
        csv=partial(render_usage_csv, report),
        markdown=partial(render_usage_markdown, report),
        table=partial(render_usage, report, tz=where.zone, now=where.now, wide=wide, home=where.home),
    )  # fmt: skip
    empty = not report.rows and not report.totals.sessions
    r.end_report(report, where, empty=empty, filters=filters, strict=strict, what="usage")
