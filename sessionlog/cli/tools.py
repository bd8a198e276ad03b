"""`sessionlog tools`: what agents called, how that went, and what it put into the context."""

from __future__ import annotations

from functools import partial
from typing import Any

from sessionlog.analytics.tools import aggregate_tools
from sessionlog.cli import reporting as r
from sessionlog.render.tools import render_tools, render_tools_csv, render_tools_markdown


def tools(**settings: Any) -> None:
    """Report tool calls: errors, durations, size of output, and each tool's share of all output.

    Example: sessionlog tools --since 7d --sort output_bytes
    """
    asked = r.Asked(settings)
    where = asked.reporting()
    with r.scan_progress() as progress:
        report = aggregate_tools(
            where.paths, **asked.question(where, progress), by=r.split_list([asked.by]), sort=asked.sort,
            limit=asked.limit, merge_worktrees=asked.merge_worktrees, prices=r.price_book(where.settings),
        )  # fmt: skip
    r.print_report(
        report, asked.form, left_out=report.hidden_rows, thing="row",
        csv=partial(render_tools_csv, report),
        markdown=partial(render_tools_markdown, report),
        table=partial(render_tools, report, tz=where.zone, now=where.now, wide=asked.wide, home=where.home),
    )  # fmt: skip
    r.end_report(report, asked, where, empty=not report.totals.calls, what="tool calls")
