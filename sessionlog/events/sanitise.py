"""A bounded copy, in JSON types, of any Python object tree: the fallback when orjson rejects a payload.

Nothing is dropped silently: other objects become their `repr` (guarded), what is too deep, too long or too many is
marked in the copy, keys that become equal are numbered, and numbers that JSON lacks (NaN, infinities) are their names.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from typing import Any

import orjson

MAX_DEPTH = 64
MAX_ITEMS = 100_000
_MAX_SPELLED = 10_000
_INT64 = range(-(2**63), 2**64)
_FLOAT_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
NoteNumbers = Callable[[tuple[str, ...]], object]
"""Called once for an event in which numbers that JSON lacks became texts, with their names."""


def distinct_keys(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object in which equal keys are numbered: the second `a` is `a (2)`."""
    out: dict[str, Any] = {}
    highest: dict[str, int] = {}
    for key, value in items:
        name = key
        while name in out:
            highest[key] = number = highest.get(key, 1) + 1
            name = f"{key} ({number})"
        out[name] = value
    return out


def cut_strings(value: Any, longest: int) -> Any:
    """Copy a sanitised value with every string cut to `longest` characters and the cut marked in it."""
    if isinstance(value, str):
        return _cut(value, longest)
    if isinstance(value, dict):
        return distinct_keys((_cut(key, longest), cut_strings(item, longest)) for key, item in value.items())
    if isinstance(value, list):
        return [cut_strings(item, longest) for item in value]
    return value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…[{len(text) - longest} characters cut]"


class _Budget:
    """How many items may still be copied (a cyclic or generated tree must end), and the numbers that became names."""

    __slots__ = ("left", "names")

    def __init__(self) -> None:
        self.left = MAX_ITEMS
        self.names: set[str] = set()


def sanitise(value: Any, note: NoteNumbers | None = None) -> Any:
    """Copy `value` into JSON types: depth ≤ 64, big integers as text, unpaired surrogates replaced, keys as text."""
    budget = _Budget()
    copied = _copy(value, MAX_DEPTH, budget)
    if budget.names and note is not None:
        note(tuple(sorted(budget.names)))
    return copied


def name_numbers(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Copy a value that orjson can write, with the names of the numbers for which it would write null; return both."""
    names: set[str] = set()
    return _with_names(value, names), tuple(sorted(names))


def _with_names(value: Any, names: set[str]) -> Any:
    if isinstance(value, float):
        return _number(value, names)
    if isinstance(value, dict):
        return {key: _with_names(item, names) for key, item in dict.items(value)}
    if isinstance(value, list | tuple):
        return [_with_names(item, names) for item in value]
    if hasattr(type(value), "__dataclass_fields__"):
        public = (name for name in type(value).__dataclass_fields__ if not name.startswith("_"))  # as orjson
        return {name: _with_names(getattr(value, name), names) for name in public if hasattr(value, name)}
    return value


def _number(value: float, names: set[str]) -> float | str:
    if math.isfinite(value):
        return value
    name = _FLOAT_NAMES[float.__repr__(value)]
    names.add(name)
    return name


def _copy(value: Any, depth: int, budget: _Budget) -> Any:
    budget.left -= 1
    if budget.left < 0:
        return "[too many items]"
    try:
        return _converted(value, depth, budget)
    except Exception as error:  # noqa: BLE001 - a hostile object must not break the agent that logs it
        return f"[unreadable {type(value).__name__}: {type(error).__name__}]"


def _converted(value: Any, depth: int, budget: _Budget) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is float:
        return _number(value, budget.names)
    if kind is int:
        return value if value in _INT64 else str_of_int(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "replace")
    if depth == 0:
        return "[too deep]"
    if isinstance(value, Mapping):
        return distinct_keys((_key(k), _copy(v, depth - 1, budget)) for k, v in _bounded(value.items(), budget))
    if isinstance(value, list | tuple | AbstractSet):
        return [_copy(item, depth - 1, budget) for item in _bounded(value, budget)]
    if hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields  # takes 7 ms to import

        return {f.name: _copy(getattr(value, f.name, None), depth - 1, budget) for f in fields(value)}
    return _leaf(value, depth, budget)


def _leaf(value: Any, depth: int, budget: _Budget) -> Any:
    """Copy a value without parts: numbers of other types as numbers; dates, UUIDs and enums as orjson writes them."""
    if isinstance(value, Integral):
        return _copy(int(value), depth, budget)
    if isinstance(value, Real):
        return _number(float(value), budget.names)
    decimal = sys.modules.get("decimal")  # whoever has made one has imported it
    if decimal is not None and isinstance(value, decimal.Decimal):
        return str(value)
    try:
        json = orjson.dumps(value)
    except (TypeError, ValueError):
        return _spelled(value)
    try:
        plain = orjson.loads(json)
    except ValueError:  # an orjson.Fragment of the caller's making
        return f"[not JSON] {json.decode('utf-8', 'replace')}"
    return _copy(plain, depth - 1, budget)


def _bounded(items: Any, budget: _Budget) -> Any:
    for item in items:
        if budget.left < 0:
            return
        yield item


def _key(key: Any) -> str:
    return _text(key) if isinstance(key, str) else _spelled(key)


def _text(value: str) -> str:
    return str.encode(value, "utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def str_of_int(value: int) -> str:
    """Return an integer as decimal text; as hexadecimal if it is too long for Python to convert."""
    try:
        return str(value)
    except ValueError:
        return hex(value)


def _spelled(value: Any) -> str:
    try:
        return _cut(_text(str(value) if isinstance(value, int | float) else repr(value)), _MAX_SPELLED)
    except Exception as error:  # noqa: BLE001 - repr is the caller's code and may do anything
        return f"[unprintable {type(value).__name__}: {type(error).__name__}]"
