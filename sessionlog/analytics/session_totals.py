"""The totals of one session, as reports have them: by the ledger's rules, whatever its log holds.

One log is not enough for them: sub-agents have their own logs, an agent may begin a new file for a session, and a fork
repeats responses that count in another session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from itertools import islice

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sessions import SessionSummary, fold_session
from sessionlog.analytics.status import sums
from sessionlog.analytics.status.logs import ask_about
from sessionlog.analytics.status.sums import SessionRow
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import stored_forms
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Log


def session_totals(
    log: Log,
    session: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    ledger: str | None = None,
    prices: PriceBook | None = None,
    now: datetime | None = None,
    path: str | None = None,
    progress: Progress | None = None,
) -> SessionSummary | None:
    """Return the session as `sessions` lists it, or without numbers if it has no response; None if it is unknown.

    A sub-agent's log belongs to the session of its parent. A log outside the agents' folders is read alone.

    Args:
        log: A log of the session.
        session: The id of one of the log's sessions; None for the first.
        env: The environment, by which the folders of agents' logs are found; the process's when None.
        ledger: The ledger's file; None scans all logs into memory.
        prices: Prices of responses without a recorded cost; the list prices when None.
        now: The present, to distinguish running from unfinished sessions.
        path: Where the log was before it was copied to its path.
        progress: Called after every log that is read for it.
    """
    env, find = os.environ if env is None else env, _finder(log, session, now)
    for place in dict.fromkeys((path or log.path, log.path)):
        found = ask_about(place, partial(find, place), env=env, ledger=ledger, prices=prices, progress=progress)
        if found is not None:
            return found
    return None


def totals_alone(log: Log, session: str | None = None, *, prices: PriceBook | None = None) -> SessionSummary | None:
    """Return the session as `sessions PATH` lists it: by this log alone."""
    find = partial(_finder(log, session, None), log.path)
    return ask(Where(paths=[log.path], prices=prices), find)


def _finder(log: Log, session: str | None, now: datetime | None) -> Callable[..., SessionSummary | None]:
    """Return a query of a book for the session of a log at a path."""
    selection = Selection.of(None, until=None, filters=None, tz="UTC", now=now)
    names = list(islice(log.source.name_sessions(log.path), 2))
    name = session or next(iter(names), "")

    def find(path: str, book: Book, **_: bool) -> SessionSummary | None:
        for row in sums.find_in_log(book.query, stored_forms(path), selection.now_ns, name):
            if row.session == name or len(names) < 2:  # a file that is one session may have another name
                return fold_session(book, selection, row.id) or _without_responses(row)
        return None

    return find


def _without_responses(row: SessionRow) -> SessionSummary:
    """Return a session that has no response, or only such that count in another session."""
    return SessionSummary(
        source=row.source, session=row.session, path=row.path, start_ns=row.start_ns, last_ns=row.last_ns,
        status=row.status, project=row.project, harness="", route="", models=(), duration_ms=0, prompt="", error="",
        counted=False, archived=bool(row.archived),
    )  # fmt: skip
