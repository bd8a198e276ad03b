"""The rate limits that Codex logs with its counters: how full each window is, and when it starts anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from sessionlog.events.times import SECOND
from sessionlog.sources.codex.thread import read_moment
from sessionlog.sources.record import Limit, read_name

_WINDOWS = ("primary", "secondary")
_USUAL = "codex"


def read_limits(limits: Mapping[str, Any], time_ns: int) -> Iterator[Limit]:
    """Yield the limits of a `rate_limits` object; those of another limit than the usual one bear its id."""
    plan = read_name(limits.get("plan_type")) or ""
    id_ = read_name(limits.get("limit_id")) or _USUAL
    for window in _WINDOWS:
        value = limits.get(window)
        if not isinstance(value, Mapping):
            continue
        used = _number(value.get("used_percent"))
        if used is not None:
            yield Limit(
                time_ns=time_ns,
                name=window if id_ == _USUAL else f"{id_}/{window}",
                used_percent=used,
                window_minutes=_number(value.get("window_minutes")),
                resets_ns=_resets(value, time_ns),
                plan=plan,
            )


def _resets(window: Mapping[str, Any], time_ns: int) -> int | None:
    """When a window ends: at a moment, or some seconds after the row (before November 2025)."""
    at = read_moment(window.get("resets_at"))
    if at is not None:
        return at
    seconds = _number(window.get("resets_in_seconds"))
    return None if seconds is None else min(time_ns + int(seconds * SECOND), 2**63 - 1)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**12:
        return None
    return float(value) if isfinite(value) else None
