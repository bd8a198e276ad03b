"""`sessionlog tools`: what agents called, how that went, and what it put into the context."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sessionlog.analytics.tools import aggregate_tools
from sessionlog.cli import reporting as r
from sessionlog.render.tools import render_tools, render_tools_csv, render_tools_markdown


def tools(
    paths: r.Paths = None,
    *,
    since: r.Since = None,
    until: r.Until = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="KEYS",
            help="Group by: server, tool, agent, project, source, session, hour, day, week, month, status.",
        ),
    ] = "server,tool",
    tool: Annotated[list[str] | None, typer.Option(metavar="GLOB", help="Only this tool; may be repeated.")] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Only this MCP server, or `built-in`; may be repeated."),
    ] = None,
    project: r.Project = None,
    status: r.Status = None,
    source: r.Source = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A column of the JSON or a group key; -NAME turns it round.",
            show_default="most calls first",
        ),
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
    strict: r.Strict = False,
) -> None:
    """Report tool calls: errors, durations, size of output, and each tool's share of all output.

    Example: sessionlog tools --since 7d --sort output_bytes
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(paths, tz=tz, now=now)
    filters = {
        "tool": tool,
        "server": server,
        "project": project,
        "status": status,
        "source": r.split_list(source),
    }
    with r.scan_progress() as progress:
        report = aggregate_tools(
            where.paths, env=where.env, window=since, until=until, by=r.split_list([by]), tz=where.zone, now=where.now,
            filters={key: value for key, value in filters.items() if value}, sort=sort, limit=limit,
            merge_worktrees=merge_worktrees, progress=progress,
        )  # fmt: skip
    r.print_report(
        report, form, left_out=report.hidden_rows, thing="row",
        csv=partial(render_tools_csv, report),
        markdown=partial(render_tools_markdown, report),
        table=partial(render_tools, report, tz=where.zone, now=where.now, wide=wide, home=where.home),
    )  # fmt: skip
    r.end_report(report, where, empty=not report.totals.calls, filters=filters, strict=strict, what="tool calls")
