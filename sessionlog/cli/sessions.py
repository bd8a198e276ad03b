"""`sessionlog sessions`: which sessions there are, how they ended, what they cost."""

from __future__ import annotations

from functools import partial

from sessionlog.analytics.sessions import list_sessions
from sessionlog.cli import reporting as r
from sessionlog.cli.options import SESSIONS_SHOWN
from sessionlog.render.sessions import render_sessions, render_sessions_csv, render_sessions_markdown


def sessions(
    paths: list[str] | None,
    *,
    since: str | None,
    until: str | None,
    provider: list[str] | None,
    model: list[str] | None,
    project: list[str] | None,
    status: list[str] | None,
    source: list[str] | None,
    limit: int | None,
    tree: bool,
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
    """List sessions: start, duration, status, models, calls, tokens, cost, and the first words of the prompt.

    Example: sessionlog sessions --since today --status error
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
        found = list_sessions(
            where.paths, env=where.env, ledger=where.ledger, live=where.live, jobs=where.jobs,
            window=since, until=until, tz=where.zone, now=where.now,
            prices=r.price_book(where.settings, prices),
            filters={key: value for key, value in filters.items() if value},
            limit=SESSIONS_SHOWN if limit is None and form == "table" else limit, progress=progress,
        )  # fmt: skip
    r.print_report(
        found, form, left_out=found.hidden, thing="session",
        csv=partial(render_sessions_csv, found),
        markdown=partial(render_sessions_markdown, found, tz=where.zone, now=where.now),
        table=partial(render_sessions, found, tz=where.zone, now=where.now, wide=wide, home=where.home, tree=tree),
    )  # fmt: skip
    r.end_report(found, where, empty=not found.sessions and not found.hidden, filters=filters, strict=strict)
