"""`sessionlog blocks`: how much of the present five hours is used, and of the ones before."""

from __future__ import annotations

from functools import partial

from sessionlog.analytics.blocks import list_blocks
from sessionlog.cli import reporting as r
from sessionlog.cli.options import BLOCKS_SHOWN
from sessionlog.cli.output import fail
from sessionlog.render.blocks import render_blocks, render_blocks_csv, render_blocks_markdown

_RECENT = "3d"


def blocks(
    paths: list[str] | None,
    *,
    since: str | None,
    until: str | None,
    recent: bool,
    active: bool,
    hours: int,
    gaps: bool,
    provider: list[str] | None,
    model: list[str] | None,
    project: list[str] | None,
    status: list[str] | None,
    source: list[str] | None,
    limit: int | None,
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
    """List five-hour blocks of usage, the pace of the present one, and the rate limits that logs speak of.

    Example: sessionlog blocks --active
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    if recent and since:
        fail("choose only one of --recent and --since")
    where = r.reporting(paths, tz=tz, now=now, ledger=ledger, no_ledger=no_ledger, live=live, jobs=jobs)
    filters = {"provider": provider, "model": model, "project": project, "status": status}
    filters["source"] = r.split_list(source)
    with r.scan_progress() as progress:
        report = list_blocks(
            where.paths, env=where.env, ledger=where.ledger, live=where.live, jobs=where.jobs,
            window=_RECENT if recent else since, until=until, hours=hours, tz=where.zone,
            now=where.now, prices=r.price_book(where.settings, prices), only_active=active, progress=progress,
            filters={key: value for key, value in filters.items() if value},
            limit=BLOCKS_SHOWN if limit is None and form == "table" else limit,
        )  # fmt: skip
    r.print_report(
        report, form, left_out=report.hidden_blocks, thing="block",
        csv=partial(render_blocks_csv, report),
        markdown=partial(render_blocks_markdown, report, tz=where.zone, now=where.now),
        table=partial(render_blocks, report, tz=where.zone, now=where.now, wide=wide, gaps=gaps),
    )  # fmt: skip
    empty = not report.found_blocks and not report.limits
    r.end_report(report, where, empty=empty, filters=filters, strict=strict, what="usage")
