"""Wire: a request that was recorded on the wire, and the agent's own log of it, count once.

A session that was recorded on the wire names the source whose log may hold the same requests (`on_wire_of`). A request
of it and a row of a log are the same one if they have the same provider's id of the response; without ids, if the
tokens are equal and the row is of that source, and of the time of the session on the wire: the first with the first.

Of the two the better record counts, the log's if they are equal: the better quality (exact, partial, estimated), then
the greatest output, then the greatest total. What no log has counts on the wire. Sums of sessions have both in the
agent's session, the `home` of that on the wire.

Some logs have sums of requests without a row: a compaction, or all that a run used. The requests only on the wire, in
its time, that add up to it are the same ones, and the sum counts. If none do, all are: the greater total counts.

So reports of a log are as without the wire, and what it lacks is added. All of this sets `counts` of rows that are
`chosen` among copies, and depends on nothing but the rows of sessions near each other in time. After a change those
near the changed sessions are decided again. Without any session on the wire this is one look into an empty index.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sessionlog.events.times import SECOND
from sessionlog.ledger.statements import choose

if TYPE_CHECKING:
    import sqlite3

NEAR_NS = 600 * SECOND
"""How far apart the two records of a response may be: clocks differ, and some servers use their ids again."""

BESIDE_NS = 10 * SECOND
"""How far outside the time of a session on the wire a log may have its requests."""

_QUALITIES = ("estimated", "partial", "exact")
_LAST_NS = 2**63 - 1  # of the times that the ledger can hold

REQUESTS = """SELECT r.file_id, r.n, s.id, s.source, s.project, r.time_ns, l.model, l.response_model, l.quality,
    r.input, r.cache_read, r.cache_write, r.output, r.failed, r.summed, r.counts, r.response_id
