"""A session's requests for an audit: on the wire, in the agent's log, and in what it exported by OTel.

The session may be named by the agent's id or log, or by those of the session on the wire. Only requests that have a
time are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sessionlog import files
from sessionlog.analytics.status.sums import NAMED
from sessionlog.errors import AmbiguousSession, LogNotReadable
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import stored_forms
from sessionlog.ledger.wire import BESIDE_NS, REQUESTS, Request, match, requests_in, spans_of, windows

CLASSES = ("input", "cache_read", "cache_write", "output")
"""The token classes that are compared."""

Place = tuple[int, int]
"""A row of the ledger: (log, number)."""

_OTEL = "otel"
_COLUMNS = "SELECT s.id, s.source, s.session, s.on_wire_of FROM all_sessions s WHERE NOT s.elsewhere AND"
_LOG = "SELECT f.id FROM files f WHERE f.path IN ({forms})"
_IN_LOG = f"""s.source <> '{_OTEL}'
    AND s.id IN (SELECT t.session_id FROM log_sessions t WHERE t.file_id IN ({_LOG}))"""  # noqa: S608 - names of the schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The requests of a session.

    Attributes:
        source: The agent, else the source of the session on the wire.
        session: Its id.
        on_wire: The requests that passed on the wire.
        logged: The rows of the agent's log, of the time in which something was recorded on the wire.
        exported: The same of its OTel export.
        matches: Request on the wire → its row in the log, and how they were paired.
        summed_up: Sums of the log that stand for requests which are only on the wire.
        beside: Rows of the log of other times.
        has_wire: Something was recorded on the wire.
        has_log: The session is in a log of the agent's.
    """

    source: str
    session: str
    on_wire: Sequence[Request]
    logged: Sequence[Request]
    exported: Sequence[Request]
    matches: Mapping[Place, tuple[Place, str]]
    summed_up: frozenset[Place]
    beside: int
    has_wire: bool
    has_log: bool


def find_requests(book: Book, target: str) -> Found:
    """Return the requests of the session that a text names.

    Raises:
        LogNotReadable: No session has this name.
        AmbiguousSession: Several sessions match.
    """
    number, source, session, is_wire = _find(book, target)
    on_wire, matches, summed_up, wires, agents = _matched(book, number, is_wire=is_wire)
    logged = _requests(book, agents, "r.chosen AND (r.requests OR r.summed)")
    spans = [span[:2] for span in spans_of(book.connection, wires)]
    paired = {place for place, _ in matches.values()}
    near = [one for one in logged if one.place in paired or _is_within(one, spans)] if wires else logged
    exported = _requests(book, _exports(book, agents), "r.n >= 0 AND r.requests")
    if is_wire and agents:
        sql = f"SELECT source, session FROM all_sessions WHERE id {_in(agents)} ORDER BY start_ns, session"  # noqa: S608 - numbers
        [(source, session), *_] = book.query(sql, {})
    return Found(
        source=source,
        session=session,
        on_wire=on_wire,
        logged=near,
        exported=[one for one in exported if not wires or _is_within(one, spans)],
        matches=matches,
        summed_up=frozenset(summed_up),
        beside=sum(not one.summed for one in logged) - sum(not one.summed for one in near),
        has_wire=bool(wires),
        has_log=bool(agents),
    )


