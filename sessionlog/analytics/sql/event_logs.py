"""Which logs hold the wanted events: all that are found, less those that the ledger knows to be outside.

A sub-agent's log is left out beside its session's log, with which it is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessionlog import files
from sessionlog.analytics.conditions import within_64_bits
from sessionlog.engine.scanner import scanner
from sessionlog.errors import LogNotReadable, MissingExtra, Problem, log_problem
from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.identity import path_of
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.find import matching
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import choose_sources
from sessionlog.transcript.event_files import LogPart

if TYPE_CHECKING:
    from sessionlog.analytics.window import UsageWindow
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook

_DAY_NS = 86_400 * 1_000_000_000

_OUTSIDE = """
SELECT f.path FROM files f WHERE EXISTS (SELECT 1 FROM log_sessions x WHERE x.file_id = f.id) AND NOT EXISTS (
    SELECT 1 FROM log_sessions x JOIN all_sessions s ON s.id = x.session_id WHERE x.file_id = f.id
    AND (s.last_ns IS NULL OR s.last_ns >= :start_ns) AND (s.start_ns IS NULL OR s.start_ns < :end_ns))
"""
"""Logs of which no session is in the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSelection:
    """Which events are wanted.

    Attributes:
        paths: Files and folders; None for all places where agents write.
        env: The environment, which gives the folders of agents.
        window: The time of events; None for any.
        sources: Glob patterns of agents' ids; none for all.
        projects: Glob patterns of working folders; none for all.
        sessions: Ids, or beginnings or ends of ids; none for all.
        ledger: The ledger's file, which knows the time of sessions; None if all logs are to be read.
        prices: What the ledger is brought up to date with.
        jobs: Processes that read.
        progress: Called with (files done, files in all), of the ledger's scan and then of reading events.
    """

    paths: Sequence[str] | None = None
    env: Mapping[str, str]
    window: UsageWindow | None = None
    sources: Sequence[str] = ()
    projects: Sequence[str] = ()
    sessions: Sequence[str] = ()
    ledger: str | None = None
    prices: PriceBook | None = None
    jobs: int | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLogs:
    """The logs of a selection.

    Attributes:
        parts: The logs, each with the wanted ones of its sessions.
        sizes: The bytes of each.
        problems: Places and logs that cannot be read.
        notes: Sentences about the ledger.
        left_out: Logs that the ledger knows to be outside the window.
    """

    parts: tuple[LogPart, ...]
    sizes: tuple[int, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    left_out: int = 0


def choose_logs(selection: EventSelection) -> ChosenLogs:
    """Return the logs that hold the wanted events, and possibly others.

    Raises:
        InvalidQuery: A source pattern matches no agent.
    """
    outside, notes = _outside(selection)
    found, problems = list[Log](), list[Problem]()
    for item in _find(selection):
        if isinstance(item, Log):
            found.append(item)
        elif item.severity == "damage":
            problems.append(item)
    beside = {files.real_path(path) for log in found for path in log.source.subagent_logs(log.path)}
    inside = [log for log in found if log.path not in outside and files.real_path(log.path) not in beside]
    named = [(log, *_sessions(log)) for log in inside]
    problems += [problem for _, _, problem in named if problem is not None]
    known = {session for _, sessions, _ in named for session in sessions}
    wanted = {one for target in selection.sessions for one in matching(target, known)} if selection.sessions else known
    parts = [
        LogPart(source=log.source.id, path=log.path, sessions=tuple(one for one in sessions if one in wanted))
        for log, sessions, _ in named
        if not wanted.isdisjoint(sessions)
    ]
    return ChosenLogs(
        parts=tuple(parts),
        sizes=tuple(map(_size, parts)),
        problems=tuple(problems),
        notes=notes,
        left_out=sum(log.path in outside for log in found),
    )


def _find(selection: EventSelection) -> Iterator[Log | Problem]:
    sources = choose_sources(selection.sources)
    if selection.paths is None:
        return discover(selection.env, sources)
    return find_logs(selection.paths, selection.env, sources)


def _outside(selection: EventSelection) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the logs that the ledger knows to be outside the window, with a day's margin, and its notes."""
    window = selection.window
    if selection.ledger is None or selection.paths is not None or window is None or selection.prices is None:
        return frozenset(), ()
    bounds: dict[str, Any] = {
        "start_ns": within_64_bits(window.start_ns - _DAY_NS if window.start_ns is not None else -(1 << 63)),
        "end_ns": within_64_bits(window.end_ns + _DAY_NS if window.end_ns is not None else 1 << 63),
    }
    notes: list[str] = []

    def query(book: Book) -> frozenset[str]:
        notes.extend(book.notes)
        return frozenset(path_of(path) for (path,) in book.query(_OUTSIDE, bounds))

    where = Where(
        ledger=selection.ledger, env=selection.env, prices=selection.prices,
        scanner=scanner(jobs=selection.jobs), progress=selection.progress,
    )  # fmt: skip
    return ask(where, query), tuple(notes)


def _sessions(log: Log) -> tuple[tuple[str, ...], Problem | None]:
    try:
        return tuple(log.source.name_sessions(log.path)), None
    except (LogNotReadable, MissingExtra) as error:
        return (), log_problem(log.path, error)


def _size(part: LogPart) -> int:
    """Return the bytes of a log; of a folder of small files their sum."""
    if os.path.isdir(part.path):
        return sum(map(_file_size, (os.path.join(part.path, name) for name in files.list_names(part.path))))
    return _file_size(part.path)


def _file_size(path: str) -> int:
    status = files.stat_path(path)
    return 0 if status is None else status.st_size
