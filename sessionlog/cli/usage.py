"""`sessionlog usage`: what was used, by whom, and what it cost."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.usage_row import UsageReport
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, note, print_json, print_text
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
            help="Group by: provider, model, response_model, source, session, project, hour, day, week, month, "
            "status, route, harness, meta.KEY.",
        ),
    ] = "provider,model",
    provider: r.Provider = None,
    model: r.Model = None,
    project: r.Project = None,
    status: r.Status = None,
    source: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only this source; may be repeated.")] = None,
    sort: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column of the JSON or a group key; -NAME turns it round.")
    ] = None,
    limit: r.Limit = None,
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
    r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(paths, tz=tz, now=now)
    filters = {"provider": provider, "model": model, "project": project, "status": status, "source": source}
    with r.scan_progress() as progress:
        report = aggregate_usage(
            where.paths, window=since, until=until, by=[key.strip() for key in by.split(",") if key.strip()],
            tz=where.zone, now=where.now, prices=r.price_book(where.settings, prices),
            filters={key: value for key, value in filters.items() if value}, sort=sort, limit=limit, progress=progress,
        )  # fmt: skip
    _print(report, where, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown, wide=wide)
    if not report.rows and not report.totals.sessions:
        note(r.nothing_found(where, narrowed=report.window is not None or any(filters.values())))
    if strict and report.problem_count:
        raise typer.Exit(UNREADABLE)


def _print(
    report: UsageReport, where: r.Reporting, *, as_json: bool, as_csv: bool, as_markdown: bool, wide: bool
) -> None:
    if as_json:
        print_json(report.to_dict())
    elif as_csv:
        print_text(render_usage_csv(report))
    elif as_markdown:
        print_text(render_usage_markdown(report))
    else:
        r.print_lines(partial(render_usage, report, tz=where.zone, now=where.now, wide=wide, home=where.home))
    if as_json or as_csv or as_markdown:
        r.note_damage(report.problem_count, report.problems)
