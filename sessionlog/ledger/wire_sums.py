"""Sums: what a log only sums up does not count beside the same requests on the wire.

Some agents log sums in which requests have a part that have no row: a compaction, or all that a run used. The part
beyond the log's rows is a record of its own, `summed`. It is reduced by what is only on the wire in its session, if it
was logged while that was recorded: both are the same requests. What is left of it counts, with its share of the cost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from sessionlog.ledger.copies import Names
from sessionlog.ledger.pairing import NEAR_NS
from sessionlog.ledger.rows import Row
from sessionlog.ledger.schema import MADE, RESPONSE
from sessionlog.ledger.statements import choose, insert_rows

_AT = {name: index for index, name in enumerate(RESPONSE)}
_COLUMNS = ", ".join(f"r.{name}" for name in RESPONSE)
_TOKENS = ("input", "cache_read", "cache_write", "output")
_REDUCED = (*_TOKENS, "cache_write_1h", "reasoning")
_COSTS = ("recorded_nano", "cost_nano", "estimate_nano", "saved_nano")
OF_SUMS = 2 * MADE << 20
"""Rows that are made of sums have this number or one below it, those made of pairs have numbers above it."""

_N = 36  # bits of a row's number within the number of a row made of it

NUMBER_OF_SUM = f"({OF_SUMS} - r.n - ({OF_SUMS} - r.n >= {1 << _N - 1}) * {1 << _N})"
"""SQL of the number of the sum of which a row `r` was made."""

_OF_SESSIONS = f"""SELECT {_COLUMNS} FROM
    (SELECT DISTINCT file_id, session_id FROM log_sessions WHERE session_id {{chosen}}) t
    JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id
    WHERE r.time_ns IS NOT NULL AND r.n > {MADE} AND"""  # noqa: S608 - names of the schema
_ONLY_ON_WIRE = f"""SELECT m.session_id, w.start_ns, w.last_ns, {", ".join(f"SUM(r.{name})" for name in _REDUCED)}
    FROM wire_matches m JOIN all_sessions w ON w.id = m.wire_session
    JOIN responses r ON r.file_id = m.made_file AND r.n = m.made_n
    WHERE m.session_id {{chosen}} AND m.log_n IS NULL GROUP BY 1, m.wire_session ORDER BY 1, w.start_ns, w.session"""  # noqa: S608 - as above

_DELETE_MADE = f"""DELETE FROM responses WHERE n <= {OF_SUMS} AND (file_id, session_id) IN
    (SELECT file_id, session_id FROM log_sessions WHERE session_id {{chosen}})"""  # noqa: S608 - as above


def response_rows(connection: sqlite3.Connection, sessions: Iterable[int], condition: str) -> list[Row]:
    """Return the rows of these sessions that have a time and come from logs, or are merged of copies."""
    return connection.execute(f"{_OF_SESSIONS.format(chosen=choose(connection, sessions))} {condition}").fetchall()


def reduce_sums(connection: sqlite3.Connection, names: Names, sessions: Iterable[int]) -> None:
    """Reduce what the logs of these sessions only sum up by what is only on the wire, as it is now."""
    sessions = list(sessions)
    connection.execute(_DELETE_MADE.format(chosen=choose(connection, sessions)))
    rows = response_rows(connection, sessions, "r.summed AND r.chosen")
    if not rows:
        return
    used: dict[int, list[tuple[int, int, list[int]]]] = {}
    only_on_wire = _ONLY_ON_WIRE.format(chosen=choose(connection, sessions))
    for session, start, last, *tokens in connection.execute(only_on_wire):
        used.setdefault(session, []).append((start, last, tokens))
    made: list[Row] = []
    counting: list[tuple[bool, int, int]] = []
    for row in sorted(rows, key=lambda row: (row[_AT["time_ns"]], repr((names.path(row[0]), row[_AT["requests"] :])))):
        rest = _rest(row, used.get(row[_AT["session_id"]], ()))
        is_whole = rest == [row[_AT[name]] for name in _REDUCED]
        counting.append((is_whole, *row[:2]))
        if not is_whole and any(rest):
            made.append(_reduced(row, rest))
    connection.executemany("UPDATE responses SET counts = ? WHERE file_id = ? AND n = ?", counting)
    insert_rows(connection, "responses", RESPONSE, made)


def _rest(row: Row, used: Iterable[tuple[int, int, list[int]]]) -> list[int]:
    """Return what a sum has beyond what is on the wire, whose tokens are used up."""
    rest = [row[_AT[name]] for name in _REDUCED]
    for start, last, tokens in used:
        if start - NEAR_NS <= row[_AT["time_ns"]] <= last + NEAR_NS:
            for index, count in enumerate(rest):
                common = min(count, tokens[index])
                rest[index] -= common
                tokens[index] -= common
    return rest


def _reduced(row: Row, rest: Sequence[int]) -> Row:
    """Return the row of the rest of a sum, with its share of the cost."""
    total, left = sum(row[_AT[name]] for name in _TOKENS), sum(rest[: len(_TOKENS)])
    changes: dict[str, Any] = dict(zip(_REDUCED, rest, strict=True))
    for name in _COSTS:
        cost = row[_AT[name]]
        changes[name] = cost * left // total if cost is not None and total else cost
    changes |= {"n": _number(row), "family": None, "key": None, "superseded_by": None, "counts": 1}
    reduced = list(row)
    for name, value in changes.items():
        reduced[_AT[name]] = value
    return tuple(reduced)


def _number(row: Row) -> int:
    """Return the number of the row that is made of a sum."""
    n: int = row[1]
    return OF_SUMS - (n & (1 << _N) - 1)
