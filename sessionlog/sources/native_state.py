"""Going on with a native log: which records stand, and what a scan has to know of them, as JSON.

What was given stands when nothing that may come changes it. Open is only the last response, whose active time grows
until the next one, and what the last end adds to it, for a second end would replace it: they are given again. Where an
end would reach responses that stand, by a cost of its own, there is no going on from the end, and none over it.
Neither is there in a log of the Go original's, in which the last end speaks of all of it and the dialect shows late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.gather import first_words
from sessionlog.sources.native_records import NOTHING, Built, Given, Response, RunEnd
from sessionlog.sources.record import read_name

_START = ("provider", "resolved_harness", "requested_harness", "selected_route", "resolved_model", "model")
_END = ("status", "selected_route", "model")
_COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h")
_RESPONSE = tuple(name for name in Response.__slots__ if name != "usage")
_GIVEN = tuple(name for name in Given.__slots__ if name != "used")


def what_stands(built: Built, responses: Sequence[Response], ends: Sequence[RunEnd], before: Given) -> Given | None:
    """Return what stands of the records of a log that is ours; None where what comes may change more than is open.

    Its `calls` and `ran_ms` are those of `before`.
    """
    end = ends[-1] if ends else None
    is_open = end is not None and end.until == len(responses)
    first = 0 if end is None else end.first if is_open else end.until
    stands = before.records or len(built.records) > built.open
    count = max(0, len(responses) - first - 1) + (before.responses if first == 0 else 0)
    if (stands and not built.costed) or (count and end is not None and is_open and end.cost_nano is not None):
        return None
    return Given(
        records=stands,
        open=built.open,
        responses=count,
        used=built.used.beyond(responses[-1].usage) if responses else NOTHING,
        model=built.model,
        calls=before.calls,
        ran_ms=before.ran_ms,
    )


def is_json(state: Mapping[str, Any]) -> bool:
    """Whether a state can be stored: what is in a log's metadata may be of a kind, or of a depth, that JSON has not."""
    try:
        json.dumps(state, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True


def keep_start(start: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of a session.start, as JSON: another one with the same answers."""
    kept: dict[str, Any] = {name: read_name(start.get(name)) for name in _START}
    return kept | {name: start[name] for name in ("v", "work_dir", "metadata", "parent") if name in start}


def keep_end(end: RunEnd, *, is_open: bool) -> dict[str, Any]:
    """Return what is asked of the last session.end; of one that is closed no totals, for its records stand."""
    data = end.data or {}
    kept: dict[str, Any] = {name: read_name(data.get(name)) for name in _END}
    kept |= {"error": first_words(data.get("error")), "duration_ms": data.get("duration_ms")}
    return {
        "data": kept | ({"metadata": data["metadata"]} if "metadata" in data else {}),
        "time_ns": end.time_ns,
        "total": _keep_usage(end.total if is_open else NOTHING),
        "cost_nano": end.cost_nano if is_open else None,
        "is_open": is_open,
    }


def end_of(kept: Mapping[str, Any] | None, responses: Sequence[Response]) -> list[RunEnd]:
    """Return the end that `keep_end` kept, if there was one, beside the responses that are open."""
    if kept is None:
        return []
    until = len(responses) if kept["is_open"] else 0
    names = ("data", "time_ns", "cost_nano")
    return [RunEnd(**{name: kept[name] for name in names}, total=_usage_of(kept["total"]), first=0, until=until)]


def keep_response(response: Response) -> dict[str, Any]:
    """Return a response as JSON."""
    return {name: getattr(response, name) for name in _RESPONSE} | {"usage": _keep_usage(response.usage)}


def response_of(kept: Mapping[str, Any]) -> Response:
    """Return the response that `keep_response` kept."""
    return Response(**{name: kept[name] for name in _RESPONSE}, usage=_usage_of(kept["usage"]))


def keep_given(given: Given) -> dict[str, Any]:
    """Return what stands as JSON."""
    return {name: getattr(given, name) for name in _GIVEN} | {"used": _keep_usage(given.used)}


def given_of(kept: Mapping[str, Any]) -> Given:
    """Return what `keep_given` kept."""
    return Given(**{name: kept[name] for name in _GIVEN}, used=_usage_of(kept["used"]))


def _keep_usage(usage: TokenUsage) -> list[int]:
    return [getattr(usage, name) for name in _COUNTS]


def _usage_of(kept: Sequence[int]) -> TokenUsage:
    return TokenUsage(**dict(zip(_COUNTS, kept, strict=True)))
