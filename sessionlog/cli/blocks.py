"""`sessionlog blocks`: how much of the present five hours is used, and of the ones before."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from sessionlog.analytics.blocks import HOURS, MOST_HOURS, list_blocks
from sessionlog.cli import reporting as r
from sessionlog.cli.output import fail
from sessionlog.render.blocks import render_blocks, render_blocks_csv, render_blocks_markdown

_TABLE = 30
"""Blocks that a table shows unless told otherwise; programs get all."""

_RECENT = "3d"


def blocks(
    paths: r.Paths = None,
    *,
    since: r.Since = None,
    until: r.Until = None,
    recent: Annotated[bool, typer.Option("--recent", help="The last three days.")] = False,
    active: Annotated[bool, typer.Option("--active", help="Only the block in which the present lies.")] = False,
    hours: Annotated[int, typer.Option(metavar="N", min=1, max=MOST_HOURS, help="How long a block is.")] = HOURS,
    gaps: Annotated[bool, typer.Option("--gaps", help="Say in the table how long the pauses were.")] = False,
    provider: r.Provider = None,
    model: r.Model = None,
    project: r.Project = None,
    status: r.Status = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IDS",
            help="Only these agents' logs, '*' for all together; may be repeated.",
            show_default="claude-code if it has such blocks, else all",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="At most so many blocks, the newest.", show_default=f"{_TABLE} in the table"
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
    """List five-hour blocks of usage, the pace of the present one, and the rate limits that logs speak of.

    Example: sessionlog blocks --active
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    if recent and since:
        fail("choose only one of --recent and --since")
    where = r.reporting(paths, tz=tz, now=now)
    filters = {"provider": provider, "model": model, "project": project, "status": status}
    filters["source"] = r.split_list(source)
    with r.scan_progress() as progress:
        report = list_blocks(
            where.paths, env=where.env, window=_RECENT if recent else since, until=until, hours=hours, tz=where.zone,
            now=where.now, prices=r.price_book(where.settings, prices), only_active=active, progress=progress,
            filters={key: value for key, value in filters.items() if value},
            limit=_TABLE if limit is None and form == "table" else limit,
        )  # fmt: skip
    r.print_report(
        report, form, left_out=report.hidden_blocks, thing="block",
        csv=partial(render_blocks_csv, report),
        markdown=partial(render_blocks_markdown, report, tz=where.zone, now=where.now),
        table=partial(render_blocks, report, tz=where.zone, now=where.now, wide=wide, gaps=gaps),
    )  # fmt: skip
    empty = not report.found_blocks and not report.limits
    r.end_report(report, where, empty=empty, filters=filters, strict=strict, what="usage")
