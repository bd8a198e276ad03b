"""Candidates: the items that the index finds for a query, newest first, each original once.

A copied item (in a fork, in a resumed session) is left out where its original matches, too.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
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


def find_candidates(connection: sqlite3.Connection, query: Query, scope: Scope) -> list[Candidate]:
    """Return the items that match as far as the index knows, newest first."""
    numbers = array(
        "q", [n for (n,) in connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (query.index_match,))]
    )
    if not numbers:
        return []
    found: list[Candidate] = []
    for row in connection.execute(_SEGMENTS).fetchall():
        first, last = bisect_left(numbers, row[2]), bisect_right(numbers, row[3])
        if first == last or (scope.start_ns is not None and row[4] < scope.start_ns):
            continue
        if scope.sessions is None or (row[8], row[1]) in scope.sessions:
            found += _in_segment(connection, row, numbers[first:last], scope)
    return sorted(_originals(found), key=lambda one: (-one.time_ns, -one.number))


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


def _originals(found: list[Candidate]) -> Iterator[Candidate]:
    """Yield each item once: of items with the same text and time the first, and copies only without an original."""
    originals = {one.digest for one in found if not one.is_copy}
    seen: set[tuple[int, int | None]] = set()
    for one in found:
        key = (one.digest, None if one.is_copy else one.time_ns)
        if key in seen or (one.is_copy and one.digest in originals):
            continue
        seen.add(key)
        yield one
