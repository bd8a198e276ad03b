"""`sessionlog blocks`: how much of the present five hours is used, and of the ones before."""

from __future__ import annotations

from functools import partial
from typing import Any

from sessionlog.analytics.blocks import list_blocks
from sessionlog.cli import reporting as r
from sessionlog.cli.options import BLOCKS_SHOWN
from sessionlog.cli.output import fail
from sessionlog.render.blocks import render_blocks, render_blocks_csv, render_blocks_markdown

_RECENT = "3d"


def blocks(**settings: Any) -> None:
    """List five-hour blocks of usage, the pace of the present one, and the rate limits that logs speak of.

    Example: sessionlog blocks --active
    """
    asked = r.Asked(settings)
    if asked.recent and asked.since:
        fail("choose only one of --recent and --since")
    if asked.recent:
        asked.since = _RECENT
    where = asked.reporting()
    with r.scan_progress() as progress:
        report = list_blocks(
            where.paths, **asked.question(where, progress), hours=asked.hours, only_active=asked.active,
            prices=r.price_book(where.settings, asked.prices), limit=asked.most(BLOCKS_SHOWN),
        )  # fmt: skip
    r.print_report(
        report, asked.form, left_out=report.hidden_blocks, thing="block",
        csv=partial(render_blocks_csv, report),
        markdown=partial(render_blocks_markdown, report, tz=where.zone, now=where.now),
        table=partial(render_blocks, report, tz=where.zone, now=where.now, wide=asked.wide, gaps=asked.gaps),
    )  # fmt: skip
    r.end_report(report, asked, where, empty=not report.found_blocks and not report.limits, what="usage")
