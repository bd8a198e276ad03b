"""Typical: what a finished session of a kind of task usually takes, so that one can tell how many more are possible.

The median of the newest sessions that came to an end, by the `task` of their metadata; sessions without one are a kind
of their own. The median, because one session that ran wild must not make all others look dear. Nothing is imported for
it but where a session names its task (see `status.sums`).
"""

from __future__ import annotations

from sessionlog.analytics.status.json_reader import read_json

TYPE_CHECKING = False  # typing costs a start 3 ms
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.status.sums import Query

NEWEST = 200
"""Sessions looked at: what was usual a year ago says little."""

_LONGEST = 200

_SESSIONS = f"""
SELECT s.metadata, SUM(r.requests), SUM(r.input) + SUM(r.output) + SUM(r.cache_read) + SUM(r.cache_write),
    SUM(r.cost_nano), SUM(r.estimate_nano), MAX(r.unknown)
FROM (SELECT id, metadata FROM sessions WHERE counted AND end_status IS NOT NULL AND end_status != 'running'
      ORDER BY last_ns DESC, id DESC LIMIT {NEWEST}) s JOIN cells r ON r.session_id = s.id
GROUP BY s.id
"""  # noqa: S608 - a number of ours


def typical_sessions(query: Query) -> list[dict[str, Any]]:
    """Return medians by task: `task`, `sessions`, `requests`, `totalTokens` and `cost` (USD), the commonest task first.

    Cost is the median of those whose whole cost is known, None where there are none.
    """
    groups: dict[str | None, list[tuple[int, int, float | None]]] = {}
    known: dict[str, str | None] = {}
    for metadata, requests, tokens, recorded, estimated, partial in query(_SESSIONS, {}):
        if metadata not in known:
            known[metadata] = task_of(metadata)
        free = recorded is None and estimated is None
        cost = None if partial or free else ((recorded or 0) + (estimated or 0)) / 1_000_000_000
        groups.setdefault(known[metadata], []).append((int(requests), int(tokens), cost))
    return [
        {
            "task": task,
            "sessions": len(group),
            "requests": median([requests for requests, _, _ in group]),
            "totalTokens": median([tokens for _, tokens, _ in group]),
            "cost": median([cost for _, _, cost in group if cost is not None]),
        }
        for task, group in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0] is None, item[0] or ""))
    ]


def task_of(metadata: str) -> str | None:
    """Return the `task` that a session's metadata names."""
    if '"task"' not in metadata:
        return None
    found = read_json(metadata)
    value = found.get("task") if isinstance(found, dict) else None
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value[:_LONGEST]
    import json  # noqa: PLC0415 - 8 ms, which tasks that are texts save

    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:_LONGEST]


def median(values: list[Any]) -> Any:
    """Return the middle value, or the mean of the two in the middle; None of nothing."""
    if not values:
        return None
    ordered, half = sorted(values), len(values) // 2
    if len(values) % 2:
        return ordered[half]
    low, high = ordered[half - 1], ordered[half]
    middle = (low + high) / 2
    return int(middle) if isinstance(low, int) and isinstance(high, int) and (low + high) % 2 == 0 else middle
