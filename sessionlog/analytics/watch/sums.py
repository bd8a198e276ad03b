"""Watch sums: the SQL statements behind `watch`, and their results as plain values.

They read only sessions with recent events, so a ledger of years costs little more than one of a day. Sessions whose
logs are elsewhere (on another machine, or of another environment) are left out, as in every report.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sessionlog.analytics.conditions import STATUS, filter_condition, matches, within_64_bits
from sessionlog.analytics.status.sums import last_model, last_request
from sessionlog.analytics.watch.snapshot import STEP_NS, STEPS, Pace, Running, RunningSession, WatchEvent, add
from sessionlog.events.names import UNKNOWN
from sessionlog.ledger.schema import RUNNING_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sessionlog.analytics.conditions import Query

MOST_EVENTS = 50
_NAMES = ("id", "source", "session", "path", "project", "start_ns", "last_ns", "turns")

_BY_SESSIONS = """(SELECT DISTINCT t.file_id, t.session_id FROM sessions s JOIN log_sessions t ON t.session_id = s.id
        JOIN files f ON f.id = t.file_id WHERE s.last_ns >= :since_ns AND f.missing <> 2) t"""
_IS_HERE = """EXISTS (SELECT 1 FROM log_sessions t JOIN files f ON f.id = t.file_id
        WHERE t.session_id = s.id AND f.missing <> 2)"""

_RECORDS = """FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id
    WHERE r.file_id IN (SELECT t.file_id FROM quarter_hours c CROSS JOIN log_sessions t ON t.session_id = c.session_id
        JOIN files f ON f.id = t.file_id WHERE c.last_ns >= :since_ns AND f.missing <> 2)
    AND r.time_ns >= :since_ns"""
"""Only logs with a recent record are read: without `CROSS JOIN` SQLite may read all records."""

_PACE = f"""
SELECT r.session_id, (r.time_ns - :since_ns) / {STEP_NS}, r.time_ns >= :now_ns, SUM(r.requests), SUM(r.failed),
    SUM(r.input), SUM(r.cache_read), SUM(r.cache_write), SUM(r.output), SUM(r.cost_nano), SUM(r.estimate_nano),
    MAX(r.priced AND r.cost_nano IS NULL AND r.estimate_nano IS NULL)
{_RECORDS} AND {{where}} GROUP BY 1, 2, 3
"""

_RUNNING = f"""
SELECT s.id, s.source, s.session, s.path, s.project, s.start_ns, s.last_ns, s.turns, SUM(r.requests), SUM(r.input),
    SUM(r.cache_read), SUM(r.cache_write), SUM(r.output), SUM(r.cost_nano), SUM(r.estimate_nano), MAX(r.unknown)
FROM sessions s JOIN quarter_hours r ON r.session_id = s.id JOIN labels l ON l.id = r.label_id
WHERE s.end_status IS NULL AND s.last_ns > :since_ns AND {_IS_HERE} AND {{where}} GROUP BY s.id
"""  # noqa: S608 - names of the schema

_RESPONSES = f"""
SELECT r.time_ns, s.source, s.session, l.model, r.failed, r.input + r.cache_read + r.cache_write, r.output,
    r.cost_nano, r.estimate_nano, r.latency_ms
{_RECORDS} AND r.requests AND r.time_ns < :now_ns AND {{where}}
ORDER BY r.time_ns DESC, r.file_id DESC, r.n DESC LIMIT {MOST_EVENTS}
"""

_CALLS = f"""
SELECT r.time_ns, s.source, s.session, r.tool, r.failed, r.finished, r.duration_ms
FROM {_BY_SESSIONS} JOIN tools r ON r.file_id = t.file_id AND r.session_id = t.session_id
    JOIN sessions s ON s.id = r.session_id
WHERE r.time_ns >= :since_ns AND r.time_ns < :now_ns AND {{where}}
ORDER BY r.time_ns DESC, r.file_id DESC, r.n DESC LIMIT {MOST_EVENTS}
"""  # noqa: S608 - names of the schema

_ENDS = f"""
SELECT s.start_ns, s.last_ns, s.end_status IS NOT NULL, s.source, s.session, COALESCE(NULLIF({STATUS}, ''), 'unknown')
FROM sessions s WHERE s.last_ns >= :since_ns AND {_IS_HERE} AND EXISTS (
    SELECT 1 FROM quarter_hours r JOIN labels l ON l.id = r.label_id WHERE r.session_id = s.id AND {{where}})
