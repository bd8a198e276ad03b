"""Sessions: one line each, newest first, with the same windows, filters and sums as usage."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from sessionlog.analytics.conditions import STATUS
from sessionlog.analytics.log_report import LogReport, findings_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import check_source_names, ledger_path, log_paths
from sessionlog.analytics.usage_columns import Sums
from sessionlog.analytics.window import UsageWindow
from sessionlog.engine.scanner import scanner
from sessionlog.errors import problems_dict
from sessionlog.events.times import format_time
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.quarter_hours import OF_PARTS
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook

SCHEMA = "sessionlog.sessions/1"

COLUMNS = (
    "source", "session", "path", "start", "last", "status", "project", "harness", "route", "models", "duration_ms",
    "prompt", "error", "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "total_tokens", "known_cost_usd", "estimated_cost_usd", "cost_usd",
    "cost_is_partial", "counted", "archived", "parent",
)  # fmt: skip
"""What JSON and CSV say of a session, in this order."""

_SQL = """
SELECT s.source, s.session, s.path, s.start_ns, s.last_ns, {status}, s.project, s.harness, s.route,
    COALESCE(s.duration_ms, SUM(r.active_ms)), s.prompt, s.error, SUM(r.requests), SUM(r.failed), SUM(r.input),
    SUM(r.output), SUM(r.cache_read), SUM(r.cache_write), SUM(r.reasoning), SUM(r.cost_nano), SUM(r.estimate_nano),
    MAX(r.unknown), s.counted, s.archived, s.parent, s.id
FROM {tables}
WHERE {where} GROUP BY s.id ORDER BY s.start_ns IS NULL, s.start_ns DESC, s.source DESC, s.session DESC, s.path DESC
"""

_SAME = ("source", "path", "status", "project", "harness", "route", "error")

_MODELS = """
SELECT s.id, l.model FROM {tables} WHERE {where}
GROUP BY s.id, l.model ORDER BY SUM(r.output) DESC, l.model
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary(Sums):
    """One session as the list shows it; numbers are those of its responses in the window.

    Attributes:
        source: Id of the source.
        session: Its id.
        path: Its log.
        start_ns: Its start, None in a log without times.
        last_ns: Its last event.
        status: What it ended with, or `running`, `unfinished`.
        project: Its folder.
        harness: The agent program.
        route: The route chosen.
        models: Its models, the one with the most output first.
        duration_ms: Its wall time.
        prompt: The user's first words.
        error: Why it failed.
        requests: LLM calls.
        failed_requests: Those that failed.
        input_tokens: Tokens that touched no cache.
        output_tokens: Generated tokens.
        cache_read_tokens: Tokens served from a cache.
        cache_write_tokens: Tokens written to a cache.
        reasoning_tokens: The part of the output that was reasoning.
        known_nano: Recorded cost.
        estimated_nano: Estimated cost of the rest.
        cost_is_partial: A part has neither.
        counted: Whether it counts in usage.
        archived: Its logs are gone; the ledger remembers it.
        parent: Id of the session of the same source that it was forked from; empty for none.
    """

    source: str
    session: str
    path: str
    start_ns: int | None
    last_ns: int | None
    status: str
    project: str
    harness: str
    route: str
    models: tuple[str, ...]
    duration_ms: int
    prompt: str
    error: str
    requests: int
    failed_requests: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    known_nano: int | None
    estimated_nano: int | None
    cost_is_partial: bool
    counted: bool
    archived: bool = False
    parent: str = ""

    @property
    def start(self) -> str | None:
        """Its start, RFC 3339."""
        return None if self.start_ns is None else format_time(self.start_ns)

    @property
    def last(self) -> str | None:
        """Its last event, RFC 3339."""
        return None if self.last_ns is None else format_time(self.last_ns)

    def to_dict(self) -> dict[str, Any]:
        """The session's object in `sessionlog.sessions/1`."""
        return {name: getattr(self, name) for name in COLUMNS} | {"models": list(self.models)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList(LogReport):
    """Sessions, newest first.

    Attributes:
        sessions: Those with a response in it.
        left_out: The older ones that a limit left out.
    """

    sessions: tuple[SessionSummary, ...]
    left_out: tuple[SessionSummary, ...] = ()

    @property
    def archived_sessions(self) -> int:
        """How many are only remembered: their logs are gone."""
        return sum(session.archived for session in (*self.sessions, *self.left_out))

    @property
    def hidden(self) -> int:
        """How many a limit left out."""
        return len(self.left_out)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.sessions/1`."""
        return self.lazy_dict() | {"sessions": [session.to_dict() for session in self.sessions]}

    def lazy_dict(self) -> dict[str, Any]:
        """The same with its sessions as an iterator, to be written one by one."""
        return {
            "schema": SCHEMA,
            "window": self.window_dict,
            "sessions": map(SessionSummary.to_dict, self.sessions),
            "hidden_sessions": self.hidden,
            "archived_sessions": self.archived_sessions,
            "problems": problems_dict(self.problem_count, self.problems),
        }


def list_sessions(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    window: UsageWindow | str | None = None,
    until: str | None = None,
    tz: str | tzinfo = "UTC",
    now: datetime | None = None,
    prices: PriceBook | None = None,
    filters: Mapping[str, Sequence[str]] | None = None,
    limit: int | None = None,
    env: Mapping[str, str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    live: bool = False,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> SessionList:
    """List the sessions recorded in logs; parameters and errors as for `aggregate_usage`."""
    selection = Selection.of(window, until=until, filters=filters, tz=tz, now=now)
    check_source_names(filters)
    where = Where(
        paths=log_paths(paths), ledger=ledger_path(ledger), env=env, live=live, scanner=scanner(executor, jobs),
        progress=progress,
    )  # fmt: skip
    return ask(where, prices or PriceBook.load(), lambda book: _list(book, selection, limit))


def _list(book: Book, selection: Selection, limit: int | None) -> SessionList:
    found = _fold(book, selection)
    kept = len(found) if limit is None else max(0, limit)
    return SessionList(
        window=selection.window,
        sessions=tuple(found[:kept]),
        **findings_of(book),
        left_out=tuple(found[kept:]),
    )


def _fold(book: Book, selection: Selection) -> list[SessionSummary]:
    selection.prepare(book)
    where, parameters = selection.where(listed_only=True, timed=False)
    parts, bounds = selection.parts()
    tables, parameters = OF_PARTS.format(parts), parameters | bounds
    models: dict[int, tuple[str, ...]] = {}
    same: dict[Any, Any] = {}  # many sessions have the same names: each is kept once

    def add_model(row: tuple[Any, ...]) -> None:
        names = (*models.get(row[0], ()), row[1])
        models[row[0]] = same.setdefault(names, names)

    book.query(_MODELS.format(tables=tables, where=where), parameters, add_model)
    sql = _SQL.format(status=STATUS, tables=tables, where=where)
    return book.query(sql, parameters, lambda row: _summary(row, models.pop(row[-1], ()), same))


def _summary(row: tuple[Any, ...], models: tuple[str, ...], same: dict[Any, Any]) -> SessionSummary:
    names = (name for name in SessionSummary.__slots__ if name != "models")
    values = dict(zip(names, row[:-1], strict=True))
    for name in _SAME:
        values[name] = same.setdefault(values[name], values[name])
    values |= {"cost_is_partial": bool(values["cost_is_partial"]), "counted": bool(values["counted"])}
    values["archived"] = bool(values["archived"])
    values["status"] = values["status"] or "unknown"
    return SessionSummary(**values, models=models)
