"""Sums: what a log only sums up does not count beside the same requests on the wire.

Some agents log sums in which requests have a part that have no row: a compaction, or all that a run used. The part
beyond the log's rows is a record of its own, `summed`. It is reduced by what is only on the wire in its session, if it
was logged while that was recorded: both are the same requests. What is left of it counts, with its share of the cost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from sessionlog.ledger.columns import Response, names_of
from sessionlog.ledger.copies import Names, numbers_of, total_tokens
from sessionlog.ledger.pairing import NEAR_NS
from sessionlog.ledger.schema import MADE
from sessionlog.ledger.statements import choose, insert_rows, select_rows

_TOKENS, _MONEY = names_of(Response, "tokens"), names_of(Response, "money")
_tokens_of = attrgetter(*_TOKENS)
OF_SUMS = 2 * MADE << 20
"""Rows that are made of sums have this number or one below it, those made of pairs have numbers above it."""

_N = 36  # bits of a row's number within the number of a row made of it

NUMBER_OF_SUM = f"({OF_SUMS} - r.n - ({OF_SUMS} - r.n >= {1 << _N - 1}) * {1 << _N})"
"""SQL of the number of the sum of which a row `r` was made."""

_OF_SESSIONS = f"""(SELECT DISTINCT file_id, session_id FROM log_sessions WHERE session_id {{chosen}}) t
    JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id
    WHERE r.time_ns IS NOT NULL AND r.n > {MADE} AND"""  # noqa: S608 - names of the schema
_ONLY_ON_WIRE = f"""SELECT m.session_id, w.start_ns, w.last_ns, {", ".join(f"SUM(r.{name})" for name in _TOKENS)}
    FROM wire_matches m JOIN all_sessions w ON w.id = m.wire_session
    JOIN responses r ON r.file_id = m.made_file AND r.n = m.made_n
    WHERE m.session_id {{chosen}} AND m.log_n IS NULL GROUP BY 1, m.wire_session ORDER BY 1, w.start_ns, w.session"""  # noqa: S608 - as above

_DELETE_MADE = f"""DELETE FROM responses WHERE n <= {OF_SUMS} AND (file_id, session_id) IN
    (SELECT file_id, session_id FROM log_sessions WHERE session_id {{chosen}})"""  # noqa: S608 - as above


def response_rows(connection: sqlite3.Connection, sessions: Iterable[int], condition: str) -> list[Response]:
    """Return the rows of these sessions that have a time and come from logs, or are merged of copies."""
    chosen = choose(connection, sessions)
    return list(select_rows(connection, Response, f"{_OF_SESSIONS.format(chosen=chosen)} {condition}"))


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
    made: list[Response] = []
    counting: list[tuple[bool, int, int]] = []
    for row in sorted(rows, key=lambda row: (row.time_ns, repr((names.path(row.file_id), numbers_of(row))))):
        rest = _rest(row, used.get(row.session_id, ()))
        is_whole = rest == [*_tokens_of(row)]
        counting.append((is_whole, row.file_id, row.n))
        if not is_whole and any(rest):
            made.append(_reduced(row, rest))
    connection.executemany("UPDATE responses SET counts = ? WHERE file_id = ? AND n = ?", counting)
    insert_rows(connection, "responses", Response, made)


def _rest(row: Response, used: Iterable[tuple[int, int, list[int]]]) -> list[int]:
    """Return what a sum has beyond what is on the wire, whose tokens are used up."""
    rest = [*_tokens_of(row)]
    for start, last, tokens in used:
        if start - NEAR_NS <= (row.time_ns or 0) <= last + NEAR_NS:
            for index, count in enumerate(rest):
                common = min(count, tokens[index])
                rest[index] -= common
                tokens[index] -= common
    return rest


def _reduced(row: Response, rest: Sequence[int]) -> Response:
    """Return the row of the rest of a sum, with its share of the cost."""
    changes: dict[str, Any] = dict(zip(_TOKENS, rest, strict=True))
    total, part = total_tokens(row), total_tokens(row._replace(**changes))
    for name in _MONEY:
        cost = getattr(row, name)
        changes[name] = cost * part // total if cost is not None and total else cost
    return row._replace(n=_number(row), family=None, key=None, superseded_by=None, counts=1, **changes)


def _number(row: Response) -> int:
    """Return the number of the row that is made of a sum."""
    return OF_SUMS - (row.n & (1 << _N) - 1)
