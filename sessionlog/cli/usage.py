"""`sessionlog usage`: what was used, by whom, and what it cost."""

from __future__ import annotations

from functools import partial
from typing import Any

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.cli import reporting as r
from sessionlog.render.usage import render_usage, render_usage_csv, render_usage_markdown

ROWS_SHOWN = 5000
"""Rows of a table, unless a limit is asked for: each takes some kilobytes until all are laid out."""


def usage(**settings: Any) -> None:
    """Report tokens, cache hits, success, throughput and cost per provider and model.

    Example: sessionlog usage --since 7d --by day,model
    """
    asked = r.Asked(settings)
    where = asked.reporting()
    with r.scan_progress() as progress:
        report = aggregate_usage(
            where.paths, **asked.question(where, progress), by=r.split_list([asked.by]), sort=asked.sort,
            limit=asked.most(ROWS_SHOWN), merge_worktrees=asked.merge_worktrees,
            prices=r.own_prices(where.settings, asked.prices),
        )  # fmt: skip
    r.print_report(
        report, asked.form, left_out=report.hidden_rows, thing="row",
        csv=partial(render_usage_csv, report),
        markdown=partial(render_usage_markdown, report),
        table=partial(render_usage, report, tz=where.zone, now=where.now, wide=asked.wide, home=where.home),
    )  # fmt: skip
    r.end_report(report, asked, where, empty=not report.rows and not report.totals.sessions, what="usage")
