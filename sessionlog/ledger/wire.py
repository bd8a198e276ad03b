"""Wire: requests that were recorded on the wire, and the agents' own logs of them, count once.

A session that was recorded on the wire names the source whose log may hold the same requests (`on_wire_of`). Each of
its requests is paired with a row of that log (see `pairing`), and a row made from both counts in place of the two:

- Session, names, time and tokens are the log's, the latency is the wire's. Where the tokens differ, the better quality
  wins (exact, partial, estimated), then the greatest output, then the greatest total, as for copies; the log's if all
  are equal. A cost that was recorded goes with the tokens; an estimate is at the prices of the log's names.
- A request that is only on the wire, in a session of which others are paired, belongs to the session of the pair
  nearest in time, with that one's project, branch, version and agent. Its provider is that of the nearest pair with its
  model, because behind a gateway the wire knows a host alone. So nothing is left of the wire's session, which is
  `absorbed`. Without any pair it stays a session of its own, unless a log has just the sum of its requests.
- What a log only sums up is reduced by what is only on the wire in its session (see `wire_sums`).

Pairs depend only on the rows of sessions near each other in time. After a change the wire's sessions near the changed
ones are paired anew, and those near them; all others stay as they are. Without any session on the wire this is one
look into an empty index.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessionlog.events.names import UNKNOWN
from sessionlog.hashes import hash_name
from sessionlog.ledger.columns import Label, Response, WireMatch, names_of
from sessionlog.ledger.copies import Names, Winner, label_of, numbers_of, total_tokens
from sessionlog.ledger.costs import COSTS, OF_PRICES, PricedLabels
from sessionlog.ledger.interned_ids import InternedIds
from sessionlog.ledger.pairing import NEAR_BY_ID_NS, NEAR_NS, Call, Pair, pair_calls
from sessionlog.ledger.schema import MADE
from sessionlog.ledger.statements import choose, insert_rows
from sessionlog.ledger.wire_sums import reduce_sums, response_rows
from sessionlog.pricing.book import PriceBook

_WITH_TOKENS = (*names_of(Response, "tokens"), *names_of(Response, "money"), "priced", "searches")
"""What comes from the row whose tokens count."""
_QUALITIES = ("estimated", "partial", "exact")
_LAST_NS = 2**63 - 1  # of the times that the ledger can hold
_N = 36  # bits of a row's number within the number of a row made of it; the rest is its file's

_Span = tuple[int, int]
"""The first and the last time of a session."""

_Cluster = dict[int, _Span]
"""Sessions on the wire near each other, with their spans."""


def match_all(connection: sqlite3.Connection, ids: InternedIds, names: Names, prices: PriceBook) -> None:
    """Pair all sessions on the wire; `counts` has been reset to `chosen`."""
    if _has_any(connection):
        connection.execute("DELETE FROM wire_matches")
        connection.execute("DELETE FROM responses WHERE n <= ?", (MADE,))
        counting = _match(connection, names, _Namer(ids, names, prices), _clusters(connection))
        reduce_sums(connection, names, counting)


def match_near(
    connection: sqlite3.Connection, ids: InternedIds, names: Names, prices: PriceBook, changed: Iterable[int]
) -> set[int]:
    """Pair again what the changed sessions may affect; return the sessions whose totals may change."""
    if not _has_any(connection):
        return set()
    stale, clusters = _affected(connection, set(changed))
    before = _undo(connection, stale)
    counting = _match(connection, names, _Namer(ids, names, prices), clusters)
    reduce_sums(connection, names, before | counting)
    return before | stale | counting


def _has_any(connection: sqlite3.Connection) -> bool:
    """Whether a session was recorded on the wire, or was once and is paired yet."""
    sessions = "SELECT 1 FROM all_sessions WHERE on_wire_of IS NOT NULL"
    return bool(connection.execute(f"{sessions} UNION ALL SELECT 1 FROM wire_matches LIMIT 1").fetchone())  # noqa: S608 - no values


def _clusters(connection: sqlite3.Connection) -> list[_Cluster]:
    """Return the sessions on the wire that have times, those together of which requests may compete for a pair."""
    rows = connection.execute(
        """SELECT start_ns, last_ns, id FROM all_sessions
        WHERE on_wire_of IS NOT NULL AND start_ns IS NOT NULL AND last_ns IS NOT NULL ORDER BY 1"""
    )
    clusters: list[_Cluster] = []
    end: int | None = None
    for start, last, session in rows:
        if end is None or start > end + 2 * NEAR_BY_ID_NS:
            clusters.append({})
            end = None
        clusters[-1][session] = (start, last)
        end = last if end is None else max(end, last)
    return clusters


def _affected(connection: sqlite3.Connection, changed: set[int]) -> tuple[set[int], list[_Cluster]]:
    """Return the sessions on the wire whose pairs changed sessions may affect, and those of them that are left."""
    sql = f"SELECT DISTINCT session_id FROM wire_matches WHERE wire_session {choose(connection, changed)}"  # noqa: S608 - no values
    changed = changed | {session for (session,) in connection.execute(sql)}
    chosen = choose(connection, changed)
    sql = f"SELECT DISTINCT wire_session FROM wire_matches WHERE session_id {chosen} OR wire_session {chosen}"  # noqa: S608 - no values
    stale = {session for (session,) in connection.execute(sql)}
    sql = f"SELECT start_ns, last_ns FROM all_sessions WHERE id {chosen} AND start_ns <= last_ns"  # noqa: S608 - no values
    spans = connection.execute(sql).fetchall()
    clusters = [
        cluster
        for cluster in _clusters(connection)
        if stale & cluster.keys() or changed & cluster.keys() or _is_near(cluster, spans)
    ]
    return stale.union(*clusters), clusters


def _is_inside(call: Call, wires: _Cluster) -> bool:
    """Whether a request on the wire was answered in the time of its session: else a clock has jumped."""
    start, last = wires[call.row.session_id]
    return start <= call.end_ns <= last


def _is_near(cluster: _Cluster, spans: Iterable[_Span]) -> bool:
    """Whether a request of a cluster may be paired with a row within any of these spans."""
    first = min(start for start, _ in cluster.values()) - NEAR_BY_ID_NS
    last = max(end for _, end in cluster.values()) + NEAR_BY_ID_NS
    return any(start <= last and end >= first for start, end in spans)


def _undo(connection: sqlite3.Connection, stale: Iterable[int]) -> set[int]:
    """Remove the pairs of sessions on the wire, and the rows made of them; return the sessions that had them."""
    chosen = choose(connection, stale)
    columns = "file_id, n, log_file, log_n, made_file, made_n, session_id"
    matches = connection.execute(f"SELECT {columns} FROM wire_matches WHERE wire_session {chosen}").fetchall()  # noqa: S608 - no values
    connection.execute(f"DELETE FROM wire_matches WHERE wire_session {chosen}")  # noqa: S608 - no values
    rows = [place for match in matches for place in (match[:2], match[2:4])]
    connection.executemany("UPDATE responses SET counts = chosen WHERE file_id = ? AND n = ?", rows)
    connection.executemany("DELETE FROM responses WHERE file_id = ? AND n = ?", [match[4:6] for match in matches])
    return {match[6] for match in matches}


def _match(connection: sqlite3.Connection, names: Names, namer: _Namer, clusters: Iterable[_Cluster]) -> set[int]:
    """Pair the requests of these sessions on the wire; return the sessions in which they count."""
    return set().union(*(_match_cluster(connection, names, namer, cluster) for cluster in clusters))


def _match_cluster(connection: sqlite3.Connection, names: Names, namer: _Namer, wires: _Cluster) -> set[int]:
    on_wire = _requests_on_wire(connection, names, wires)
    logged = _requests_in_logs(connection, names, wires)
    summed = [call for call in logged if call.row.summed]
    pairs = pair_calls(
        (call for call in on_wire if call.row.requests and _is_inside(call, wires)),
        (call for call in logged if not call.row.summed),
    )
    made = [_made_of(pair, namer) for pair in pairs]
    matches = [_match_row(pair.wire, pair.log, row, pair.matched_by) for pair, row in zip(pairs, made, strict=True)]
    homes = _homes(on_wire, pairs, summed, wires)
    of_models = _by_model(homes)
    paired = {id(pair.wire) for pair in pairs}
    for call in on_wire:
        others = homes.get(call.row.session_id)
        if others and id(call) not in paired:
            same_model = of_models.get((call.row.session_id, call.names[1]), others)
            made.append(_adopted(call, _nearest(others, call).log, _nearest(same_model, call).log, namer))
            matches.append(_match_row(call, None, made[-1], ""))
    insert_rows(connection, "responses", Response, made)
    insert_rows(connection, "wire_matches", WireMatch, matches)
    replaced = [place for match in matches for place in (match[1:3], match[4:6]) if place[0] is not None]
    connection.executemany("UPDATE responses SET counts = 0 WHERE file_id = ? AND n = ?", replaced)
    absorbed = f"UPDATE all_sessions SET absorbed = ? WHERE id {choose(connection, wires)} AND absorbed <> ?"  # noqa: S608 - no values
    connection.execute(absorbed, (0, 0))
    connection.executemany("UPDATE all_sessions SET absorbed = 1 WHERE id = ?", [(one,) for one in homes])
    return {match[3] for match in matches}.union(wires)


def _homes(
    on_wire: Iterable[Call], pairs: Iterable[Pair], summed: Iterable[Call], wires: _Cluster
) -> dict[int, list[Pair]]:
    """Return session on the wire → the pairs that give its other requests their session, in the order of their times.

    Of a session without any pair all requests may be those that a log sums up, as where an agent was run only to
    compact a session. Then the sum, which has their tokens and was logged meanwhile, gives the session.
    """
    homes: dict[int, list[Pair]] = {}
    for pair in sorted(pairs, key=lambda pair: pair.wire.order):
        homes.setdefault(pair.wire.row.session_id, []).append(pair)
    alone: dict[int, list[Call]] = {}
    for call in sorted(on_wire, key=lambda call: call.order):
        if call.row.session_id not in homes:
            alone.setdefault(call.row.session_id, []).append(call)
    free = sorted(summed, key=lambda call: call.order)
    for session, calls in sorted(alone.items(), key=lambda one: one[1][0].order):
        start, last = wires[session]
        tokens = tuple(map(sum, zip(*(call.tokens for call in calls), strict=True)))
        for number, one in enumerate(free):
            is_meanwhile = start - NEAR_NS <= one.end_ns <= last + NEAR_NS
            if one.tokens == tokens and any(tokens) and is_meanwhile and calls[0].source in {"", one.source}:
                homes[session] = [Pair(calls[0], free.pop(number), "")]
                break
    return homes


def _by_model(homes: Mapping[int, Iterable[Pair]]) -> dict[tuple[int, str], list[Pair]]:
    """Return (session on the wire, model asked for) → its pairs, in the order of their times."""
    found: dict[tuple[int, str], list[Pair]] = {}
    for session, pairs in homes.items():
        for pair in pairs:
            found.setdefault((session, pair.wire.names[1]), []).append(pair)
    return found


def _nearest(pairs: Sequence[Pair], call: Call) -> Pair:
    """Return the pair, of pairs in the order of their times, that is nearest to a request."""
    at = bisect_left(pairs, call.end_ns, key=lambda pair: pair.wire.end_ns)
    return min(pairs[max(0, at - 1) : at + 1], key=lambda pair: abs(pair.wire.end_ns - call.end_ns))


def _requests_on_wire(connection: sqlite3.Connection, names: Names, wires: _Cluster) -> list[Call]:
    chosen = choose(connection, wires)
    sources = dict(connection.execute(f"SELECT id, on_wire_of FROM all_sessions WHERE id {chosen}"))  # noqa: S608 - no values
    rows = response_rows(connection, wires, "r.counts")
    return [_call(row, names, sources[row.session_id], wires[row.session_id][0]) for row in rows]


def _requests_in_logs(connection: sqlite3.Connection, names: Names, wires: _Cluster) -> list[Call]:
    """Return the requests of agents' logs that may be those of these sessions on the wire, and sums of such."""
    if not wires:
        return []
    first = min(start for start, _ in wires.values()) - NEAR_BY_ID_NS
    last = max(end for _, end in wires.values()) + NEAR_BY_ID_NS
    found = connection.execute(
        """SELECT id, source FROM all_sessions
        WHERE on_wire_of IS NULL AND NOT elsewhere AND start_ns <= ? AND last_ns >= ?""",
        (min(last, _LAST_NS), max(first, -_LAST_NS)),
    )
    sources: dict[int, str] = dict(found.fetchall())
    wanted_rows = "(r.counts AND r.requests = 1 AND NOT r.summed OR r.chosen AND r.summed)"
    rows = response_rows(connection, sources, f"{wanted_rows} AND r.time_ns BETWEEN {first} AND {last}")
    return [
        _call(row, names, sources[row.session_id], None)
        for row in rows
        if row.summed or names.label(row.label_id).granularity == "request"
    ]


