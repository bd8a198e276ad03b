"""Reservations: what was allowed to be spent and is not in any log yet.

A reservation counts until the response that it was made for is in the ledger, until it is released, or for ten
minutes, whichever comes first. The response is known by its time: it is of the reservation's session, and later than
everything that the ledger knew of that session, and than the wall clock, when the reservation was made. Of which call
it is nobody says: it ends one reservation, the smallest of those made before it, so that the answer to a small call
never frees what a large one still needs. Those that stay are moved up to its time, so that it ends no other one.
Whatever is doubtful (a clock set back, a response of a time already passed) leaves the reservation to the ten minutes,
which are measured by the boot's clock. Only a call that takes longer than they last is not reserved to its end.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from sessionlog.analytics.budgets.clock import ClockReading
    from sessionlog.analytics.conditions import Query

LIFE_NS = 600 * 1_000_000_000
"""How long a reservation without a response counts."""

_AGE = "CASE WHEN boot <> '' AND boot = :boot THEN :boot_ns - boot_ns ELSE :wall_ns - wall_ns END"
_NOBODYS = (
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
    """The reservations of one budget that count, as they are now.

    Attributes:
        amount: Their sum, in the budget's inner unit.
        ended: Ids of those that a response has ended.
        moved: Session → the time of the latest response that ended one of it.
    """

    __slots__ = ("amount", "ended", "moved")

    def __init__(self) -> None:
        self.amount = 0
        self.ended: list[int] = []
        self.moved: dict[str, int] = {}


def live_reservations(
    query: Query, budget: str, now: ClockReading, *, scope: str = "1", parameters: Mapping[str, Any] | None = None
) -> Live:
    """Return what of a budget is reserved; nothing is changed.

    Args:
        query: Runs a statement.
        budget: The budget's key.
        now: The present.
        scope: Which responses are of the budget: a condition on records `r`, with its parameters.
        parameters: Of the scope.
    """
    live = Live()
    age = {"budget": budget, **_age(now)}
    [(live.amount,)] = query(_NOBODYS, age)
    waiting: dict[str, list[tuple[int, int, int]]] = {}
    for session, *made in query(_MADE, age):
        waiting.setdefault(session, []).append((made[0], made[1], made[2]))
    for session, those in waiting.items():
        answers = _answers(query, session, min(after for *_, after in those), scope, parameters or {})
        for time_ns in answers:
            before = [one for one in those if one[2] < time_ns]
            if before:
                smallest = min(before, key=lambda one: (one[1], one[0]))
                those.remove(smallest)
                live.ended.append(smallest[0])
                live.moved[session] = time_ns
        live.amount += sum(amount for _, amount, _ in those)
    return live


def _age(now: ClockReading) -> dict[str, Any]:
    """The parameters of how old a reservation is: by the boot's clock within one boot, by the wall's otherwise."""
    return {"boot": now.boot, "boot_ns": now.boot_ns, "wall_ns": now.wall_ns, "life": LIFE_NS}


def _answers(query: Query, session: str, after_ns: int, scope: str, parameters: Mapping[str, Any]) -> list[int]:
    """The times of a session's responses after a time, in their order, a request each."""
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
    """Write a reservation down, and what has ended out; return its id. The caller holds the write lock and commits."""
    connection.executemany("DELETE FROM reservations WHERE id = ?", [(number,) for number in live.ended])
    connection.execute(_EXPIRE, _age(now))
    [(last_ns,)] = query(_LAST, {"session": session})
    after_ns = max(now.wall_ns, last_ns or 0)
    moved = [(time_ns, budget, name) for name, time_ns in live.moved.items()]
    connection.executemany(_MOVE, moved)
    values = (budget, session, amount, now.boot, now.boot_ns, now.wall_ns, after_ns)
    return int(connection.execute(_INSERT, values).lastrowid or 0)


def release(connection: sqlite3.Connection, number: int, made: ClockReading) -> None:
    """Take back the reservation of this number that was made then: the ledger may be another one by now.

    The caller holds the write lock and commits.
    """
    connection.execute(
        "DELETE FROM reservations WHERE id = ? AND boot = ? AND boot_ns = ? AND wall_ns = ?",
        (number, made.boot, made.boot_ns, made.wall_ns),
    )
