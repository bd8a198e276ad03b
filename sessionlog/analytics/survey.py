"""Survey: which agents have logs on this machine, where they were looked for, and how long they will be there.

"No logs" and "logs that cannot be read" are different answers: every file that was found is either counted or named.
Each agent is looked at by itself: a response that another agent's log tells better counts here for both, and in reports
once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sessionlog import files
from sessionlog.errors import Problem
from sessionlog.events.times import SECOND, format_time
from sessionlog.ledger.book import Book
from sessionlog.ledger.rows import to_rows
from sessionlog.ledger.scanning import scan_or_explain
from sessionlog.ledger.schema import FROM
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.discover import discover
from sessionlog.sources.protocol import Log, Source
from sessionlog.sources.record import Problems
from sessionlog.sources.registry import choose_sources, registry

SCHEMA = "sessionlog.sources/1"
DUE_DAYS = 7
"""Logs that an agent deletes within so many days are warned about."""

_DAY_NS = 86_400 * SECOND
_SQL = f"SELECT COUNT(DISTINCT s.id), SUM(r.requests), MIN(r.time_ns), MAX(r.time_ns) FROM {FROM}"  # noqa: S608 - names of the schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    """One agent.

    Attributes:
        source: The source's id.
        title: The agent's name.
        places: (folder or file, whether it is there), in the order in which they are looked at.
        files: Logs found.
        bytes: Their size on disk.
        sessions: Sessions in them.
        requests: LLM calls in them.
        oldest_ns: The earliest of those.
        newest_ns: The latest.
        kept_days: After how many days the agent deletes its logs; None = it keeps them, or nothing is known.
        kept_by: The setting that says so.
        due: Logs that it will delete within a week.
        problem_count: Findings about its logs.
        problems: The first of them.
    """

    source: str
    title: str
    places: tuple[tuple[str, bool], ...]
    files: int = 0
    bytes: int = 0
    sessions: int = 0
    requests: int = 0
    oldest_ns: int | None = None
    newest_ns: int | None = None
    kept_days: int | None = None
    kept_by: str = ""
    due: int = 0
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The source's object in `sessionlog.sources/1`."""
        return {
            "source": self.source,
            "title": self.title,
            "places": [{"path": path, "exists": exists} for path, exists in self.places],
            "files": self.files,
            "bytes": self.bytes,
            "sessions": self.sessions,
            "requests": self.requests,
            "oldest": None if self.oldest_ns is None else format_time(self.oldest_ns),
            "newest": None if self.newest_ns is None else format_time(self.newest_ns),
            "kept_days": self.kept_days,
            "kept_by": self.kept_by or None,
            "due_within_7_days": self.due,
            "problems": {"count": self.problem_count, "first": [str(p) for p in self.problems[:10]]},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """All agents that are known, those with logs first.

    Attributes:
        sources: The agents.
        problems: Sources of other packages that cannot be used.
    """

    sources: tuple[FoundSource, ...]
    problems: tuple[Problem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document `sessionlog.sources/1`."""
        return {
            "schema": SCHEMA,
            "sources": [source.to_dict() for source in self.sources],
            "problems": {"count": len(self.problems), "first": [str(p) for p in self.problems[:10]]},
        }


def survey_sources(
    *,
    env: Mapping[str, str] | None = None,
    sources: Sequence[str] = (),
    now: datetime | None = None,
    progress: Progress | None = None,
) -> SourceReport:
    """Look for the logs of every agent, and read them.

    Args:
        env: Says where agents write; the process's environment when None.
        sources: Glob patterns of source ids; all when empty.
        now: The present moment.
        progress: Called with (files done, files in all).

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    env = os.environ if env is None else env
    now_ns = int((now or datetime.now(UTC)).timestamp()) * SECOND
    chosen = choose_sources(sources)
    listed = {source.id: list(discover(env, [source])) for source in chosen}
    total, done = sum(map(len, listed.values())), 0
    prices, found = PriceBook.load(), []
    for source in chosen:
        book = Book(prices)
        for item in listed[source.id]:
            _take(book, item)
            done += 1
            if progress is not None:
                progress(done, total)
        book.reconcile()
        found.append(_found(source, env, book, listed[source.id], now_ns))
        book.close()
    return SourceReport(sources=tuple(sorted(found, key=lambda one: not one.files)), problems=registry().problems)


def _take(book: Book, item: Log | Problem) -> None:
    if isinstance(item, Log):
        book.enter(item.path, to_rows(scan_or_explain(item)[0], book.prices), source=item.source.id)
    else:
        book.note(Problems(count=1, first=(item,)))


def _found(
    source: Source, env: Mapping[str, str], book: Book, listed: Sequence[Log | Problem], now_ns: int
) -> FoundSource:
    states = [files.stat_path(item.path) for item in listed if isinstance(item, Log)]
    kept = source.retention(env)
    due_ns = None if kept is None or kept.days is None else now_ns - (kept.days - DUE_DAYS) * _DAY_NS
    [(sessions, requests, oldest_ns, newest_ns)] = book.query(_SQL, {})
    return FoundSource(
        source=source.id,
        title=source.title,
        places=tuple((place, files.stat_path(place) is not None) for place in dict.fromkeys(source.locate(env))),
        files=len(states),
        bytes=sum(state.st_size for state in states if state is not None),
        sessions=sessions,
        requests=requests or 0,
        oldest_ns=oldest_ns,
        newest_ns=newest_ns,
        kept_days=None if kept is None else kept.days,
        kept_by="" if kept is None else kept.setting,
        due=0 if due_ns is None else sum(state is not None and state.st_mtime_ns < due_ns for state in states),
        problem_count=book.problem_count,
        problems=tuple(book.problems),
    )