FROM (SELECT DISTINCT file_id, session_id FROM log_sessions WHERE session_id {sessions}) t
JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id
JOIN all_sessions s ON s.id = r.session_id JOIN labels l ON l.id = r.label_id JOIN files f ON f.id = r.file_id
WHERE r.time_ns IS NOT NULL AND {rows}
ORDER BY r.time_ns, f.path, r.input, r.cache_read, r.cache_write, r.output, r.response_id, r.n"""
"""The requests of some sessions, as `Request`, in an order that does not depend on when logs were read."""

_IN_WINDOW = "IN (SELECT id FROM all_sessions WHERE NOT elsewhere AND start_ns <= :last AND last_ns >= :first)"
_SINGLE_OR_SUM = """r.chosen AND r.time_ns BETWEEN :first AND :last
    AND (r.summed OR r.requests = 1 AND l.granularity = 'request')"""


class Request(NamedTuple):
    """A row of `responses`, with what is known of it from its session and label."""

    file_id: int
    n: int
    session_id: int
    source: str
    project: str
    time_ns: int
    asked: str
    served: str
    quality: str
    input: int
    cache_read: int
    cache_write: int
    output: int
    failed: int
    summed: int
    counts: int
    response_id: int | None

    @property
    def place(self) -> tuple[int, int]:
        """Its row in the ledger: (log, number)."""
        return self.file_id, self.n

    @property
    def tokens(self) -> tuple[int, int, int, int]:
        """Its tokens in disjoint classes."""
        return self.input, self.cache_read, self.cache_write, self.output


class WireSession(NamedTuple):
    """A session that was recorded on the wire; `of` is the source whose log may have its requests, "" for any."""

    start_ns: int
    last_ns: int
    session: str
    of: str
    project: str
    id: int
    home: int | None


class Window(NamedTuple):
    """Sessions on the wire near each other, and the time in which a log may have their requests."""

    first_ns: int
    last_ns: int
    sessions: Mapping[int, WireSession]


class Pair(NamedTuple):
    """Two records of a request; `matched_by` is `id` or `tokens`."""

    wire: Request
    log: Request
    matched_by: str


class SummedUp(NamedTuple):
    """Requests of one session that are only on the wire, and the sums of a log that stand for the same ones."""

    on_wire: list[Request]
    sums: list[Request]


class Matches(NamedTuple):
    """What is the same on the wire and in logs, within a window."""

    on_wire: list[Request]
    pairs: list[Pair]
    summed_up: list[SummedUp]


class Span(NamedTuple):
    """The time of a session, whether it was recorded on the wire, and the session in which it counts."""

    start_ns: int
    last_ns: int
    is_wire: int
    home: int | None


def has_wire(connection: sqlite3.Connection) -> bool:
    """Whether a session was recorded on the wire."""
    sql = "SELECT 1 FROM all_sessions WHERE on_wire_of IS NOT NULL LIMIT 1"
    return connection.execute(sql).fetchone() is not None


def spans_of(connection: sqlite3.Connection, sessions: Collection[int]) -> list[Span]:
    """Return the times of sessions."""
    columns = "start_ns, last_ns, on_wire_of IS NOT NULL, home"
    sql = f"SELECT {columns} FROM all_sessions WHERE id {choose(connection, sessions)} AND start_ns <= last_ns"  # noqa: S608 - no values
    return [Span._make(row) for row in connection.execute(sql)]


def decide(connection: sqlite3.Connection, changed: Collection[int] | None, before: Iterable[Span]) -> set[int]:
    """Decide which requests count near changed sessions; return the sessions of those for which that is new.

    Args:
        connection: The ledger, in the caller's transaction.
        changed: The sessions; None for all.
        before: Their times before the change.
    """
    before = list(before)
    near = None if changed is None else [*before, *spans_of(connection, changed)]
    moved = {span.home for span in before if span.home is not None}
    for window in windows(connection, (span for span in before if span.is_wire)):
        if near is None or any(window.first_ns <= span.last_ns and window.last_ns >= span.start_ns for span in near):
            requests = requests_in(connection, window)
            matches = match(window, requests)
            replaced = set(_replaced(matches))
            changes = [one for one in requests if bool(one.counts) == (one.place in replaced)]
            flags = [(not one.counts, *one.place) for one in changes]
            connection.executemany("UPDATE responses SET counts = ? WHERE file_id = ? AND n = ?", flags)
            moved.update(one.session_id for one in changes)
            moved |= _bring_home(connection, window, matches)
    return moved


def _bring_home(connection: sqlite3.Connection, window: Window, matches: Matches) -> set[int]:
    """Set the session of which most requests of each session on the wire are; return those for which that is new."""
    links = [(wire.session_id, log.session_id) for wire, log, _ in matches.pairs]
    links += [(on_wire[0].session_id, sums[0].session_id) for on_wire, sums in matches.summed_up]
    homes: dict[int, int] = {}
    for (wire, log), _ in Counter(links).most_common():
        homes.setdefault(wire, log)
    moved = [(homes.get(one.id), one.id, one.home) for one in window.sessions.values() if homes.get(one.id) != one.home]
    connection.executemany("UPDATE all_sessions SET home = ? WHERE id = ?", [new[:2] for new in moved])
    return {session for new in moved for session in new if session is not None}


def windows(connection: sqlite3.Connection, vanished: Iterable[Span] = ()) -> list[Window]:
    """Return the windows of all sessions on the wire, also those of some that are not there any more."""
    sql = """SELECT start_ns, last_ns, session, on_wire_of, project, id, home FROM all_sessions
        WHERE on_wire_of IS NOT NULL AND NOT elsewhere AND start_ns <= last_ns"""
    known = [WireSession._make(row) for row in connection.execute(sql)]
    found: list[Window] = []
    for one in sorted([*known, *(WireSession(span.start_ns, span.last_ns, "", "", "", 0, None) for span in vanished)]):
        first, last = max(one.start_ns - NEAR_NS, -_LAST_NS), min(one.last_ns + NEAR_NS, _LAST_NS)
        sessions = {one.id: one} if one.id else {}
        if found and first <= found[-1].last_ns:
            before = found.pop()
            first, last, sessions = before.first_ns, max(last, before.last_ns), {**before.sessions, **sessions}
        found.append(Window(first, last, sessions))
    return found


def requests_in(connection: sqlite3.Connection, window: Window) -> list[Request]:
    """Return the requests on the wire and in logs in a window, and the sums of logs, each in the order of time."""
    sql = REQUESTS.format(sessions=_IN_WINDOW, rows=_SINGLE_OR_SUM)
    return [Request._make(row) for row in connection.execute(sql, {"first": window.first_ns, "last": window.last_ns})]


def match(window: Window, requests: Iterable[Request]) -> Matches:
    """Return which of the requests in a window are the same."""
    on_wire: list[Request] = []
    logged: list[Request] = []
    sums: list[Request] = []
    for one in requests:
        if one.session_id in window.sessions:
            on_wire += [] if one.summed else [one]
        else:
            (sums if one.summed else logged).append(one)

    def may_be_one(wire: Request, log: Request) -> bool:
        session = window.sessions[wire.session_id]
        return session.of in {"", log.source} and _is_beside(session, log)

    pairs = pair(on_wire, logged, may_be_one)
    return Matches(on_wire, pairs, list(_sum_up(window, on_wire, pairs, sums)))


def pair(
    some: Iterable[Request], others: Iterable[Request], may_be_one: Callable[[Request, Request], bool]
) -> list[Pair]:
    """Pair requests by equal ids, then by equal tokens: each with the first that is left, in their order.

    Of equal ids those with equal tokens go first, because some gateways give all answers one id.

    Args:
        some: Requests in the order of time.
        others: Those that may be the same, also in order.
        may_be_one: Whether two with equal tokens may be the same.
    """
    some, others = list(some), list(others)
    found: list[Pair] = []
    used: set[tuple[int, int]] = set()

    def is_near(one: Request, other: Request) -> bool:
        return abs(one.time_ns - other.time_ns) <= NEAR_NS

    def is_alike(one: Request, other: Request) -> bool:
        return None in {one.response_id, other.response_id} and may_be_one(one, other)

    ways: tuple[tuple[str, Callable[[Request], Hashable], Callable[[Request, Request], bool]], ...] = (
        ("id", lambda one: one.response_id and (one.response_id, one.tokens), is_near),
        ("id", lambda one: one.response_id, is_near),
        ("tokens", lambda one: (one.tokens, one.failed), is_alike),
    )
    for matched_by, key, is_same in ways:
        left: dict[Hashable, deque[Request]] = {}
        for other in others:
            if other.place not in used and key(other) is not None:
                left.setdefault(key(other), deque()).append(other)
        for one in some:
            alike = left.get(key(one), ()) if one.place not in used else ()
            number = next((number for number, other in enumerate(alike) if is_same(one, other)), None)
            if number is not None:
                found.append(Pair(one, alike[number], matched_by))
                used.update((one.place, alike[number].place))
                del left[key(one)][number]
    return found


def _is_beside(session: WireSession, log: Request) -> bool:
    """Whether a log's row is of the time of a session on the wire."""
    return session.start_ns - BESIDE_NS <= log.time_ns <= session.last_ns + BESIDE_NS