def _call(row: Response, names: Names, source: str, start_ns: int | None) -> Call:
    """A request; `start_ns` is the start of its session on the wire, before which it was not sent."""
    label = names.label(row.label_id)
    begin_ns = end_ns = row.time_ns or 0
    if start_ns is not None:
        begin_ns = min(end_ns, max(start_ns, end_ns - int((row.latency_ms or 0) * 1_000_000)))
    content = (names.session(row.session_id), names.path(row.file_id), tuple(label), numbers_of(row))
    return Call(
        begin_ns=begin_ns,
        end_ns=end_ns,
        tokens=(row.input, row.cache_read, row.cache_write, row.output),
        failed=bool(row.failed),
        response_id=row.response_id,
        names=(label.model if label.response_model == UNKNOWN else label.response_model, label.model),
        source=source,
        order=(end_ns, hash_name(repr(content), b"")),
        row=row,
    )


def _match_row(wire: Call, log: Call | None, made: Response, matched_by: str) -> WireMatch:
    return WireMatch(
        wire_session=wire.row.session_id,
        file_id=wire.row.file_id,
        n=wire.row.n,
        session_id=made.session_id,
        log_file=None if log is None else log.row.file_id,
        log_n=None if log is None else log.row.n,
        matched_by=matched_by,
        made_file=made.file_id,
        made_n=made.n,
    )


