"""A session's requests for an audit: on the wire, in the agent's log, and in what it exported by OTel.

The session may be named by the agent's id or log, or by those of the session on the wire. Only requests that have a
time are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sessionlog import files
from sessionlog.analytics.status.sums import NAMED
from sessionlog.errors import AmbiguousSession, LogNotReadable
from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.book import Book
from sessionlog.ledger.identity import stored_forms
from sessionlog.ledger.pairing import NEAR_NS
from sessionlog.ledger.schema import MADE

CLASSES = ("input", "cache_read", "cache_write", "output")
"""The token classes that are compared."""

Place = tuple[int, int]
"""A row of the ledger: (log, number)."""

_OTEL = "otel"
_LONGEST_MS = 1e9
_COLUMNS = "SELECT s.id, s.source, s.session, s.on_wire_of FROM all_sessions s WHERE NOT s.elsewhere AND"
_LOG = "SELECT f.id FROM files f WHERE f.path IN ({forms})"
_IN_LOG = f"""s.source <> '{_OTEL}'
    AND s.id IN (SELECT t.session_id FROM log_sessions t WHERE t.file_id IN ({_LOG}))"""  # noqa: S608 - names of the schema


class Request(NamedTuple):
    """A request as one origin has it.

    Attributes:
        place: Its row in the ledger: (log, number).
        begin_ns: When it was sent, if its latency is known; else the same as `time_ns`.
        time_ns: When it was answered.
        model: The model asked for, or that answered where that is all there is.
        tokens: The counts of `CLASSES`.
        failed: Whether it failed.
        summed: The log has no row of it, but a sum of all such requests.
        counts: Whether its row counts.
        names: (model that answered, model asked for).
        response_id: The provider's id, hashed.
    """

    place: Place
    begin_ns: int
    time_ns: int
    model: str
    tokens: tuple[int, int, int, int]
    failed: bool
    summed: bool
    counts: bool
    names: tuple[str, str]
    response_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The requests of a session.

    Attributes:
        source: The agent, else the source of the session on the wire.
        session: Its id.
        on_wire: The requests that passed on the wire.
        logged: The rows of the agent's log, of the time in which something was recorded on the wire.
        exported: The same of its OTel export.
        matches: Request on the wire → its row in the log (None for none), and how they were paired.
        beside: Rows of the log of other times.
        has_wire: Something was recorded on the wire.
        has_log: The session is in a log of the agent's.
    """

    source: str
    session: str
    on_wire: Sequence[Request]
    logged: Sequence[Request]
    exported: Sequence[Request]
    matches: Mapping[Place, tuple[Place | None, str]]
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
    column = "wire_session" if is_wire else "session_id"
    sql = f"""SELECT file_id, n, wire_session, session_id, log_file, log_n, matched_by FROM wire_matches
        WHERE {column} = :number"""  # noqa: S608 - a name of the schema
    matches = book.query(sql, {"number": number})
    wires = {match[2] for match in matches} | ({number} if is_wire else set())
    agents = {match[3] for match in matches} | (set() if is_wire else {number})
    pairs: dict[Place, tuple[Place | None, str]] = {
        (file_id, n): (None if log_file is None else (log_file, log_n), matched_by)
        for file_id, n, _, _, log_file, log_n, matched_by in matches
    }
    passed = _requests(book, wires, "r.chosen AND r.n >= 0 AND r.requests")
    on_wire = [one for one in passed if is_wire or one.place in pairs]
    logged = _requests(book, agents, f"r.chosen AND r.n > {MADE} AND (r.requests OR r.summed)")
    exported = _requests(book, _exports(book, agents), "r.n >= 0 AND r.requests")
    spans = _spans(book, wires)
    paired = {place for place, _ in pairs.values()}
    near = [one for one in logged if one.place in paired or _is_within(one, spans)] if wires else logged
    if is_wire and agents:
        sql = f"SELECT source, session FROM all_sessions WHERE id {_in(agents)} ORDER BY start_ns, session"  # noqa: S608 - numbers
        [(source, session), *_] = book.query(sql, {})
    return Found(
        source=source,
        session=session,
        on_wire=on_wire,
        logged=near,
        exported=[one for one in exported if not wires or _is_within(one, spans)],
        matches=pairs,
        beside=sum(not one.summed for one in logged) - sum(not one.summed for one in near),
        has_wire=bool(wires),
        has_log=bool(agents),
    )


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


def _spans(book: Book, sessions: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last time of sessions that have times."""
    sql = f"SELECT start_ns, last_ns FROM all_sessions WHERE id {_in(sessions)} AND start_ns IS NOT NULL"  # noqa: S608 - numbers
    return book.query(sql, {})


def _is_within(request: Request, spans: Iterable[tuple[int, int]]) -> bool:
    return any(start - NEAR_NS <= request.time_ns <= last + NEAR_NS for start, last in spans)


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
    sql = f"""SELECT r.file_id, r.n, r.time_ns, r.latency_ms, l.model, l.response_model, r.input, r.cache_read,
            r.cache_write, r.output, r.failed, r.summed, r.counts, r.response_id
        FROM (SELECT DISTINCT file_id, session_id FROM log_sessions WHERE session_id {_in(sessions)}) t
        JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id JOIN labels l ON l.id = r.label_id
        WHERE r.time_ns IS NOT NULL AND {condition} ORDER BY r.time_ns, r.file_id, r.n"""  # noqa: S608 - closed lists and numbers
    return [_request(*row) for row in book.query(sql, {})]


def _request(
    file_id: int, n: int, time_ns: int, latency_ms: float | None, asked: str, served: str, input_tokens: int,
    cache_read: int, cache_write: int, output: int, failed: int, summed: int, counts: int, response_id: int | None,
) -> Request:  # fmt: skip
    names = (served if served != UNKNOWN else asked, asked if asked != UNKNOWN else served)
    return Request(
        place=(file_id, n),
        begin_ns=time_ns - int(min(max(latency_ms or 0.0, 0.0), _LONGEST_MS) * 1_000_000),
        time_ns=time_ns,
        model=names[1],
        tokens=(input_tokens, cache_read, cache_write, output),
        failed=bool(failed),
        summed=bool(summed),
        counts=bool(counts),
        names=names,
        response_id=response_id,
    )
