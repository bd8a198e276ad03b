"""The requests in `session-store.db`, where Copilot CLI keeps those of all sessions of a home, one row each.

Where: `$COPILOT_HOME`, else `~/.copilot`. Shape: `assistant_usage_events` (id, session_id, model, input_tokens,
output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, total_nano_aiu, duration_ms, created_at, newer
ones also agent_id, initiator, finish_reason, copilot_usage_model) and `sessions` (id, cwd, branch, summary,
created_at).

Traps:

- Of July and August 2026 it alone has the requests; later the session's events have them, too. Its rows have no id of
  the provider's, so a request is recognised by its session and its counts, of equal ones by their order: `family_of`.
- A row is committed before the `session.shutdown` whose sums contain it: those count what is beyond the rows.
- Times, turns and status of a session are in its events; only one without a log has its start and title from here.
- 100,000,000,000 nano-AIU are a US dollar. Cache reads and writes are a part of the input, the reasoning of the output.
- Times without a zone are UTC, where SQLite has stamped them.

Seen: schema 8, July to October 2026 (versions 1.0.61 to 1.0.91).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.errors import LogLocked, LogNotReadable
from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.databases import Database, TableRow
from sessionlog.sources.kit import (
    MAIN,
    SUB_AGENT,
    CopyRank,
    Json,
    Problem,
    Response,
    Session,
    Steps,
    Tokens,
    folder,
    name,
    read_duration,
    read_time,
    text,
    tokens,
)

STORE = "session-store.db"
FOLDER = "session-state"
PROVIDER = "github-copilot"
COLUMNS = {"assistant_usage_events": ("session_id", "model", "input_tokens", "output_tokens")}
"""What a store has at least."""

_USAGE = "assistant_usage_events"
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
_REQUEST = (
    "session_id", "id", "model", "copilot_usage_model", *_COUNTS, "total_nano_aiu", "duration_ms", "finish_reason",
    "agent_id", "initiator", "created_at",
)  # fmt: skip
_SESSION = ("id", "cwd", "branch", "summary", "created_at")
_AIU_OF_NANO_USD = 100


class Sum(Struct, frozen=True):
    """What some requests have used."""

    usage: TokenUsage = TokenUsage()
    requests: int = 0
    cost_nano: int = 0

    def plus(self, other: Sum) -> Sum:
        """Return both together."""
        return Sum(self.usage + other.usage, self.requests + other.requests, self.cost_nano + other.cost_nano)

    def beyond(self, other: Sum) -> Sum:
        """Return what this has more than another one, in each number."""
        more = max(0, self.requests - other.requests), max(0, self.cost_nano - other.cost_nano)
        return Sum(self.usage.beyond(other.usage), *more)


def read_store(path: str, only: str | None = None) -> Iterator[TableRow | Problem]:
    """Yield the sessions that have requests, or one of them, each with its requests in their order."""
    with Database(path) as database:
        sessions = {name(values, "id"): values for values in database.records("sessions", _SESSION)}
        which, values = ("WHERE session_id = ?", (only,)) if only else ("", ())
        requests = database.records(_USAGE, _REQUEST, f"{which} ORDER BY session_id, id", *values)
        for session, group in groupby(requests, lambda request: name(request, "session_id")):
            has_log = files.is_file(os.path.join(os.path.dirname(path), FOLDER, session, "events.jsonl"))
            yield TableRow("sessions", {**sessions.get(session, {}), "has_log": has_log}, session, session)
            yield from (TableRow(_USAGE, request, session, session) for request in group)
        yield from database.problems()


def name_sessions(path: str) -> list[str]:
    """Return the sessions that have requests."""
    with Database(path) as database:
        rows = database.select(_USAGE, ("session_id",), "GROUP BY 1 ORDER BY 1")
        return [session for (session,) in rows if isinstance(session, str)]


def read_sums(path: str, session: str, until_ns: int | None) -> dict[str, Sum]:
    """Return model → what a session's requests up to a time have used; nothing where there is no store."""
    found: dict[str, Sum] = {}
    if not files.is_file(path):
        return found
    try:
        with Database(path) as database:
            for request in database.records(_USAGE, _REQUEST, "WHERE session_id = ?", session):
                counts, time = _tokens(request), _time(request["created_at"])
                if counts is not None and (time is None or until_ns is None or time <= until_ns):
                    one = Sum(counts.usage, 1, nano_usd(request["total_nano_aiu"]) or 0)
                    found[text(request, "model")] = found.get(text(request, "model"), Sum()).plus(one)
    except LogLocked:
        raise
    except LogNotReadable:
        return {}
    return found


def store_steps(row: TableRow, seen: dict[str, int]) -> Steps:
    """What a row means; `seen` counts requests with equal numbers."""
    values, session = row.values, row.session
    if row.table == "sessions":
        yield _session(values, session)
        return
    counts, cost_nano = _tokens(values), nano_usd(values["total_nano_aiu"])
    if counts is None or not (counts.usage or cost_nano or counts.issues):
        return
    agent = name(values, "agent_id")
    yield Session(thread=agent or _USAGE, agent=SUB_AGENT if agent else MAIN)  # no conversation: it has no words
    yield Response(
        time=_time(values["created_at"]),
        key=f"{session}:{values['id']}",
        family=family_of(session, counts.usage, seen),
        rank=int(CopyRank.SIDECHAIN if cost_nano is None else CopyRank.ORIGINAL),
        tokens=counts,
        model=name(values, "model") or name(values, "copilot_usage_model"),
        response_model=name(values, "copilot_usage_model"),
        cost_nano=cost_nano,
        latency_ms=read_duration(values["duration_ms"]),
        finish=name(values, "finish_reason"),
        kind="compaction" if values["initiator"] == "compaction" else "",
        final=True,
    )


def _session(values: Json, session: str) -> Session:
    """The session; one that has a log of its events has its times, turns and status from there."""
    has_log = values["has_log"]
    return Session(
        id=session,
        inherited=has_log,
        provider=PROVIDER,
        project=folder(values, "cwd"),
        branch=name(values, "branch"),
        title=text(values, "summary"),
        time=None if has_log else _time(values.get("created_at")),
    )


def family_of(session: str, usage: TokenUsage, seen: dict[str, int]) -> str:
    """Return the name that a request has in the events and in the store, which have no id in common.

    One of them may not have what was read from or written to a cache, which is a part of what was sent.
    """
    counts = f"{session}:{usage.total - usage.output}.{usage.output}"
    seen[counts] = seen.get(counts, 0) + 1
    return f"{counts}:{seen[counts]}"


def nano_usd(aiu: Any) -> int | None:
    """Return the nano-USD of a number of nano-AIU; None where there is none."""
    is_number = isinstance(aiu, int | float) and not isinstance(aiu, bool) and 0 <= aiu < 10**18
    return round(aiu / _AIU_OF_NANO_USD) if is_number else None


def _tokens(request: Json) -> Tokens | None:
    counts = {column: request[column] for column in _COUNTS if request[column] is not None}
    return tokens(
        counts, input="input_tokens", output="output_tokens", cache_read="cache_read_tokens",
        cache_write="cache_write_tokens", reasoning="reasoning_tokens", is_inclusive=True,
    )  # fmt: skip


def _time(value: Any) -> int | None:
    time = read_time(value)
    return read_time(f"{value.strip().replace(' ', 'T')}Z") if time is None and isinstance(value, str) else time