def _made(row: Response, wire: Call, changes: Mapping[str, Any]) -> Response:
    """A row that counts in a log's place, with the number that the request on the wire gives it."""
    number = MADE - (wire.row.file_id << _N | wire.row.n & (1 << _N) - 1)
    own = {"n": number, "family": None, "key": None, "superseded_by": None, "counts": 1, "chosen": 1}
    return row._replace(**{**own, **changes})


def _made_of(pair: Pair, namer: _Namer) -> Response:
    """The row made of a pair."""
    wire, log = pair.wire.row, pair.log.row
    changes: dict[str, Any] = {}
    if wire.latency_ms is not None:
        changes = {"latency_ms": wire.latency_ms, "latency_bucket": wire.latency_bucket}
    if _weight(wire, namer.names) > _weight(log, namer.names):
        changes |= {name: getattr(wire, name) for name in _WITH_TOKENS}
        on_wire = namer.names.label(wire.label_id)
        own = namer.names.label(log.label_id)._replace(quality=on_wire.quality)
        made = _made(log, pair.wire, changes)
        changes |= namer.name(made, own, own._replace(**{name: getattr(on_wire, name) for name in OF_PRICES}))
    return _made(log, pair.wire, changes)


def _weight(row: Response, names: Names) -> tuple[int, int, int]:
    """Of two records of a request the one of the greater weight has its tokens."""
    quality = names.label(row.label_id).quality
    return _QUALITIES.index(quality) if quality in _QUALITIES else -1, row.output, total_tokens(row)


