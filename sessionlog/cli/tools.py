"""`sessionlog tools`: what agents called, how that went, and what it put into the context."""

from __future__ import annotations

from functools import partial

from sessionlog.analytics.tools import aggregate_tools
from sessionlog.cli import reporting as r
from sessionlog.render.tools import render_tools, render_tools_csv, render_tools_markdown


def tools(
    paths: list[str] | None,
    *,
    since: str | None,
    until: str | None,
    by: str,
    tool: list[str] | None,
    server: list[str] | None,
    project: list[str] | None,
    status: list[str] | None,
    source: list[str] | None,
    sort: str | None,
    limit: int | None,
    merge_worktrees: bool,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
    wide: bool,
    tz: str | None,
    now: str | None,
    ledger: str | None,
    no_ledger: bool,
    live: bool,
    jobs: int | None,
    strict: bool,
) -> None:
    """Report tool calls: errors, durations, size of output, and each tool's share of all output.

    Example: sessionlog tools --since 7d --sort output_bytes
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(paths, tz=tz, now=now, ledger=ledger, no_ledger=no_ledger, live=live, jobs=jobs)
    filters = {
        "tool": tool,
        "server": server,
        "project": project,
        "status": status,
        "source": r.split_list(source),
    }
    with r.scan_progress() as progress:
        report = aggregate_tools(
            where.paths, env=where.env, ledger=where.ledger, live=where.live, jobs=where.jobs,
            window=since, until=until, by=r.split_list([by]), tz=where.zone, now=where.now,
            filters={key: value for key, value in filters.items() if value}, sort=sort, limit=limit,
            prices=r.price_book(where.settings, None), merge_worktrees=merge_worktrees, progress=progress,
        )  # fmt: skip
    r.print_report(
        report, form, left_out=report.hidden_rows, thing="row",
        csv=partial(render_tools_csv, report),
        markdown=partial(render_tools_markdown, report),
        table=partial(render_tools, report, tz=where.zone, now=where.now, wide=wide, home=where.home),
    )  # fmt: skip
    r.end_report(report, where, empty=not report.totals.calls, filters=filters, strict=strict, what="tool calls")
