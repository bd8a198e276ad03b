"""Pairing: which request that was recorded on the wire is which row of an agent's own log.

Requests are paired by the provider's id of the response: with rows of the source that is named for them, then with
those of any other, as an agent may start another one, whose requests pass the same way. Those without an equal id are
paired by the names of their model and equal tokens, at nearly the same time; then by equal tokens alone. Two requests
with two ids are never one. Rows that look alike are paired in time order: as many as possible, and of as many pairs
the nearest.

A request on the wire lasts from its being sent to the end of its response. Agents log one instant of that, the first,
the last or one between, so a row is no distance away while the request lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sessionlog.events.times import SECOND

NEAR_NS = 10 * SECOND
"""How far apart rows with equal tokens are paired."""

NEAR_BY_ID_NS = 600 * SECOND
"""How far apart rows with equal ids are paired: clocks may differ, and some servers use their ids again."""

_MOST_ALIKE = 128  # alike rows near each other that are paired at once


class Call(NamedTuple):
    """One request, on the wire or in a log.

    Attributes:
        begin_ns: When it was sent; in a log the same as `end_ns`.
        end_ns: When its response ended, or the one instant that the log has.
        tokens: (input, cache_read, cache_write, output).
        failed: Whether it failed.
        response_id: The provider's id of the response, hashed; None if that is not logged.
        names: (the model that answered, else the one asked for; the one asked for).
        source: The source of the log; of a request on the wire the one whose log may have it, "" for any.
        order: Sorts requests by their time, and at one time by their content, which no order of reading changes.
        row: The row, for the caller.
    """

    begin_ns: int
    end_ns: int
    tokens: tuple[int, int, int, int]
    failed: bool
    response_id: int | None
    names: tuple[str, str]
    source: str
    order: tuple[Any, ...]
    row: Any


class Pair(NamedTuple):
    """A request on the wire and the same one in a log; `matched_by` is `id` or `tokens`."""

    wire: Call
    log: Call
    matched_by: str


_Key = Callable[[Call], Hashable]


def _by_id(call: Call) -> Hashable:
    return call.response_id


def _by_tokens(call: Call) -> Hashable:
    return call.tokens, call.failed


def _by_served_model(call: Call) -> Hashable:
    return call.tokens, call.failed, call.names[0]


def _by_model(call: Call) -> Hashable:
    return call.tokens, call.failed, call.names[1]


_WAYS = (
    ("id", _by_id, NEAR_BY_ID_NS),
    ("tokens", _by_served_model, NEAR_NS),
    ("tokens", _by_model, NEAR_NS),
    ("tokens", _by_tokens, NEAR_NS),
)  # fmt: skip


def pair_calls(wire: Iterable[Call], logs: Iterable[Call]) -> list[Pair]:
    """Return the pairs; each request is in one pair at most. The result does not depend on the order of either."""
    on_wire, logged = sorted(wire, key=_order), sorted(logs, key=_order)
    known = {"", *(log.source for log in logged)}
    sources = sorted({call.source for call in on_wire} & known, key=lambda source: (not source, source))
    used: set[int] = set()
    found: list[Pair] = []
    for matched_by, key, near_ns in _WAYS:
        for source in dict.fromkeys((*sources, "")) if matched_by == "id" else sources:
            for has_id in (True,) if matched_by == "id" else (True, False):
                some = [
                    call
                    for call in on_wire
                    if (call.source == source or (matched_by == "id" and not source))
                    and (call.response_id is not None) == has_id
                    and id(call) not in used
                ]
                others = [
                    log
                    for log in logged
                    if source in {"", log.source}
                    and (not has_id or (log.response_id is not None) == (matched_by == "id"))
                    and id(log) not in used
                ]
                pairs = [Pair(*both, matched_by) for both in _pair_alike(some, others, key, near_ns)]
                used.update(id(call) for pair in pairs for call in (pair.wire, pair.log))
                found += pairs
    return found


def distance_ns(wire: Call, log: Call) -> int:
    """Return the time between a request on the wire and a row of a log; 0 while the request lasts."""
    return max(0, wire.begin_ns - log.end_ns, log.begin_ns - wire.end_ns)


def _order(call: Call) -> tuple[Any, ...]:
    return call.order


def _pair_alike(wire: Iterable[Call], logs: Iterable[Call], key: _Key, near_ns: int) -> Iterator[tuple[Call, Call]]:
    """Pair requests with equal keys, in time order."""
    groups: dict[Hashable, tuple[list[Call], list[Call]]] = {}
    for call in wire:
        groups.setdefault(key(call), ([], []))[0].append(call)
    for call in logs:
        if (group := groups.get(key(call))) is not None:
            group[1].append(call)
    for some, others in groups.values():
        for near_some, near_others in _near(some, others, near_ns) if others else ():
            yield from _align(near_some, near_others, near_ns)


def _near(wire: Sequence[Call], logs: Sequence[Call], near_ns: int) -> Iterator[tuple[list[Call], list[Call]]]:
    """Split alike requests where none is near those before it; of very many at once some are split all the same."""
    some: list[Call] = []
    others: list[Call] = []
    until: int | None = None
    everything = [(call.begin_ns, False, call) for call in wire] + [(call.begin_ns, True, call) for call in logs]
    for begin_ns, is_log, call in sorted(everything, key=lambda one: one[:2]):
        if until is not None and (begin_ns > until + near_ns or max(len(some), len(others)) >= _MOST_ALIKE):
            yield sorted(some, key=_order), sorted(others, key=_order)
            some, others, until = [], [], None
        (others if is_log else some).append(call)
        until = call.end_ns if until is None else max(until, call.end_ns)
    yield sorted(some, key=_order), sorted(others, key=_order)


def _align(wire: Sequence[Call], logs: Sequence[Call], near_ns: int) -> list[tuple[Call, Call]]:
    """Pair requests in their order: the most pairs, and of as many the nearest."""
    best: list[list[tuple[int, int]]] = [[(0, 0)] * (len(logs) + 1) for _ in range(len(wire) + 1)]
    for i, one in enumerate(wire):
        for j, log in enumerate(logs):
            best[i + 1][j + 1] = min(best[i][j + 1], best[i + 1][j])
            apart = distance_ns(one, log)
            if apart <= near_ns:
                pairs, distance = best[i][j]
                best[i + 1][j + 1] = min(best[i + 1][j + 1], (pairs - 1, distance + apart))
    found: list[tuple[Call, Call]] = []
    i, j = len(wire), len(logs)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found.append((wire[i], logs[j]))
    return found
