"""Items: requests, tool calls and sessions of a ledger as values with repeatable ids, page by page.

The id of a trace is a hash of its session, that of a span a hash of its record's key: they are the same on every
machine and after every rebuild of the ledger. What has no time in its log cannot be exported, and is counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection
from sessionlog.events.names import MAIN, UNKNOWN
from sessionlog.events.tokens import TokenUsage
from sessionlog.hashes import blake2b
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import path_of

PAGE = 500
"""Rows that are read at once."""

State = tuple[int, int, int, int, int, int, int, int]
"""What may change in an item while its log grows: its time, length and outcome, and the five token counts."""

_SESSION = "s.id, s.source, s.session, s.place, s.harness"
_COUNTED = "r.requests OR r.input OR r.output OR r.cache_read OR r.cache_write"
_REQUESTS = f"""
SELECT r.file_id, r.n, {_SESSION}, r.key, f.path, r.time_ns, r.latency_ms, r.failed, r.requests,
    r.input, r.output, r.cache_read, r.cache_write, r.reasoning,
    l.provider, l.model, l.response_model, l.project, l.version, l.agent
FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id
    JOIN files f ON f.id = r.file_id
WHERE (r.file_id, r.n) > (:file, :n) AND r.time_ns IS NOT NULL AND ({_COUNTED}) AND {{where}}
ORDER BY r.file_id, r.n LIMIT {PAGE}
"""  # noqa: S608 - names of the schema
_CALLS = f"""
SELECT r.file_id, r.n, {_SESSION}, r.key, r.time_ns, r.duration_ms, r.failed, r.finished,
    r.tool, r.server, r.agent, r.project
FROM tools r JOIN sessions s ON s.id = r.session_id
WHERE (r.file_id, r.n) > (:file, :n) AND r.time_ns IS NOT NULL AND {{where}}
ORDER BY r.file_id, r.n LIMIT {PAGE}
"""  # noqa: S608 - names of the schema
_SESSIONS = """
SELECT id, source, session, place, harness, project, start_ns, last_ns, end_status FROM sessions
WHERE id IN ({ids})
"""
_COUNT = """
SELECT COUNT(*), COALESCE(SUM(r.time_ns IS NULL), 0)
FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id
WHERE ({counted}) AND {where}
"""
_COUNT_CALLS = """
SELECT COUNT(*), COALESCE(SUM(r.time_ns IS NULL), 0) FROM tools r JOIN sessions s ON s.id = r.session_id WHERE {where}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a model, or with `requests` 0 what its session used beyond its requests.

    Attributes:
        id: Its span's id, 64 bits.
        trace: Its session's id as a trace, 128 bits.
        row: Its session's number in the ledger.
        path: Its log.
        source: The agent whose log has it.
        session: The session's id.
        harness: The program that ran it.
        start_ns: Its beginning in nanoseconds since 1970; its end if no latency is known.
        end_ns: When it was answered.
        failed: Whether it failed.
        requests: 1 or 0.
        usage: Its tokens, in disjoint classes.
        provider: Who served it.
        model: The model asked for.
        response_model: The model that answered; `unknown` where that is not logged.
        project: The working folder.
        version: The program's version.
        agent: `main`, or the sub-agent's kind.
    """

    id: int
    trace: int
    row: int
    path: str
    source: str
    session: str
    harness: str
    start_ns: int
    end_ns: int
    failed: bool
    requests: int
    usage: TokenUsage
    provider: str
    model: str
    response_model: str
    project: str
    version: str
    agent: str

    @property
    def state(self) -> State:
        """What may change in it."""
        usage = self.usage
        return (
            self.end_ns, self.end_ns - self.start_ns, int(self.failed),
            usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, with attributes of a request and its own.

    Attributes:
        finished: Whether its result is in the log.
        tool: The tool's name.
        server: The MCP server's name; empty for the agent's own tools.
    """

    id: int
    trace: int
    row: int
    source: str
    session: str
    harness: str
    start_ns: int
    end_ns: int
    failed: bool
    finished: bool
    tool: str
    server: str
    agent: str
    project: str

    @property
    def state(self) -> State:
        """What may change in it."""
        return self.end_ns, self.end_ns - self.start_ns, int(self.failed) + 2 * int(self.finished), 0, 0, 0, 0, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session, around its requests and calls.

    Attributes:
        id: Its span's id.
        trace: The trace's id.
        row: Its number in the ledger.
        source: The agent whose log it is.
        session: Its id.
        harness: The program that ran it.
        project: The working folder.
        start_ns: Its first event; None when that is not logged.
        end_ns: Its last event.
        status: How it ended; None without an end.
    """

    id: int
    trace: int
    row: int
    source: str
    session: str
    harness: str
    project: str
    start_ns: int | None
    end_ns: int | None
    status: str | None


Item = Request | Call


def trace_of(source: str, session: str, place: str) -> int:
    """Return the id of a session's trace; `place` is where its id is unique, empty for everywhere."""
    return _hash(16, source, session, place)


