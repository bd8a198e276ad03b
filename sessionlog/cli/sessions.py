"""`sessionlog sessions`: which sessions there are, how they ended, what they cost."""

from __future__ import annotations

from functools import partial
from typing import Any

from sessionlog.analytics.sessions import list_sessions
from sessionlog.cli import reporting as r
from sessionlog.cli.options import SESSIONS_SHOWN
from sessionlog.render.sessions import render_sessions, render_sessions_csv, render_sessions_markdown


def sessions(**settings: Any) -> None:
    """List sessions: start, duration, status, models, calls, tokens, cost, and the first words of the prompt.

    Example: sessionlog sessions --since today --status error
    """
    asked = r.Asked(settings)
    where = asked.reporting()
    with r.scan_progress() as progress:
        found = list_sessions(
            where.paths, **asked.question(where, progress), prices=r.price_book(where.settings, asked.prices),
            limit=asked.most(SESSIONS_SHOWN),
        )  # fmt: skip
    r.print_report(
        found, asked.form, left_out=found.hidden, thing="session",
        csv=partial(render_sessions_csv, found),
        markdown=partial(render_sessions_markdown, found, tz=where.zone, now=where.now),
        table=partial(
            render_sessions, found, tz=where.zone, now=where.now, wide=asked.wide, home=where.home, tree=asked.tree
        ),
    )  # fmt: skip
    r.end_report(found, asked, where, empty=not found.sessions and not found.hidden)
