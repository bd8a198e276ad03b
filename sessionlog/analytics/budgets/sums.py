"""The use of a budget as SQL on the ledger's schema, and the start of its period.

Records count by their own time, from the start of the budget's period and without an end: records later than now count
too, so that setting the clock back frees nothing. A recorded cost counts, else the estimate; requests with neither are
counted as unpriced, and the sum is then a lower bound. Quarter hours are summed, and single records only at the edge of
the period (see `ledger.quarter_hours`), so that years of logs cost little more than a day. The query's connection needs
the SQL function `lower_case`.
"""

from __future__ import annotations

from sessionlog.analytics.conditions import matches, within_64_bits
from sessionlog.analytics.sums import CLASSES, TOTAL_TOKENS, Row, column_of, measures, read_rows
from sessionlog.ledger.quarter_hours import parts
from sessionlog.ledger.schema import RUNNING_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo
    from typing import Any

    from sessionlog.analytics.budgets.rules import BudgetRule
    from sessionlog.analytics.conditions import Query

HOUR_NS = 3600 * 1_000_000_000

_MEASURES = {"usd": ("known_nano", "estimated_nano"), "tokens": CLASSES, "requests": ("requests",)}
"""Unit of a budget → what adds up to its use."""

_USES = {
    "usd": "r.cost_nano > 0 OR r.estimate_nano > 0",
    "tokens": f"{TOTAL_TOKENS} > 0",
    "requests": "r.requests > 0",
}
_READ = ("first_ns", "unknown", *(column_of(name) for names in _MEASURES.values() for name in names), "unpriced")
_WITHOUT_COST = """FROM responses r JOIN labels l ON l.id = r.label_id JOIN sessions n ON n.id = r.session_id
    WHERE r.file_id IN (SELECT t.file_id FROM quarter_hours c CROSS JOIN log_sessions t ON t.session_id = c.session_id
        WHERE c.unknown {since})
    AND r.counts AND r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL AND {scope}"""
"""`CROSS JOIN` keeps SQLite from reading all records."""

_UNKNOWN_USE = {
    "has_usage": f"MAX({TOTAL_TOKENS} > 0 OR NOT r.requests)",
    "requests": "SUM(r.requests)",
    "without_usage": f"SUM(CASE WHEN {TOTAL_TOKENS} > 0 THEN 0 ELSE r.requests END)",
}
_SESSIONS_WITHOUT_USAGE = f"SELECT DISTINCT n.session {{source}} AND NOT {TOTAL_TOKENS} > 0 AND r.requests ORDER BY 1"
_SESSION = {"source": "s.source"}
_LABEL = {"provider": "l.provider", "model": "l.model", "project": "l.project"}
_SESSIONS = "r.session_id IN (SELECT s.id FROM sessions s WHERE {})"
_COUNTED = f"+{_SESSIONS}"
"""Matches nearly all sessions. `+` keeps SQLite from an index lookup per session, which takes 6 times as long."""

_LABELS = "r.label_id IN (SELECT l.id FROM labels l WHERE {})"
_META = """EXISTS (SELECT 1 FROM json_each(s.metadata) m WHERE m.key = :meta_{number} AND ({options}))"""
_VALUE = "lower_case(CASE m.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(m.value AS TEXT) END)"
_HOLDS_OTHERS = """(NOT EXISTS (SELECT 1 FROM log_sessions t WHERE t.file_id = f.id) OR EXISTS (
    SELECT 1 FROM log_sessions t JOIN sessions s ON s.id = t.session_id WHERE t.file_id = f.id AND NOT {}))"""
_RECENT = f"s.last_ns > :now_ns - {RUNNING_NS}"