def _adopted(call: Call, nearest: Call, same_model: Call, namer: _Namer) -> Response:
    """The row of a request that is only on the wire: in the session of a pair, from the provider of a pair.

    Args:
        call: The request.
        nearest: The row in a log of the nearest pair.
        same_model: That of the nearest pair with its model; `nearest` if there is none.
        namer: Names and prices the row.
    """
    own = label_of(Winner(call.row, nearest.row), namer.names)
    provider = namer.names.label(same_model.row.label_id).provider
    changes = namer.name(call.row, own if provider == UNKNOWN else own._replace(provider=provider), own)
    place = {"file_id": nearest.row.file_id, "session_id": nearest.row.session_id}
    return _made(call.row, call, place | changes | {"active_ms": 0, "response_id": None})


class _Namer:
    """Labels of rows that are made, and their costs at the prices of these labels.

    Attributes:
        names: Look-ups of ids in rows.
    """

    def __init__(self, ids: InternedIds, names: Names, prices: PriceBook) -> None:
        self.names = names
        self._ids = ids
        self._priced = PricedLabels(prices)

    def name(self, row: Response, label: Label, other: Label) -> dict[str, Any]:
        """Return label and costs for a row: of the first of two labels at which its cost is known, else of the first.

        Behind a gateway the provider's name on the wire is that of a host, which has no prices; where an agent asks
        several providers, the log's nearest may be another one than that of the request.
        """
        changes = self._at(row, label)
        if changes["cost_nano"] is None and changes["estimate_nano"] is None and other != label:
            others = self._at(row, other)
            if others["cost_nano"] is not None or others["estimate_nano"] is not None:
                return others
        return changes

    def _at(self, row: Response, label: Label) -> dict[str, Any]:
        """Return a label's number, and what a row costs at its prices."""
        costs = self._priced.costs(self._priced.number(label), row)
        return {"label_id": self._ids.label_id(label)} | dict(zip(COSTS, costs, strict=True))