"""  # noqa: S608 - names of the schema

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
    return [_running(row) for row in query(_RUNNING.format(where=where), parameters)]


def _running(row: tuple[Any, ...]) -> Running:
    *names, requests, input_tokens, cache_read, cache_write, output, known, guessed, partial = row
    cost, estimated = _cost(known, guessed)
    return Running(
        **dict(zip(_NAMES, names, strict=True)), requests=requests or 0,
        tokens=_whole((input_tokens, cache_read, cache_write, output)), cost_nano=cost, estimated=estimated,
        cost_is_partial=bool(partial),
    )  # fmt: skip


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
    summed = {name: getattr(one, name) for name in Running.__slots__}
    return RunningSession(**summed, model=model, context_tokens=used, context_window=window, pace=pace)


def paces_of(query: Query, window: Window) -> tuple[dict[int, Pace], bool]:
    """Return session number → usage in the window, and whether a log has records in the future.

    The `minutes` of each pace have their default.
    """
    where, parameters = filter_condition(window.filters, window.now_ns)
    parameters |= window.bounds(window.start_ns)
    paces: dict[int, Pace] = {}
    of_future = False
    for session, step, later, *sums in query(_PACE.format(where=where), parameters):
        if later:
            of_future = True
            continue
        paces[session] = add(paces.get(session, Pace()), _step(step, sums))
    return paces, of_future


def _step(step: int, sums: Sequence[Any]) -> Pace:
    requests, failed, *classes, known, guessed, partial = sums
    tokens = _whole(classes)
    cost, estimated = _cost(known, guessed)
    return Pace(
        requests=requests or 0, failed=failed or 0, tokens=tokens, cost_nano=cost, estimated=estimated,
        cost_is_partial=bool(partial), steps=tuple(tokens if number == step else 0 for number in range(STEPS)),
    )  # fmt: skip


def _whole(classes: Sequence[Any]) -> int:
    return sum(int(count or 0) for count in classes)


def _cost(known: int | None, guessed: int | None) -> tuple[int | None, bool]:
    nothing = known is None and guessed is None
    return None if nothing else int(known or 0) + int(guessed or 0), guessed is not None


def find_events(query: Query, window: Window) -> tuple[WatchEvent, ...]:
    """Return the events of the last ten minutes, newest first, at most `MOST_EVENTS`."""
    where, parameters = filter_condition(window.filters, window.now_ns, listed_only=True)
    parameters |= window.bounds(window.now_ns - RUNNING_NS)
    found = [_response(row) for row in query(_RESPONSES.format(where=where), parameters)]
    for row in query(_ENDS.format(where=where), parameters):
        found += _ends(row, parameters["since_ns"], window.now_ns)
    calls, patterns = matches(window.filters, {"source": "s.source", "project": "project_key(r.project)"})
    parameters = {**patterns, **window.bounds(window.now_ns - RUNNING_NS)}
    found += [_call(row) for row in query(_CALLS.format(where=" AND ".join(calls) or "1"), parameters)]
    found.sort(key=lambda event: (event.time_ns, _ORDER.index(event.kind)), reverse=True)
    return tuple(found[:MOST_EVENTS])


def _response(row: tuple[Any, ...]) -> WatchEvent:
    time_ns, source, session, model, failed, sent, generated, known, guessed, latency = row
    cost, estimated = _cost(known, guessed)
    return WatchEvent(
        time_ns=time_ns, source=source, session=session, kind="response", name=model, failed=bool(failed),
        tokens=(int(sent), int(generated)), cost_nano=cost, estimated=estimated, duration_ms=latency,
    )  # fmt: skip


def _call(row: tuple[Any, ...]) -> WatchEvent:
    time_ns, source, session, tool, failed, finished, took = row
    return WatchEvent(
        time_ns=time_ns, source=source, session=session, kind="tool", name=tool, failed=bool(failed),
        finished=bool(finished), duration_ms=took,
    )  # fmt: skip


def _ends(row: tuple[Any, ...], since_ns: int, now_ns: int) -> list[WatchEvent]:
    start_ns, last_ns, ended, source, session, status = row
    found = []
    if start_ns is not None and since_ns <= start_ns < now_ns:
        found.append(WatchEvent(time_ns=start_ns, source=source, session=session, kind="start"))
    if ended and last_ns < now_ns:
        end = WatchEvent(time_ns=last_ns, source=source, session=session, kind="end", name=status)
        found.append(replace(end, failed=status not in {"success", "cancelled", "unknown"}))
    return found
