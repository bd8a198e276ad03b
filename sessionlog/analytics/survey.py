"""Survey: which agents have logs on this machine, where those are searched for, and when they will be deleted.

"No logs" and "logs that cannot be read" are different results: every file found is either counted or named. Counts come
from the ledger: only changed logs are read, and only existing logs are counted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter

from sessionlog import files
from sessionlog.analytics.columns import Column
from sessionlog.analytics.question import Question, answer, check_source_names
from sessionlog.analytics.report import Report
from sessionlog.analytics.sums import OF_RECORDS, Row, measures, read_rows
from sessionlog.events.times import SECOND
from sessionlog.ledger.identity import path_of
from sessionlog.ledger.problems import MOST_NAMED, problems_of
from sessionlog.ledger.schema import HERE, UNREADABLE
from sessionlog.sources.names import choose_ids
from sessionlog.sources.registry import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Unpack

    from sessionlog.analytics.question import Options, Paths
    from sessionlog.errors import Problem
    from sessionlog.ledger.book import Book
    from sessionlog.sources.protocol import Source

DUE_DAYS = 7
"""The report warns about logs that an agent will delete within so many days."""

_DAY_NS = 86_400 * SECOND
_UNREAD = {"unreadable", "source_failed"}
_IS_THERE = f"f.missing IN ({HERE}, {UNREADABLE})"
_LOGS = {
    "files": "COUNT(*)",
    "bytes": "COALESCE(SUM(size), 0)",
    "due": "COALESCE(SUM(mtime_ns < :due_ns), 0)",
    "problem_count": "COALESCE(SUM(problems), 0)",
}
_OF_LOGS = f"FROM files f WHERE source = :source AND {_IS_THERE}"
_NAMED = f"SELECT named FROM files f WHERE source = :source AND problems AND {_IS_THERE} ORDER BY path"  # noqa: S608 - as above
_RECORDS = measures(("sessions", "requests", "first_ns", "last_ns"), OF_RECORDS)
_OF_RECORDS = f"FROM files f JOIN records r ON r.file_id = f.id WHERE f.source = :source AND {_IS_THERE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    """One agent.

    Attributes:
        source: The source's id.
        title: The agent's name.
        places: (folder or file, whether it exists), in the order of the search.
        files: Logs found.
        bytes: Their size on disk.
        sessions: Sessions in them.
        requests: LLM calls in them.
        oldest_ns: The time of the first LLM call.
        newest_ns: The time of the last LLM call.
        kept_days: After how many days the agent deletes its logs; None if it keeps them, or unknown.
        kept_by: The setting that decides it; None without one.
        caveat: What its logs lack; None if they lack nothing.
        due: Logs that it will delete within `DUE_DAYS`.
        problem_count: Problems in its logs.
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
    kept_by: str | None = None
    caveat: str | None = None
    due: int = 0
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def found_places(self) -> tuple[str, ...]:
        """The places that exist."""
        return tuple(path for path, exists in self.places if exists)


COLUMNS = (
    Column("source", "text", "AGENT", label="agent"),
    Column("title", "text"),
    Column("places", "texts", get=lambda source: tuple(path for path, _ in source.places)),
    Column("found_places", "texts"),
    Column("files", "count", "FILES"),
    Column("bytes", "bytes", "SIZE", 3, label="size"),
    Column("sessions", "count", "SESSIONS", 2),
    Column("requests", "count", "REQUESTS"),
    Column("oldest", "day", "OLDEST", get=attrgetter("oldest_ns"), style="secondary"),
    Column("newest", "day", "NEWEST", 1, get=attrgetter("newest_ns"), style="secondary"),
    Column("kept_days", "days", "KEPT", label="kept", style="secondary"),
    Column("kept_by", "text"),
    Column("caveat", "text"),
    Column("due_within_7_days", get=attrgetter("due")),
    Column("problem_count"),
    Column("problems", "sentences", get=lambda source: [str(problem) for problem in source.problems[:10]]),
)
"""The columns of an agent, in the order of JSON, CSV and tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyTotals:
    """The totals over all agents.

    Attributes:
        files: Logs.
        bytes: Their size on disk.
        sessions: Sessions in them.
        requests: LLM calls in them.
    """

    files: int = 0
    bytes: int = 0
    sessions: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport(Report):
    """All known agents, those with logs first; `problems` are about unusable sources of other packages."""

    schema = "sessionlog.sources/2"
    title = "Sources"
    thing = "agent"
    total_row = False
    columns = COLUMNS

    rows: tuple[FoundSource, ...] = ()

    @property
    def summary(self) -> str:
        """The number of agents with logs."""
        return f"{sum(1 for source in self.rows if source.files)} of {len(self.rows)} agents have logs here"

    def footnotes(self) -> Iterator[str]:
        """Yield nothing: the table has no marks."""
        return iter(())


def survey_sources(paths: Paths = None, **options: Unpack[Options]) -> SourceReport:
    """Report which agents have logs, and the content of existing logs.

    Args:
        paths: Must be None: the agents' own folders are searched.
        options: See `Question`; only `filters` (by `source`), `env`, `ledger`, `now`, `executor`, `jobs` and
            `progress` have an effect.

    Raises:
        InvalidQuery: A pattern matches no source.
    """
    question = Question(paths=paths, **options)
    env = os.environ if question.env is None else question.env
    now_ns = int((question.now or datetime.now(UTC)).timestamp()) * SECOND
    check_source_names(question.filters)
    wanted = (question.filters or {}).get("source", ())

    known = registry()
    chosen = choose_ids([source.id for source in known.sources], wanted)

    def find(book: Book) -> list[FoundSource]:
        return [_found(source, env, book, now_ns) for source in known.sources if source.id in chosen]

    found, problems = answer(replace(question, filters=None, live=False), find), known.problems
    sums = {name: sum(getattr(one, name) for one in found) for name in SurveyTotals.__slots__}
    return SourceReport(
        rows=tuple(sorted(found, key=lambda one: not one.files)), totals=SurveyTotals(**sums),
        problem_count=len(problems), problems=problems,
    )  # fmt: skip


def _found(source: Source, env: Mapping[str, str], book: Book, now_ns: int) -> FoundSource:
    named = {"source": source.id}
    kept = source.retention(env)
    kept_days = None if kept is None else kept.days
    due_ns = 0 if kept_days is None else now_ns - (kept_days - DUE_DAYS) * _DAY_NS
    places = tuple(dict.fromkeys(source.locate(env)))
    [logs] = read_rows(book.query, Row, _LOGS, _OF_LOGS, named | {"due_ns": due_ns})
    [used] = read_rows(book.query, Row, _RECORDS, _OF_RECORDS, named)
    problems = [one for one in book.unlisted if one.path.startswith(places)]
    unread = {one.path for one in problems if one.kind in _UNREAD and os.path.isfile(one.path)}
    known = {path_of(path) for (path,) in book.query("SELECT path FROM files", {})} if unread else set()
    problem_count = logs.problem_count + len(problems)
    problems += [one for (text,) in book.query(_NAMED, named) for one in problems_of(text)]
    return FoundSource(
        source=source.id,
        title=source.title,
        places=tuple((place, files.stat_path(place) is not None) for place in places),
        files=logs.files + len(unread - known),
        bytes=logs.bytes,
        sessions=used.sessions,
        requests=used.requests,
        oldest_ns=used.first_ns,
        newest_ns=used.last_ns,
        kept_days=kept_days,
        kept_by=None if kept is None else kept.setting or None,
        caveat=source.caveat or None,
        due=logs.due,
        problem_count=problem_count,
        problems=tuple(problems[:MOST_NAMED]),
    )