def root_of(trace: int) -> int:
    """Return the id of the span around a session."""
    return _hash(8, trace, "session")


def read_requests(book: Book, selection: Selection) -> Iterator[Sequence[Request]]:
    """Yield the requests of a selection with their times, in pages, in an order that stays the same."""
    selection.prepare(book)
    where, parameters = selection.where()
    yield from _pages(book, _REQUESTS.format(where=where), parameters, _request)


def read_calls(book: Book, selection: CallSelection) -> Iterator[Sequence[Call]]:
    """Yield the tool calls of a selection as `read_requests` does; an open one when its session no longer runs."""
    selection.prepare(book)
    where, parameters = selection.where(listed_only=True)
    unfinished = f"(r.finished OR {selection.expressions['status']} <> 'running')"
    yield from _pages(book, _CALLS.format(where=f"{where} AND {unfinished}"), parameters, _call)


def read_sessions(book: Book, rows: Sequence[int]) -> list[Session]:
    """Return the sessions with these numbers."""
    found = book.query(_SESSIONS.format(ids=", ".join(map(str, rows))), {})
    return [_session(row) for row in found]


def count_items(book: Book, requests: Selection, calls: CallSelection | None) -> tuple[int, int, int]:
    """Return how many requests and how many calls are selected, and how many of both have no time."""
    requests.prepare(book)
    where, parameters = requests.where()
    [(count, timeless)] = book.query(_COUNT.format(counted=_COUNTED, where=where), parameters)
    if calls is None:
        return count, 0, timeless
    where, parameters = calls.where(listed_only=True)
    [(call_count, more)] = book.query(_COUNT_CALLS.format(where=where), parameters)
    return count, call_count, timeless + more


def _pages(book: Book, sql: str, parameters: dict[str, Any], make: Any) -> Iterator[Sequence[Any]]:
    file, n = -1, -1
    while rows := book.query(sql, parameters | {"file": file, "n": n}):
        file, n = rows[-1][:2]
        yield [make(row) for row in rows]


def _request(row: tuple[Any, ...]) -> Request:
    (_, n, number, source, session, place, harness, key, path, time_ns, latency_ms, failed, requests, *counts) = row
    tokens, (provider, model, response_model, project, version, agent) = counts[:5], counts[5:]
    trace = trace_of(source, session, place)
    path = path_of(path)
    name = ("key", source, key) if key is not None else ("row", trace, os.path.basename(path), n)
    return Request(
        id=_hash(8, *name),
        trace=trace,
        row=number,
        path=path,
        source=source,
        session=session,
        harness=harness if harness != UNKNOWN else source,
        start_ns=_before(time_ns, latency_ms),
        end_ns=time_ns,
        failed=bool(failed),
        requests=requests,
        usage=TokenUsage(
            input=tokens[0], output=tokens[1], cache_read=tokens[2], cache_write=tokens[3], reasoning=tokens[4]
        ),
        provider=provider,
        model=model,
        response_model=response_model,
        project=project,
        version=version,
        agent=agent,
    )


def _call(row: tuple[Any, ...]) -> Call:
    (_, _, number, source, session, place, harness, key, time_ns, duration_ms, failed, finished, *names) = row
    tool, server, agent, project = names
    return Call(
        id=_hash(8, "call", source, key),
        trace=trace_of(source, session, place),
        row=number,
        source=source,
        session=session,
        harness=harness if harness != UNKNOWN else source,
        start_ns=time_ns,
        end_ns=2 * time_ns - _before(time_ns, duration_ms),
        failed=bool(failed),
        finished=bool(finished),
        tool=tool,
        server=server,
        agent=agent,
        project=project,
    )


def _session(row: tuple[Any, ...]) -> Session:
    number, source, session, place, harness, project, start_ns, last_ns, status = row
    trace = trace_of(source, session, place)
    return Session(
        id=root_of(trace), trace=trace, row=number, source=source, session=session,
        harness=harness if harness != UNKNOWN else source, project=project, start_ns=start_ns, end_ns=last_ns,
        status=status,
    )  # fmt: skip


def _before(time_ns: int, duration_ms: float | None) -> int:
    """Return the time that lies a duration before another one."""
    return max(0, time_ns - round(duration_ms * 1e6)) if duration_ms is not None and duration_ms > 0 else time_ns


def _hash(size: int, *parts: object) -> int:
    """Return a hash of so many bytes that is not 0, which the ids of OpenTelemetry must not be."""
    return int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=size).digest()) or 1


def is_main(agent: str) -> bool:
    """Return whether an agent's name is that of no sub-agent."""
    return agent in ("", MAIN, UNKNOWN)
