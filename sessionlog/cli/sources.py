"""`sessionlog sources`: which agents have logs here, where they were looked for, and what cannot be read."""

from __future__ import annotations

from functools import partial

from sessionlog.analytics.survey import survey_sources
from sessionlog.cli import reporting as r
from sessionlog.cli.declared import AsCsv, AsJson, AsMarkdown, Now, Source, Zone
from sessionlog.cli.output import print_json, print_text
from sessionlog.render.sources import render_sources, render_sources_csv, render_sources_markdown


def sources(
    *,
    source: Source = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_markdown: AsMarkdown = False,
    tz: Zone = None,
    now: Now = None,
) -> None:
    """List the agents whose logs can be read: files, size, oldest and newest request, how long they are kept.

    Example: sessionlog sources --source claude-code,codex
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where = r.reporting(None, tz=tz, now=now)
    with r.scan_progress() as progress:
        report = survey_sources(
            env=where.env, sources=r.split_list(source), ledger=where.ledger, now=where.now, progress=progress
        )
    match form:
        case "json":
            print_json(report.to_dict())
        case "csv":
            print_text(render_sources_csv(report))
        case "markdown":
            print_text(render_sources_markdown(report, tz=where.zone))
        case _:
            r.print_lines(partial(render_sources, report, tz=where.zone, home=where.home))