def _matched(
    book: Book, number: int, *, is_wire: bool
) -> tuple[list[Request], dict[Place, tuple[Place, str]], set[Place], set[int], set[int]]:
    """Return what passed on the wire of a session, its matches, and the sessions on the wire and of agents."""
    on_wire: list[Request] = []
    pairs, summed_up = dict[Place, tuple[Place, str]](), set[Place]()
    wires, agents = ({number}, set[int]()) if is_wire else (set[int](), {number})
    spans = spans_of(book.connection, [number])
    for window in windows(book.connection):
        if not any(window.first_ns <= span.last_ns and window.last_ns >= span.start_ns for span in spans):
            continue
        found = match(window, requests_in(book.connection, window))
        links = {(wire.session_id, log.session_id) for wire, log, _ in found.pairs}
        links |= {(some[0].session_id, one.session_id) for some, sums in found.summed_up for one in sums}
        near = {wire for wire, agent in links if number in {wire, agent}} | (wires & window.sessions.keys())
        wires |= near
        agents |= {agent for wire, agent in links if wire == number}
        agent_of = {wire.place: log.session_id for wire, log, _ in found.pairs}
        on_wire += [
            one
            for one in found.on_wire
            if one.session_id in near
            and (is_wire or agent_of.get(one.place, window.sessions[one.session_id].home) == number)
        ]
        pairs |= {wire.place: (log.place, by) for wire, log, by in found.pairs if wire.session_id in near}
        summed_up |= {one.place for some, sums in found.summed_up if some[0].session_id in near for one in sums}
    return on_wire, pairs, summed_up, wires, agents


def _find(book: Book, target: str) -> tuple[int, str, str, bool]:
    """Return (number, source, id, whether it was recorded on the wire) of the session that a text names."""
    forms = {f"form_{number}": form for number, form in enumerate(stored_forms(target))}
    marks = ", ".join(f":{name}" for name in forms)
    for condition in (_IN_LOG.format(forms=marks), *NAMED):
        found = book.query(f"{_COLUMNS} {condition} ORDER BY s.session, s.source", {"name": target, **forms})
        found = [row for row in found if row[1] != _OTEL] or found
        if len(found) > 1:
            raise AmbiguousSession(target, tuple(f"{row[1]}:{row[2]}" for row in found))
        for number, source, session, on_wire_of in found:
            return number, source, session, on_wire_of is not None
    is_known = bool(book.query(_LOG.format(forms=marks), forms))
    raise LogNotReadable(f"{target}: {_why_not_found(target, is_known=is_known)}")


def _why_not_found(target: str, *, is_known: bool) -> str:
    """Return why a text names no session, and what to do; `is_known`: it is a log in the ledger."""
    if files.stat_path(target) is None:
        return "no such file, and no session has this id; `sessionlog sessions` lists them"
    if files.is_directory(target):
        return "this is a folder; name a log in it, or the id of a session (`sessionlog sessions`)"
    if is_known:
        return "no session in this log can be named by its path; name one by its id (`sessionlog sessions`)"
    return (
        "this file is in no folder where agents write (`sessionlog sources`), and an audit compares the logs there; "
        "set SESSIONLOG_DIR to the folder of a log that `sessionlog run --dir` has written"
    )


def _in(numbers: Iterable[int]) -> str:
    return f"IN ({', '.join(map(str, sorted(numbers)))})"


def _is_within(request: Request, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start - BESIDE_NS <= request.time_ns <= last + BESIDE_NS for start, last in spans)


def _exports(book: Book, agents: Iterable[int]) -> set[int]:
    """Return the OTel sessions that repeat what these sessions' own logs have."""
    sql = f"""SELECT DISTINCT s.id, r.superseded_by, a.source || ':' || a.session FROM all_sessions a
        JOIN all_sessions s ON s.source = :otel AND s.session = a.session
        JOIN log_sessions t ON t.session_id = s.id
        JOIN responses r ON r.file_id = t.file_id AND r.session_id = s.id
        WHERE a.id {_in(agents)} AND r.superseded_by IS NOT NULL"""  # noqa: S608 - numbers
    found = book.query(sql, {"otel": _OTEL})
    return {number for number, superseded_by, name in found if name in superseded_by.split("\n")}


def _requests(book: Book, sessions: Iterable[int], condition: str) -> list[Request]:
    """Return the requests of these sessions that have a time, in its order."""
    return book.query(REQUESTS.format(sessions=_in(sessions), rows=condition), {}, Request._make)
