"""What a function takes, as JSON schema: read from its signature and type hints, never guessed.

A type that JSON has no word for is any value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

_WORDS = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_PLAIN = {kind.__name__: kind for kind in (str, bool, int, float, list, dict)}
_LISTS = (list, tuple, set, frozenset, Sequence)
_OBJECTS = (dict, Mapping)
_MANY = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the schema of a function's arguments by name; `*args` cannot be named, and `**kwargs` take any name."""
    hints = hints_of(function)
    properties, required, takes_more = {}, [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in _MANY:
            takes_more = takes_more or parameter.kind is inspect.Parameter.VAR_KEYWORD
            continue
        properties[name] = _schema(hints.get(name, Any))
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        elif parameter.default is None or isinstance(parameter.default, str | bool | int | float):
            properties[name]["default"] = parameter.default
    return {
        "type": "object", "properties": properties, "required": required, "additionalProperties": takes_more,
    }  # fmt: skip


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's arguments; where one names what cannot be found, only the plain ones."""
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - a hint is any expression, and evaluating it raises anything
        hints = getattr(function, "__annotations__", {})
        plain = {name: _PLAIN.get(hint, hint) for name, hint in hints.items()}
        return {name: hint for name, hint in plain.items() if not isinstance(hint, str)}


def enum_of(hint: Any) -> type[Enum] | None:
    """Return the Enum that a hint asks for, also as one of several types."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if get_origin(hint) in {Annotated, Union, UnionType}:
        found = (enum_of(part) for part in get_args(hint))
        return next((part for part in found if part is not None), None)
    return None


def _schema(hint: Any) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint in _WORDS:
        return {"type": _WORDS[hint]}
    if hint is None:
        return {"type": "null"}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice([member.value for member in hint])
    if origin is Annotated:
        said = next((part for part in parts[1:] if isinstance(part, str)), None)
        return _schema(parts[0]) | ({"description": said} if said else {})
    if origin is Literal:
        return _choice(list(parts))
    if origin in {Union, UnionType}:
        return {"anyOf": [_schema(part) for part in parts]}
    if _is_one_of(origin or hint, _LISTS):
        return {"type": "array"} | ({"items": _schema(parts[0])} if parts else {})
    if _is_one_of(origin or hint, _OBJECTS):
        more = {"additionalProperties": _schema(parts[1])} if len(parts) == 2 and parts[1] is not Any else {}
        return {"type": "object"} | more
    return {}


def _is_one_of(kind: Any, kinds: tuple[Any, ...]) -> bool:
    """It is one of them, also by its name in collections.abc."""
    return any(kind is one for one in kinds)


def _choice(values: list[Any]) -> dict[str, Any]:
    """One of some values, with their type where they share one."""
    words = {_WORDS.get(type(value)) for value in values}
    word = words.pop() if len(words) == 1 else None
    return ({"type": word} if word else {}) | {"enum": values}
