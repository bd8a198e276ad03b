"""Payload ↔ JSON object. Reading never raises: a field of a wrong type becomes None, the others are read.

`payload(event)` picks the class by the event's type; `to_data(payload)` is the inverse (None is left out).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from sessionlog.events.envelope import OBJECTS, Event
from sessionlog.events.payloads import (
    PAYLOADS,
    Json,
    Payload,
    RoutingStickyState,
    RoutingUtilizationState,
)
from sessionlog.events.sanitise import str_of_int
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.events.usage import read_usage


def payload(event: Event) -> Payload | None:
    """Return the event's payload as its dataclass; None for an unknown type or data that is no object."""
    cls = PAYLOADS.get(event.type)
    if cls is None or not isinstance(event.data, OBJECTS):
        return None
    return read_payload(cls, event.data)


def read_payload(cls: type[Payload], data: Mapping[str, Any]) -> Payload:
    """Read one object into `cls`; wrong types become None, unknown fields go to `extra`."""
    readers = _readers(cls)
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in data.items():
        reader = readers.get(key)
        if reader is None:
            extra[key] = value
        elif value is not None:
            known[key] = reader(value)
    return cls(**known, extra=extra)


def read_fields(cls: type[Payload], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of one object that `cls` knows, by name, as `read_payload` reads them.

    Making the dataclass takes longer than reading its fields; this is for events that come by the hundred thousand.
    """
    readers = _readers(cls)
    return {key: readers[key](value) for key, value in data.items() if value is not None and key in readers}


def to_data(value: Payload) -> dict[str, Any]:
    """Return the payload as the JSON object to log: unknown fields last, None left out."""
    out: dict[str, Any] = {}
    for name in (one.name for one in fields(value)):
        part = getattr(value, name)
        if name == "extra" or part is None:
            continue
        if isinstance(part, TokenUsage):
            out[name] = part.to_dict()
        elif isinstance(part, Payload):
            out[name] = to_data(part)
        else:
            out[name] = list(part) if isinstance(part, tuple) else part
    return {**out, **value.extra}


def _readers(cls: type[Payload]) -> Mapping[str, Callable[[Any], Any]]:
    readers = _BY_CLASS.get(cls)
    if readers is None:
        readers = {one.name: _READERS[str(one.type)] for one in fields(cls) if one.name != "extra"}
        _BY_CLASS[cls] = readers
    return readers


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str_of_int(value) if isinstance(value, int) else str(value)


def _integer(value: Any) -> int | None:
    count, issue = read_count(value)
    if issue is None:
        return count
    return value if type(value) is int else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else None
    try:
        number = float(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e300 else None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, OBJECTS) else None


def _items(value: Any) -> tuple[Json, ...] | None:
    return tuple(value) if isinstance(value, list | tuple) else None


def _words(value: Any) -> tuple[str, ...] | None:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list | tuple) else None


def _usage(value: Any) -> TokenUsage | None:
    return read_usage(value)[0] if isinstance(value, OBJECTS) else None


def _nested(cls: type[Payload]) -> Callable[[Any], Payload | None]:
    return lambda value: read_payload(cls, value) if isinstance(value, Mapping) else None


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "str | None": _text,
    "int | None": _integer,
    "float | None": _number,
    "bool | None": _truth,
    "Json": lambda value: value,
    "Mapping[str, Any] | None": _mapping,
    "tuple[Json, ...] | None": _items,
    "tuple[str, ...] | None": _words,
    "TokenUsage | None": _usage,
    "RoutingStickyState | None": _nested(RoutingStickyState),
    "RoutingUtilizationState | None": _nested(RoutingUtilizationState),
}

_BY_CLASS: dict[type[Payload], Mapping[str, Callable[[Any], Any]]] = {}
