"""Reservations: amounts that were allowed and are not in any log yet.

A reservation counts until its response is in the ledger, until it is released, or for ten minutes, whichever comes
first. A response ends a reservation of its session if it is later than the wall clock and than all of that session's
records at the time of reserving. Logs do not show which call a response belongs to, so it ends the smallest reservation
made before it: the response of a small call never frees what a large one still needs. The remaining reservations of the
session are moved up to the response's time, so that it ends only one. In doubtful cases (a clock set back, a response
with an earlier time) the reservation lasts the ten minutes, measured by the boot clock. Only a call that takes longer
than that is not reserved to its end.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.conditions import Query

LIFE_NS = 600 * 1_000_000_000
"""The time for which a reservation without a response counts."""

_AGE = "CASE WHEN boot <> '' AND boot = :boot THEN :boot_ns - boot_ns ELSE :wall_ns - wall_ns END"
_WITHOUT_SESSION = (
    f"SELECT COALESCE(SUM(amount), 0) FROM reservations WHERE budget = :budget AND session = '' AND {_AGE} < :life"  # noqa: S608 - names of the schema
)
_MADE = f"""SELECT session, id, amount, after_ns FROM reservations
    WHERE budget = :budget AND session <> '' AND {_AGE} < :life ORDER BY id"""  # noqa: S608 - as above
_LAST = (
    """SELECT MAX(c.last_ns) FROM sessions s JOIN quarter_hours c ON c.session_id = s.id WHERE s.session = :session"""
)
_OF_SESSION = """(SELECT DISTINCT t.file_id, t.session_id FROM sessions s JOIN log_sessions t ON t.session_id = s.id
        WHERE s.session = :session) t
    JOIN responses r ON r.file_id = t.file_id AND r.session_id = t.session_id"""
_INSERT = """INSERT INTO reservations (budget, session, amount, boot, boot_ns, wall_ns, after_ns)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_MOVE = "UPDATE reservations SET after_ns = MAX(after_ns, ?) WHERE budget = ? AND session = ?"
_EXPIRE = f"DELETE FROM reservations WHERE {_AGE} >= :life"  # noqa: S608 - as above


class Live:
    """The live reservations of one budget.

    Attributes:
        amount: Their sum, in the budget's inner unit.
        ended: Ids of the reservations that a response has ended.
        moved: Session → the time of the latest response that ended one of its reservations.
    """

    __slots__ = ("amount", "ended", "moved")

    def __init__(self) -> None:
        self.amount = 0
        self.ended: list[int] = []
        self.moved: dict[str, int] = {}


def live_reservations(
    query: Query, budget: str, now: ClockReading, *, scope: str = "1", parameters: Mapping[str, Any] | None = None
) -> Live:
    """Return a budget's live reservations, without a change to the ledger.

    Args:
        query: Runs a statement.
        budget: The budget's key.
        now: The present.
        scope: A condition on records `r`: the responses that count for the budget.
        parameters: The parameters of `scope`.
    """
    live = Live()
    age = {"budget": budget, **_age(now)}
    [(live.amount,)] = query(_WITHOUT_SESSION, age)
    waiting: dict[str, list[tuple[int, int, int]]] = {}
    for session, *made in query(_MADE, age):
        waiting.setdefault(session, []).append((made[0], made[1], made[2]))
    for session, those in waiting.items():
        responses = _responses(query, session, min(after for *_, after in those), scope, parameters or {})
        for time_ns in responses:
            before = [one for one in those if one[2] < time_ns]
            if before:
                smallest = min(before, key=lambda one: (one[1], one[0]))
                those.remove(smallest)
                live.ended.append(smallest[0])
                live.moved[session] = time_ns
        live.amount += sum(amount for _, amount, _ in those)
    return live


def _age(now: ClockReading) -> dict[str, Any]:
    """The parameters of `_AGE`: the boot clock within one boot, the wall clock otherwise."""
    return {"boot": now.boot, "boot_ns": now.boot_ns, "wall_ns": now.wall_ns, "life": LIFE_NS}


def _responses(query: Query, session: str, after_ns: int, scope: str, parameters: Mapping[str, Any]) -> list[int]:
    """The times of a session's responses after a time, sorted, one for each request."""
    [(last_ns,)] = query(_LAST, {"session": session})
    if last_ns is None or last_ns <= after_ns:
        return []
    sql = f"""SELECT r.time_ns, r.requests FROM {_OF_SESSION} WHERE r.counts AND r.time_ns > :after_ns AND {scope}
              ORDER BY r.time_ns"""  # noqa: S608 - names of the schema, and a condition whose values are bound
    found = query(sql, {**parameters, "session": session, "after_ns": after_ns})
    return [time_ns for time_ns, requests in found for _ in range(min(requests, 1000))]


def reserve(
    connection: sqlite3.Connection, query: Query, budget: str, session: str, amount: int, now: ClockReading, live: Live
) -> int:
    """Store a reservation, delete ended and expired ones; return its id.

    The caller holds the write lock and commits.
    """
    connection.executemany("DELETE FROM reservations WHERE id = ?", [(number,) for number in live.ended])
    connection.execute(_EXPIRE, _age(now))
    [(last_ns,)] = query(_LAST, {"session": session})
    after_ns = max(now.wall_ns, last_ns or 0)
    moved = [(time_ns, budget, name) for name, time_ns in live.moved.items()]
    connection.executemany(_MOVE, moved)
    values = (budget, session, amount, now.boot, now.boot_ns, now.wall_ns, after_ns)
    return int(connection.execute(_INSERT, values).lastrowid or 0)


def release(connection: sqlite3.Connection, number: int, made: ClockReading) -> None:
    """Delete the reservation with this number and time: the ledger may have been replaced meanwhile.

    The caller holds the write lock and commits.
    """
    connection.execute(
        "DELETE FROM reservations WHERE id = ? AND boot = ? AND boot_ns = ? AND wall_ns = ?",
        (number, made.boot, made.boot_ns, made.wall_ns),
    )
