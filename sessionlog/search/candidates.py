"""Candidates: the items that the index finds for a query, newest first, each original once.

A copied item (in a fork, in a resumed session) is left out where its original matches, too.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain

import orjson
from msgspec import Struct

from sessionlog.ledger.schema import ELSEWHERE
from sessionlog.search.query import Query
from sessionlog.search.segments import COPY, NO_TIME, item_numbers, numbers_of
from sessionlog.search.store import check_digests
from sessionlog.sources.fold_items import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

PARTS: Mapping[str, tuple[Kind, ...]] = {
    "prompts": (Kind.PROMPT,),
    "answers": (Kind.ANSWER, Kind.THINKING),
    "tools": (Kind.CALL, Kind.RESULT, Kind.ERROR),
    "paths": (Kind.PATHS,),
}
"""What can be searched alone, by name."""

EVERYTHING = frozenset(set(Kind) - {Kind.PATHS})
"""What is searched otherwise: calls have their paths among their arguments."""

_MANY = 10_000
"""Items up to which all are compared with each other, so that their number is exact."""

_NUMBERS = "SELECT group_concat(rowid) FROM words WHERE words MATCH ?"
_SEGMENTS = "SELECT id, first, last, first_ns, last_ns FROM segments INDEXED BY segments_by_number"
_READ = f"""
SELECT s.id, s.numbers, s.kinds, s.times, s.digests, s.places, s.session, l.id, l.path, l.source, l.missing
FROM segments s JOIN logs l ON l.id = s.log_id WHERE l.missing <> {ELSEWHERE} AND s.id BETWEEN ? AND ? ORDER BY s.id
"""  # noqa: S608 - a number
_DENSE = 4
"""Segments among which one is wanted: then they are read by one query, else each by its own."""


class Scope(Struct, frozen=True, kw_only=True):
    """Where to search.

    Attributes:
        kinds: Which items.
        start_ns: The first nanosecond; None is open.
        end_ns: The first one after the end; None is open.
        sessions: (source, session) of those to search; None for all.
    """

    kinds: Collection[int] = EVERYTHING
    start_ns: int | None = None
    end_ns: int | None = None
    sessions: Collection[tuple[str, str]] | None = None


class Candidate(Struct, frozen=True, gc=False):
    """An item that may match, and its place.

    Attributes:
        time_ns: When; `NO_TIME` where that is not logged.
        number: Its number in the index.
        kind: What it is.
        place: The offset of its row.
        digest: A hash of its kind and text.
        is_copy: It was copied from another session.
        segment: The segment, and the item's index there.
        session: Its session.
        log: The log's id.
        path: The log, as stored.
        source: The log's source.
        missing: As in the ledger's `files`.
    """

    time_ns: int
    number: int
    kind: int
    place: int
    digest: int
    is_copy: bool
    segment: tuple[int, int]
    session: str
    log: int
    path: str | bytes
    source: str
    missing: int


class Candidates(Struct, frozen=True):
    """The items that match as far as the index knows.

    Attributes:
        items: They, newest first, each original once; they can be iterated over once.
        total: How many there are; if `is_exact` is false, at most.
        is_exact: All were compared with each other.
    """

    items: Iterator[Candidate]
    total: int
    is_exact: bool


class _Segment(Struct, frozen=True, gc=False):
    """A segment with items that the index finds: those with these numbers."""

    id: int
    first: int
    last: int
    last_ns: int
    numbers: list[int]


def find_candidates(connection: sqlite3.Connection, query: Query, scope: Scope) -> Candidates:
    """Return the items that match as far as the index knows; of many, only those that are iterated over are read."""
    [(joined,)] = connection.execute(_NUMBERS, (query.index_match,))  # one text is read three times as fast as rows are
    numbers: list[int] = sorted(orjson.loads(f"[{joined or ''}]"))
    segments = list(_segments(connection, numbers, scope)) if numbers else []
    most = sum(len(segment.numbers) for segment in segments)
    digests = _read_digests(connection, segments, scope) if most <= _MANY else None
    items = _newest_first(connection, segments, scope, _Copies(connection, segments, scope, digests))
    return Candidates(items, most if digests is None else digests.total, is_exact=digests is not None)


def _segments(connection: sqlite3.Connection, numbers: list[int], scope: Scope) -> Iterator[_Segment]:
    """Yield the segments that have some of these numbers, as far as they can be in scope."""
    chosen: Collection[int] | None = None
    if scope.sessions is not None:
        sql = "SELECT s.id, l.source, s.session FROM segments s JOIN logs l ON l.id = s.log_id"
        chosen = {one for one, *session in connection.execute(sql) if tuple(session) in scope.sessions}
    count, start_ns, end_ns = len(numbers), scope.start_ns, scope.end_ns
    for segment, first, last, first_ns, last_ns in connection.execute(_SEGMENTS).fetchall():
        begin = bisect_left(numbers, first)
        if begin == count or numbers[begin] > last:
            continue
        if (start_ns is not None and last_ns < start_ns) or (end_ns is not None and first_ns >= end_ns):
            continue
        if chosen is None or segment in chosen:
            found = numbers[begin : bisect_right(numbers, last, begin)]
            yield _Segment(segment, first, last, last_ns, found)


def _newest_first(
    connection: sqlite3.Connection, segments: Sequence[_Segment], scope: Scope, copies: _Copies
) -> Iterator[Candidate]:
    """Yield the items of segments, each original once; a segment is read when no newer item is left elsewhere."""
    waiting = sorted(segments, key=lambda segment: segment.last_ns)
    pending: list[tuple[int, tuple[int, int], Candidate]] = []
    while waiting or pending:
        while waiting and (not pending or waiting[-1].last_ns >= -pending[0][0]):
            for one in _read(connection, waiting.pop(), scope):
                heappush(pending, (-one.time_ns, one.segment, one))
        if not pending:
            continue
        time, _, one = heappop(pending)
        if not one.is_copy and (not pending or pending[0][0] != time):
            yield one
            continue
        same_time = [one]
        while pending and pending[0][0] == time:
            same_time.append(heappop(pending)[2])
        kept: dict[_Key | int, Candidate] = {}
        for one in same_time:  # in the order of segments
            if not one.is_copy:
                kept.setdefault(_key(one.digest, one.time_ns, one.session, one.place), one)
        for one in same_time:
            # Most copies have the time of their original.
            if one.is_copy and (one.digest, one.time_ns) not in kept and copies.is_first(one):
                kept[one.digest] = one
        yield from sorted(kept.values(), key=lambda one: -one.number)


def _read(connection: sqlite3.Connection, segment: _Segment, scope: Scope) -> Iterator[Candidate]:
    """Yield the items of a segment that are in scope."""
    for row in connection.execute(_READ, (segment.id, segment.id)):
        _, packed, kinds, times, digests, places, session, *log = row
        times, digests, places = numbers_of(times), numbers_of(digests), numbers_of(places)
        for number, index in _in_scope(segment, packed, kinds, times, scope):
            yield Candidate(
                times[index], number, kinds[index] & ~COPY, places[index], digests[index], bool(kinds[index] & COPY),
                (segment.id, index), session, *log,
            )  # fmt: skip


def _in_scope(
    segment: _Segment, packed: bytes | None, kinds: bytes, times: array[int], scope: Scope
) -> list[tuple[int, int]]:
    """Return (number, index in the segment) of the items that are in scope."""
    first, wanted = segment.first, scope.kinds
    if packed is None:
        found = [(number, number - first) for number in segment.numbers if kinds[number - first] & ~COPY in wanted]
    else:
        numbers = set(segment.numbers)
        items = enumerate(item_numbers(first, segment.last, packed))
        found = [(number, at) for at, number in items if number in numbers and kinds[at] & ~COPY in wanted]
    if scope.start_ns is None and scope.end_ns is None:
        return found
    return [one for one in found if _is_within(times[one[1]], scope)]


class _Digests(Struct, frozen=True):
    """The digests of all items that match.

    Attributes:
        originals: Those of items that are no copies.
        copies: That of each copy → the first item with it.
        total: How many items there are, each original once.
    """

    originals: Collection[int]
    copies: Mapping[int, tuple[int, int]]
    total: int


def _read_digests(connection: sqlite3.Connection, segments: Sequence[_Segment], scope: Scope) -> _Digests:
    """Read the digests of all items of segments that are in scope."""
    wanted = {segment.id: segment for segment in segments}
    ranges = [(one, one) for one in sorted(wanted)]
    if wanted and max(wanted) - min(wanted) < _DENSE * len(wanted):
        ranges = [(min(wanted), max(wanted))]
    originals: set[_Key] = set()
    copies: dict[int, tuple[int, int]] = {}
    for row in chain.from_iterable(connection.execute(_READ, one) for one in ranges):
        if (segment := wanted.get(row[0])) is None:
            continue
        packed, kinds, times, digests = row[1], row[2], numbers_of(row[3]), numbers_of(row[4])
        places, session = numbers_of(row[5]), row[6]
        for _, index in _in_scope(segment, packed, kinds, times, scope):
            if kinds[index] & COPY:
                copies.setdefault(digests[index], (segment.id, index))
            else:
                originals.add(_key(digests[index], times[index], session, places[index]))
    known = {key[0] for key in originals}
    return _Digests(known, copies, len(originals) + len(copies.keys() - known))


_Key = tuple[int, int] | tuple[int, int, str, int]


def _key(digest: int, time_ns: int, session: str, place: int) -> _Key:
    """Return what copies of a log, such as a backup, have alike of an item that no other item has.

    Equal texts with one time are one; without a time only those at one place of one session are.
    """
    return (digest, time_ns) if time_ns != NO_TIME else (digest, time_ns, session, place)


class _Copies:
    """Decides which copies have no original, and are the first of their text.

    Without the digests of all items that match, only the segments are read that have an item with the same digest.
    """

    def __init__(
        self, connection: sqlite3.Connection, segments: Sequence[_Segment], scope: Scope, known: _Digests | None
    ) -> None:
        self._connection, self._scope, self._known = connection, scope, known
        self._segments = {segment.id: segment for segment in segments}
        self._first: dict[int, tuple[int, int] | None] = {}
        self._is_checked = False

    def is_first(self, one: Candidate) -> bool:
        """Whether a copy is to be listed."""
        if one.digest not in self._first:
            known = self._known or _read_digests(self._connection, self._segments_with(one.digest), self._scope)
            self._first[one.digest] = (
                None if one.digest in known.originals else known.copies.get(one.digest, one.segment)
            )
        return self._first[one.digest] == one.segment

    def _segments_with(self, digest: int) -> list[_Segment]:
        """Return the segments that have an item with a digest, in their order."""
        if not self._is_checked:
            check_digests(self._connection)
            self._is_checked = True
        sql = "SELECT segment FROM digests WHERE digest = ? ORDER BY segment"
        found = self._connection.execute(sql, (digest,)).fetchall()
        return [self._segments[one] for (one,) in found if one in self._segments]


def _is_within(time_ns: int, scope: Scope) -> bool:
    is_late = scope.start_ns is None or time_ns >= scope.start_ns
    return time_ns != NO_TIME and is_late and (scope.end_ns is None or time_ns < scope.end_ns)
