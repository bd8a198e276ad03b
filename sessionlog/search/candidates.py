"""Candidates: the items that the index finds for a query, newest first, each original once.

A copied item (in a fork, in a resumed session) is left out where its original matches, too.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from msgspec import Struct

from sessionlog.ledger.schema import ELSEWHERE
from sessionlog.search.extract import COPY, NO_TIME
from sessionlog.search.query import Query
from sessionlog.search.update import item_numbers, numbers_of
from sessionlog.sources.fold_items import Kind

PARTS: Mapping[str, tuple[Kind, ...]] = {
    "prompts": (Kind.PROMPT,),
    "answers": (Kind.ANSWER, Kind.THINKING),
    "tools": (Kind.CALL, Kind.RESULT, Kind.ERROR),
    "paths": (Kind.PATHS,),
}
"""What can be searched alone, by name."""

EVERYTHING = frozenset(set(Kind) - {Kind.PATHS})
"""What is searched otherwise: calls have their paths among their arguments."""

_MANY = 1000
"""Items that are all compared with each other, so that their number is exact."""

_SEGMENTS = f"""
SELECT s.id, s.session, s.first, s.last, s.last_ns, s.numbers IS NULL, l.id, l.path, l.source, l.missing
FROM segments s JOIN logs l ON l.id = s.log_id WHERE l.missing <> {ELSEWHERE} ORDER BY s.id
"""  # noqa: S608 - a number


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


def find_candidates(connection: sqlite3.Connection, query: Query, scope: Scope) -> Candidates:
    """Return the items that match as far as the index knows; of many, only those that are iterated over are read."""
    numbers = array(
        "q", [n for (n,) in connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (query.index_match,))]
    )
    segments: list[tuple[Sequence[Any], array[int]]] = []
    for row in connection.execute(_SEGMENTS).fetchall() if numbers else ():
        first, last = bisect_left(numbers, row[2]), bisect_right(numbers, row[3])
        if first == last or (scope.start_ns is not None and row[4] < scope.start_ns):
            continue
        if scope.sessions is None or (row[8], row[1]) in scope.sessions:
            segments.append((row, numbers[first:last]))
    items, most = _newest_first(connection, segments, scope), sum(len(found) for _, found in segments)
    if most > _MANY:
        return Candidates(items, most, is_exact=False)
    known = list(items)
    return Candidates(iter(known), len(known), is_exact=True)


def _newest_first(
    connection: sqlite3.Connection, segments: Sequence[tuple[Sequence[Any], array[int]]], scope: Scope
) -> Iterator[Candidate]:
    """Yield the items of segments, each original once; a segment is read when no newer item is left elsewhere."""
    waiting = sorted(segments, key=lambda one: int(one[0][4]))
    pending: list[tuple[int, tuple[int, int], Candidate]] = []
    copied: tuple[set[int], dict[int, tuple[int, int]]] | None = None
    while waiting or pending:
        while waiting and (not pending or waiting[-1][0][4] >= -pending[0][0]):
            row, numbers = waiting.pop()
            for one in _in_segment(connection, row, numbers, scope):
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
        kept, seen = [], set()
        for one in same_time:  # in the order of segments
            if one.is_copy:
                copied = copied or _originals(connection, segments, scope)
                is_first = one.digest not in copied[0] and copied[1][one.digest] == one.segment
            else:
                is_first = one.digest not in seen
                seen.add(one.digest)
            if is_first:
                kept.append(one)
        yield from sorted(kept, key=lambda one: -one.number)


def _originals(
    connection: sqlite3.Connection, segments: Sequence[tuple[Sequence[Any], array[int]]], scope: Scope
) -> tuple[set[int], dict[int, tuple[int, int]]]:
    """Return (digests of items that are no copies, digest of a copy → the first item with it)."""
    originals: set[int] = set()
    copies: dict[int, tuple[int, int]] = {}
    for row, numbers in segments:
        for one in _in_segment(connection, row, numbers, scope):
            if one.is_copy:
                copies.setdefault(one.digest, one.segment)
            else:
                originals.add(one.digest)
    return originals, copies


def _in_segment(
    connection: sqlite3.Connection, row: Sequence[Any], numbers: array[int], scope: Scope
) -> Iterator[Candidate]:
    segment, session, first, last, _, is_range, log, path, source, missing = row
    packed, kinds, times, places, digests = connection.execute(
        "SELECT numbers, kinds, times, places, digests FROM segments WHERE id = ?", (segment,)
    ).fetchone()
    times, places, digests = numbers_of(times), numbers_of(places), numbers_of(digests)
    if is_range:
        indexes: Iterator[tuple[int, int]] = ((number, number - first) for number in numbers)
    else:
        wanted = set(numbers)
        items = enumerate(item_numbers(first, last, packed))
        indexes = ((number, index) for index, number in items if number in wanted)
    for number, index in indexes:
        kind, time_ns = kinds[index] & ~COPY, times[index]
        if kind in scope.kinds and _is_within(time_ns, scope):
            yield Candidate(
                time_ns, number, kind, places[index], digests[index], bool(kinds[index] & COPY), (segment, index),
                session, log, path, source, missing,
            )  # fmt: skip


def _is_within(time_ns: int, scope: Scope) -> bool:
    if scope.start_ns is None and scope.end_ns is None:
        return True
    is_late = scope.start_ns is None or time_ns >= scope.start_ns
    return time_ns != NO_TIME and is_late and (scope.end_ns is None or time_ns < scope.end_ns)