def _sum_up(
    window: Window, on_wire: Iterable[Request], pairs: Iterable[Pair], sums: Collection[Request]
) -> Iterator[SummedUp]:
    """Yield the sums that stand for requests only on the wire.

    They are those of the sessions in which other requests of the session on the wire are. It may have no other, as
    where an agent was run only to compact a session, or logs totals alone: then they are its agent's, in its project.
    """
    paired = {one.wire.place for one in pairs}
    left: dict[int, list[Request]] = {}
    for one in on_wire if sums else ():
        if one.place not in paired and any(one.tokens):
            left.setdefault(one.session_id, []).append(one)
    logs: dict[int, set[int]] = {}
    used: set[tuple[int, int]] = set()
    for wire, log, _ in pairs:
        logs.setdefault(wire.session_id, set()).add(log.session_id)
    for session in window.sessions.values():
        same = [
            one
            for one in sums
            if one.place not in used
            and _is_beside(session, one)
            and (
                one.session_id in logs[session.id]
                if session.id in logs
                else (one.source, one.project) == (session.of, session.project)
            )
        ]
        if same and session.id in left:
            yield SummedUp(left[session.id], same)
            used.update(one.place for one in same)


def _replaced(matches: Matches) -> Iterator[tuple[int, int]]:
    """Yield the places of requests that do not count, because the same ones count elsewhere."""
    for wire, log, _ in matches.pairs:
        yield (log if _weight(wire) > _weight(log) else wire).place
    for on_wire, sums in matches.summed_up:
        same = _adding_up(on_wire, sums)
        yield from (one.place for one in (sums if _total(same) > _total(sums) else same))


def _adding_up(on_wire: list[Request], sums: Iterable[Request]) -> list[Request]:
    """Return the requests that add up to sums, the largest first; all of them if these leave a rest."""
    rest = [sum(counts) for counts in zip(*(one.tokens for one in sums), strict=True)]
    found: list[Request] = []
    for one in sorted(on_wire, key=lambda one: -sum(one.tokens)):
        if all(count <= left for count, left in zip(one.tokens, rest, strict=True)):
            rest = [left - count for count, left in zip(one.tokens, rest, strict=True)]
            found.append(one)
    return on_wire if any(rest) else found


def _weight(one: Request) -> tuple[int, int, int]:
    quality = _QUALITIES.index(one.quality) if one.quality in _QUALITIES else -1
    return quality, one.output, sum(one.tokens)


def _total(requests: Iterable[Request]) -> int:
    return sum(sum(one.tokens) for one in requests)
