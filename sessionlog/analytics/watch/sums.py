"""Watch sums: the SQL statements behind `watch`, and their results as plain values.

They read only sessions with recent events, so a ledger of years costs little more than one of a day. Sessions whose
logs are elsewhere (on another machine, or of another environment) are left out, as in every report.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessionlog.analytics.conditions import STATUS, filter_condition, matches, within_64_bits
from sessionlog.analytics.report import values_of
from sessionlog.analytics.status.sums import last_model, last_request
from sessionlog.analytics.sums import OF_RECORDS, USED, Row, measures, read_rows
from sessionlog.analytics.watch.snapshot import STEP_NS, STEPS, Pace, Running, RunningSession, WatchEvent, add
from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.schema import RUNNING_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.conditions import Query

MOST_EVENTS = 50
_SESSION = ("id", "source", "session", "path", "project", "start_ns", "last_ns", "turns")

_BY_SESSIONS = """(SELECT DISTINCT t.file_id, t.session_id FROM sessions s JOIN log_sessions t ON t.session_id = s.id
        JOIN files f ON f.id = t.file_id WHERE s.last_ns >= :since_ns AND f.missing <> 2) t"""
_IS_HERE = """EXISTS (SELECT 1 FROM log_sessions t JOIN files f ON f.id = t.file_id
        WHERE t.session_id = s.id AND f.missing <> 2)"""

_RECORDS = """FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id
    WHERE r.file_id IN (SELECT t.file_id FROM quarter_hours c CROSS JOIN log_sessions t ON t.session_id = c.session_id
        JOIN files f ON f.id = t.file_id WHERE c.last_ns >= :since_ns AND f.missing <> 2)
    AND r.time_ns >= :since_ns"""
"""Only logs with a recent record are read: without `CROSS JOIN` SQLite may read all records."""

_PACE = {
    "session": "r.session_id",
    "step": f"(r.time_ns - :since_ns) / {STEP_NS}",
    "is_later": "r.time_ns >= :now_ns",
}

_OF_RUNNING = f"""sessions s JOIN quarter_hours r ON r.session_id = s.id JOIN labels l ON l.id = r.label_id
    WHERE s.end_status IS NULL AND s.last_ns > :since_ns AND {_IS_HERE}"""

_RESPONSE = {
    "time_ns": "r.time_ns",
    "source": "s.source",
    "session": "s.session",
    "name": "l.model",
    "failed": "r.failed",
    "sent": "r.input + r.cache_read + r.cache_write",
    "output": "r.output",
    "known_nano": "r.cost_nano",
    "estimated_nano": "r.estimate_nano",
    "duration_ms": "r.latency_ms",
}
_NEWEST = f"ORDER BY r.time_ns DESC, r.file_id DESC, r.n DESC LIMIT {MOST_EVENTS}"

_CALL = {
    "time_ns": "r.time_ns",
    "source": "s.source",
    "session": "s.session",
    "name": "r.tool",
    "failed": "r.failed",
    "finished": "r.finished",
    "duration_ms": "r.duration_ms",
}
_CALLS = f"""FROM {_BY_SESSIONS} JOIN tools r ON r.file_id = t.file_id AND r.session_id = t.session_id
    JOIN sessions s ON s.id = r.session_id WHERE r.time_ns >= :since_ns AND r.time_ns < :now_ns"""

_END = {
    **{name: f"s.{name}" for name in ("start_ns", "last_ns", "source", "session")},
    "has_ended": "s.end_status IS NOT NULL",
    "status": f"COALESCE(NULLIF({STATUS}, ''), 'unknown')",
}
_ENDS = f"""FROM sessions s WHERE s.last_ns >= :since_ns AND {_IS_HERE} AND EXISTS (
    SELECT 1 FROM quarter_hours r JOIN labels l ON l.id = r.label_id WHERE r.session_id = s.id"""  # noqa: S608 - names of the schema

_ORDER = ("start", "response", "tool", "end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The parameters of all these statements.

    Attributes:
        start_ns: The start of the window.
        now_ns: Its end, the present.
        filters: `source`, `project` → glob patterns of which one must match.
    """

    start_ns: int
    now_ns: int
    filters: Mapping[str, Sequence[str]]

    def bounds(self, since_ns: int) -> dict[str, Any]:
        """The parameters of a statement on records since an instant."""
        return {"since_ns": within_64_bits(since_ns), "now_ns": within_64_bits(self.now_ns)}


def find_running(query: Query, window: Window) -> list[Running]:
    """Return the sessions without an end whose last event is younger than ten minutes, answered or not."""
    where, parameters = filter_condition(window.filters, window.now_ns, listed_only=True)
    parameters |= window.bounds(window.now_ns - RUNNING_NS)
    columns = {name: f"s.{name}" for name in _SESSION}

    def running(keys: Mapping[str, Any], **used: Any) -> Running:
        return Running(**keys, **used)

    return read_rows(query, running, measures(USED), f"FROM {_OF_RUNNING} AND {where}", parameters, by=columns)


def last_context(query: Query, session_id: int) -> tuple[str, int | None, int | None]:
    """Return the model of a session's last request (empty before the first), its prompt tokens, and the window."""
    last = last_request(query, session_id)
    if last is None:
        model = last_model(query, session_id)
        return "" if model in {None, UNKNOWN} else str(model), None, None
    used, _, model, window = last
    return model, used, window


def running_session(one: Running, context: tuple[str, int | None, int | None], pace: Pace) -> RunningSession:
    """Return a running session with its last context and its pace."""
    model, used, window = context
    return RunningSession(**values_of(one), model=model, context_tokens=used, context_window=window, pace=pace)


def paces_of(query: Query, window: Window) -> tuple[dict[int, Pace], bool]:
    """Return session number → usage in the window, and whether a log has records in the future.

    The `minutes` of each pace have their default.
    """
    where, parameters = filter_condition(window.filters, window.now_ns)
    parameters |= window.bounds(window.start_ns)
    paces: dict[int, Pace] = {}
    rows = read_rows(query, Row, measures(USED, OF_RECORDS), f"{_RECORDS} AND {where}", parameters, by=_PACE)
    for row in rows:
        if not row.keys["is_later"]:
            session, step = row.keys["session"], row.keys["step"]
            steps = tuple(row.total_tokens if number == step else 0 for number in range(STEPS))
            pace = Pace(**{name: getattr(row, name) for name in USED}, steps=steps)
            paces[session] = add(paces.get(session, Pace()), pace)
    return paces, any(row.keys["is_later"] for row in rows)


def find_events(query: Query, window: Window) -> tuple[WatchEvent, ...]:
    """Return the events of the last ten minutes, newest first, at most `MOST_EVENTS`."""
    where, parameters = filter_condition(window.filters, window.now_ns, listed_only=True)
    parameters |= window.bounds(window.now_ns - RUNNING_NS)
    of_responses = f"{_RECORDS} AND r.requests AND r.time_ns < :now_ns AND {where} {_NEWEST}"
    found = read_rows(query, _response, _RESPONSE, of_responses, parameters)
    for row in read_rows(query, Row, _END, f"{_ENDS} AND {where})", parameters):
        found += _ends(row, parameters["since_ns"], window.now_ns)
    calls, patterns = matches(window.filters, {"source": "s.source", "project": "project_key(r.project)"})
    parameters = {**patterns, **window.bounds(window.now_ns - RUNNING_NS)}
    found += read_rows(query, _call, _CALL, " AND ".join([_CALLS, *calls]) + f" {_NEWEST}", parameters)
    found.sort(key=lambda event: (event.time_ns, _ORDER.index(event.kind)), reverse=True)
    return tuple(found[:MOST_EVENTS])


def _response(
    *, failed: int, sent: int, output: int, known_nano: int | None, estimated_nano: int | None, **known: Any
) -> WatchEvent:
    cost = Row(known_nano=known_nano, estimated_nano=estimated_nano)
    return WatchEvent(
        kind="response", failed=bool(failed), tokens=(int(sent), int(output)), cost_nano=cost.cost_nano,
        estimated=cost.estimated, **known,
    )  # fmt: skip


def _call(*, failed: int, finished: int, **known: Any) -> WatchEvent:
    return WatchEvent(kind="tool", failed=bool(failed), finished=bool(finished), **known)


def _ends(row: Row, since_ns: int, now_ns: int) -> list[WatchEvent]:
    found = []
    if row.start_ns is not None and since_ns <= row.start_ns < now_ns:
        found.append(WatchEvent(time_ns=row.start_ns, source=row.source, session=row.session, kind="start"))
    if row.has_ended and row.last_ns < now_ns:
        failed = row.status not in {"success", "cancelled", "unknown"}
        found.append(
            WatchEvent(
                time_ns=row.last_ns, source=row.source, session=row.session, kind="end", name=row.status, failed=failed
            )
        )
    return found