class Use:
    """The use in a budget's period and scope.

    Attributes:
        amount: In the budget's inner unit: nano-dollars, tokens or requests.
        unpriced: Requests without a cost; at least 1 if any use has none.
        first_ns: The time of the oldest use; None if there is none, or its time is unknown.
        session: The ledger's number of the session; None for all sessions.
        estimated: Whether a part of the amount is estimated from list prices.
    """

    __slots__ = ("amount", "estimated", "first_ns", "session", "unpriced")

    def __init__(
        self,
        amount: int = 0,
        unpriced: int = 0,
        first_ns: int | None = None,
        session: int | None = None,
        estimated: int = 0,
    ) -> None:
        self.amount = amount
        self.unpriced = unpriced
        self.first_ns = first_ns
        self.session = session
        self.estimated = bool(estimated)


def scope_of(
    rule: BudgetRule, *, session: str | None = None, session_id: int | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the condition on records `r` that a budget counts, with its parameters.

    A session's id or its number in the ledger limits it to that session.
    """
    source, parameters = matches(_only(rule, _SESSION), _SESSION)
    label, more = matches(_only(rule, _LABEL), _LABEL)
    meta, values = _metadata(rule)
    excluded, ids = matches({"exclude": rule.exclude}, {"exclude": "s.session"})
    values |= ids
    others = [f"NOT {condition}" for condition in excluded]
    condition = _COUNTED.format(" AND ".join(["s.counted", *source, *meta, *others]))
    if label:
        condition += " AND " + _LABELS.format(" AND ".join(label))
    found: dict[str, Any] = {**parameters, **more, **values}
    if session is not None:
        condition += " AND " + _SESSIONS.format("s.session = :session")
        found["session"] = session
    if session_id is not None:
        condition += " AND r.session_id = :session_id"
        found["session_id"] = session_id
    return condition, found


def is_excluded(query: Query, rule: BudgetRule, session: str) -> bool:
    """Whether a budget excludes a session."""
    conditions, parameters = matches({"exclude": rule.exclude}, {"exclude": ":session"})
    return bool(conditions) and bool(query(f"SELECT 1 WHERE {conditions[0]}", parameters | {"session": session}))


def use_since(query: Query, rule: BudgetRule, start_ns: int | None, *, session: str | None = None) -> Use:
    """Return the use since `start_ns`, or of all time; of one session if its id is given."""
    scope, parameters = scope_of(rule, session=session)
    [found] = _sums(query, rule, start_ns, scope, parameters)
    return found


def use_of_sessions(
    query: Query, rule: BudgetRule, start_ns: int | None, *, now_ns: int, session_id: int | None
) -> list[Use]:
    """Return the use of each session since `start_ns`: the session with this number, else all of the last ten minutes.

    Ended sessions count too, because some logs record an end after every turn.
    """
    scope, parameters = scope_of(rule, session_id=session_id)
    if session_id is None:
        scope += " AND " + _SESSIONS.format(_RECENT)
        parameters["now_ns"] = now_ns
    return _sums(query, rule, start_ns, scope, parameters, each=True)


def _sums(
    query: Query,
    rule: BudgetRule,
    start_ns: int | None,
    scope: str,
    parameters: Mapping[str, Any],
    *,
    each: bool = False,
) -> list[Use]:
    tables, bounds = parts(start_ns, None, _READ)
    columns = {
        "amount": " + ".join(f"COALESCE({sql}, 0)" for sql in measures(_MEASURES[rule.unit]).values()),
        "unpriced": "MAX(COALESCE(SUM(r.unpriced), 0), COALESCE(MAX(r.unknown), 0))",
        "first_ns": f"MIN(CASE WHEN {_USES[rule.unit]} THEN r.first_ns END)",
        "session": "r.session_id" if each else "NULL",
        "estimated": "COALESCE(MAX(r.estimate_nano > 0), 0)",
    }
    source = f"FROM {tables} r WHERE {scope}{' GROUP BY r.session_id' if each else ''}"
    return read_rows(query, Use, columns, source, {**parameters, **bounds})


class UnknownUse:
    """The use that a budget's sum lacks.

    Attributes:
        models: `provider/model` of the use without a price, sorted.
        unpriced: The number of those requests, at least 1 if there are any.
        without_usage: Responses without tokens in the log.
        sessions: The ids of the sessions with such responses, sorted.
    """

    __slots__ = ("models", "sessions", "unpriced", "without_usage")

    def __init__(self) -> None:
        self.models: list[str] = []
        self.sessions: list[str] = []
        self.unpriced = self.without_usage = 0


def unknown_use(
    query: Query, rule: BudgetRule, start_ns: int | None, *, session: str | None = None, session_id: int | None = None
) -> UnknownUse:
    """Return the use without price or tokens since `start_ns`; of one session if its id or number is given."""
    scope, parameters = scope_of(rule, session=session, session_id=session_id)
    since = ""
    if start_ns is not None:
        since = "AND c.last_ns >= :start_ns"
        scope += " AND r.time_ns >= :start_ns"
        parameters["start_ns"] = within_64_bits(start_ns)
    found = UnknownUse()
    source = _WITHOUT_COST.format(since=since, scope=scope)
    rows = read_rows(query, Row, _UNKNOWN_USE, source, parameters, by={"model": "l.provider || '/' || l.model"})
    for row in sorted(rows, key=lambda row: str(row.keys["model"])):
        found.without_usage += row.without_usage
        if row.has_usage:
            found.models.append(str(row.keys["model"]))
            found.unpriced += max(1, row.requests - row.without_usage)
    if found.without_usage:
        sql = _SESSIONS_WITHOUT_USAGE.format(source=source)
        found.sessions += [str(name) for (name,) in query(sql, parameters)]
    return found


def untimed_requests(query: Query, rule: BudgetRule, start_ns: int) -> int:
    """Return the number of responses without a time, in logs modified since the budget's period began."""
    scope, parameters = scope_of(rule)
    sql = f"""SELECT COALESCE(SUM(MAX(r.requests, 1)), 0) FROM quarter_hours r
              WHERE r.time_ns IS NULL AND {scope} AND EXISTS (
              SELECT 1 FROM log_sessions t JOIN files f ON f.id = t.file_id
              WHERE t.session_id = r.session_id AND f.mtime_ns >= :start_ns) AND ({_USES[rule.unit]} OR r.unknown)"""  # noqa: S608 - as above
    [(count,)] = query(sql, {**parameters, "start_ns": within_64_bits(start_ns)})
    return int(count)


def unreadable_logs(query: Query, rule: BudgetRule) -> list[str]:
    """Return the paths of the logs in a budget's scope that have a row in the ledger and cannot be read now."""
    from sessionlog.ledger.identity import path_of

    source, parameters = matches(_only(rule, {"source": "f.source"}), {"source": "f.source"})
    excluded, ids = matches({"exclude": rule.exclude}, {"exclude": "s.session"})
    if excluded:
        source.append(_HOLDS_OTHERS.format(excluded[0]))
    sql = f"SELECT f.path FROM files f WHERE {' AND '.join(['f.missing = 3', *source])} ORDER BY f.path"  # noqa: S608 - as above
    return [path_of(path) for (path,) in query(sql, parameters | ids)]


def time_of(rule: BudgetRule, now_ns: int, zone: str | tzinfo) -> tuple[int | None, int | None]:
    """Return the start of a budget's period and, for a calendar period, its end."""
    if rule.is_per_session:
        return None, None
    if rule.window_ns is not None:
        return now_ns - rule.window_ns, None
    from sessionlog.analytics.budgets.calendar import calendar_time

    return calendar_time(rule, now_ns, zone)


def _only(rule: BudgetRule, expressions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {key: rule.filters[key] for key in expressions if key in rule.filters}


def _metadata(rule: BudgetRule) -> tuple[list[str], dict[str, str]]:
    conditions, parameters = [], {}
    for number, (key, patterns) in enumerate(rule.meta.items()):
        parameters[f"meta_{number}"] = key
        parameters |= {f"meta_{number}_{index}": pattern for index, pattern in enumerate(patterns)}
        options = " OR ".join(f"{_VALUE} GLOB :meta_{number}_{index}" for index in range(len(patterns)))
        conditions.append(_META.format(number=number, options=options))
    return conditions, parameters
