"""`sessionlog usage`: what was used, by whom, and what it cost."""

from __future__ import annotations

from functools import partial

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.cli import reporting as r
from sessionlog.render.usage import render_usage, render_usage_csv, render_usage_markdown


def usage(
    paths: list[str] | None,
    *,
    since: str | None,
    until: str | None,
    by: str,
    provider: list[str] | None,
    model: list[str] | None,
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
    prices: str | None,
    ledger: str | None,
    no_ledger: bool,
    live: bool,
    jobs: int | None,
    strict: bool,
) -> None:
    """Report tokens, cache hits, success, throughput and cost per provider and model.

    Example: sessionlog usage --since 7d --by day,model
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(paths, tz=tz, now=now, ledger=ledger, no_ledger=no_ledger, live=live, jobs=jobs)
    filters = {
        "provider": provider,
        "model": model,
        "project": project,
        "status": status,
        "source": r.split_list(source),
    }
    with r.scan_progress() as progress:
        report = aggregate_usage(
            where.paths, env=where.env, ledger=where.ledger, live=where.live, jobs=where.jobs,
            window=since, until=until, by=r.split_list([by]),
            tz=where.zone, now=where.now, prices=r.own_prices(where.settings, prices),
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
