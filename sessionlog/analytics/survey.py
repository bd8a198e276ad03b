"""Survey: which agents have logs on this machine, where they were looked for, and how long they will be there.

"No logs" and "logs that cannot be read" are different answers: every file that was found is either counted or named.
The ledger answers: only logs that have changed are read, and only logs that are there are counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sessionlog import files
from sessionlog.engine.scanner import scanner
from sessionlog.errors import Problem, problems_dict
from sessionlog.events.times import SECOND, format_time
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.reading import MOST_NAMED, problems_of
from sessionlog.ledger.schema import HERE, UNREADABLE
from sessionlog.ledger.sync import Progress
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Source
from sessionlog.sources.registry import choose_sources, registry

SCHEMA = "sessionlog.sources/1"
DUE_DAYS = 7
"""Logs that an agent deletes within so many days are warned about."""

_DAY_NS = 86_400 * SECOND
_UNREAD = {"unreadable", "source_failed"}
_IS_THERE = f"f.missing IN ({HERE}, {UNREADABLE})"
_LOGS = f"""SELECT COUNT(*), COALESCE(SUM(size), 0), COALESCE(SUM(mtime_ns < :due_ns), 0), COALESCE(SUM(problems), 0)
    FROM files f WHERE source = :source AND {_IS_THERE}"""  # noqa: S608 - names of the schema
_NAMED = f"SELECT named FROM files f WHERE source = :source AND problems AND {_IS_THERE} ORDER BY path"  # noqa: S608 - as above
_RECORDS = f"""SELECT COUNT(DISTINCT r.session_id), SUM(r.requests), MIN(r.time_ns), MAX(r.time_ns)
    FROM files f JOIN records r ON r.file_id = f.id WHERE f.source = :source AND {_IS_THERE}"""  # noqa: S608 - as above


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
        caveat: What its logs do not hold.
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
    caveat: str = ""
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
            "caveat": self.caveat or None,
            "due_within_7_days": self.due,
            "problems": problems_dict(self.problem_count, self.problems),
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
            "problems": problems_dict(len(self.problems), self.problems),
        }


def survey_sources(
    *,
    env: Mapping[str, str] | None = None,
    sources: Sequence[str] = (),
    ledger: str | None = None,
    now: datetime | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> SourceReport:
    """Report which agents have logs, and what is in those that are there.

    Args:
        env: Says where agents write; the process's environment when None.
        sources: Glob patterns of source ids; all when empty.
        ledger: The file that remembers what was read, so that only what has changed is read; None scans everything.
        now: The present moment.
        jobs: How many processes scan.
        progress: Called with (files done, files in all).

    Raises:
        InvalidQuery: A pattern fits no source.
    """
    env = os.environ if env is None else env
    now_ns = int((now or datetime.now(UTC)).timestamp()) * SECOND
    chosen = choose_sources(sources)
    where = Where(ledger=ledger, env=env, scanner=scanner(jobs=jobs), progress=progress)
    found = ask(where, PriceBook.load(), lambda book: [_found(source, env, book, now_ns) for source in chosen])
    return SourceReport(sources=tuple(sorted(found, key=lambda one: not one.files)), problems=registry().problems)


def _found(source: Source, env: Mapping[str, str], book: Book, now_ns: int) -> FoundSource:
    places = tuple(dict.fromkeys(source.locate(env)))
    named = {"source": source.id}
    kept = source.retention(env)
    due_ns = 0 if kept is None or kept.days is None else now_ns - (kept.days - DUE_DAYS) * _DAY_NS
    [(count, size, due, damaged)] = book.query(_LOGS, named | {"due_ns": due_ns})
    [(sessions, requests, oldest_ns, newest_ns)] = book.query(_RECORDS, named)
    problems = [one for one in book.unlisted if one.path.startswith(places)]
    unread = {one.path for one in problems if one.kind in _UNREAD and os.path.isfile(one.path)}
    known = {path_of(path) for (path,) in book.query("SELECT path FROM files", {})} if unread else set()
    count_of_problems = damaged + len(problems)
    problems += [one for (text,) in book.query(_NAMED, named) for one in problems_of(text)]
    return FoundSource(
        source=source.id,
        title=source.title,
        places=tuple((place, files.stat_path(place) is not None) for place in places),
        files=count + len(unread - known),
        bytes=size,
        sessions=sessions,
        requests=requests or 0,
        oldest_ns=oldest_ns,
        newest_ns=newest_ns,
        kept_days=None if kept is None else kept.days,
        kept_by="" if kept is None else kept.setting,
        caveat=source.caveat,
        due=due,
        problem_count=count_of_problems,
        problems=tuple(problems[:MOST_NAMED]),
    )
