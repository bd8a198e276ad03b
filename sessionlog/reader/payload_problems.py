"""What in an event's data cannot be used, one sentence each: reports skip it, and `check` shows it.

Both use these functions, so that `check` shows everything that a report skips.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.events.envelope import OBJECTS, Event
from sessionlog.events.money import read_usd
from sessionlog.events.near_names import misspelt
from sessionlog.events.usage import read_usage

_USAGE_KEYS: Mapping[str, str] = {"llm.response": "usage", "session.end": "tokens"}


def number_problems(event: Event) -> tuple[str, ...]:
    """Name the token counts and costs of an llm.response or session.end that cannot be used."""
    key = _USAGE_KEYS.get(event.type)
    if key is None or not isinstance(event.data, OBJECTS):
        return ()
    _, issues = read_usage(event.data.get(key))
    _, issue = read_usd(event.data.get("cost_usd"))
    if not issues and not issue:
        return ()
    return tuple(f"{event.type} seq {event.seq}: {text}" for text in (*issues, *([issue] if issue else [])))


def field_problems(event: Event) -> tuple[str, ...]:
    """Name the fields that are probably misspelt: nothing reads them."""
    if not isinstance(event.data, OBJECTS):
        return ()
    found = misspelt(event.type, event.data)
    return tuple(f"{event.type} seq {event.seq}: {text}" for text in found) if found else ()


def override_problem(event: Event) -> str | None:
    """Return why an override or rejected_override cannot be read; None when it can.

    A missing field reads as empty, a wrong detail as unknown.
    """
    problem = _pin_problem(event.data)
    return None if problem is None else f"{event.type} (seq {event.seq}) cannot be read: {problem}"


def _pin_problem(data: Any) -> str | None:
    if not isinstance(data, Mapping):
        return "its data is not an object"
    axes = data.get("axes_overridden")
    if axes is not None and not (isinstance(axes, list | tuple) and all(isinstance(axis, str) for axis in axes)):
        return "axes_overridden is not a list of names"
    matches = data.get("match_per_axis")
    return None if matches is None or isinstance(matches, Mapping) else "match_per_axis is not an object"
