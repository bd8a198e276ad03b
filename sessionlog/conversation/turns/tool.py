"""Tool: a function that a model may call, and that stays callable as before.

    @tool
    def read_file(path: str, limit: int = 100) -> str:
        "Read the first lines of a file."

An exception in a tool becomes the call's result, so that the model can correct its call. Only exceptions that end the
program pass through.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, overload

import msgspec

from sessionlog.logger.tool_timer import called_function
from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import Content, ContentPart, Message, ToolRequest

_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_PLAIN = {kind.__name__: kind for kind in (str, bool, int, float, list, dict)}
_LISTS = (list, tuple, set, frozenset, Sequence)
_OBJECTS = (dict, Mapping)
_MANY = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON schema of a function's arguments; `*args` is ignored, `**kwargs` allows any name.

    A type that neither this module nor msgspec or pydantic knows is any value.
    """
    hints = hints_of(function)
    properties, required, takes_more = {}, [], False
    definitions: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in _MANY:
            takes_more = takes_more or parameter.kind is inspect.Parameter.VAR_KEYWORD
            continue
        properties[name] = _schema(hints.get(name, Any), definitions)
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        elif _is_plain(parameter.default):
            properties[name]["default"] = parameter.default
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": takes_more}
    return schema | ({"$defs": definitions} if definitions else {})


def _is_plain(value: Any) -> bool:
    """Whether a value is written as JSON as it is: NaN is not."""
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's arguments; if one cannot be resolved, only the builtin ones."""
    function = called_function(function)
    try:
        return get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - a hint is any expression, and evaluating it raises anything
        hints = getattr(function, "__annotations__", {})
        plain = {name: _PLAIN.get(hint, hint) for name, hint in hints.items()}
        return {name: hint for name, hint in plain.items() if not isinstance(hint, str)}


def enum_of(hint: Any) -> type[Enum] | None:
    """Return the Enum in a hint, which may be that of a list or one of several types; None without one."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    found = (enum_of(part) for part in get_args(hint))
    return next((part for part in found if part is not None), None)


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    if hint is None:
        return {"type": "null"}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choice([member.value for member in hint])
    if origin is Annotated:
        note = next((part for part in parts[1:] if isinstance(part, str)), None)
        return _schema(parts[0], definitions) | ({"description": note} if note else {})
    if origin is Literal:
        return _choice(list(parts))
    if origin in {Union, UnionType}:
        return {"anyOf": [_schema(part, definitions) for part in parts]}
    if _is_list(hint):
        return {"type": "array"} | ({"items": _schema(parts[0], definitions)} if parts else {})
    if _is_one_of(origin or hint, _OBJECTS):
        is_typed = len(parts) == 2 and parts[1] is not Any
        return {"type": "object"} | ({"additionalProperties": _schema(parts[1], definitions)} if is_typed else {})
    return _known_schema(hint, definitions)


def _known_schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type of msgspec or pydantic, and add what it refers to; {} for others."""

    def of_model(kind: Any) -> dict[str, Any]:
        if not hasattr(kind, "model_json_schema"):
            raise NotImplementedError
        made: dict[str, Any] = kind.model_json_schema(ref_template=f"#/$defs/{kind.__name__}_{{model}}")
        own = made.pop("$defs", {})
        definitions.update({f"{kind.__name__}_{name}": part for name, part in own.items()})
        return made

    mark = ""
    while True:
        try:
            (schema,), parts = msgspec.json.schema_components(
                [hint], schema_hook=of_model, ref_template=f"#/$defs/{{name}}{mark}"
            )
        except Exception:  # noqa: BLE001 - a hint is any value, and its class is the host's code
            return {}
        named = {f"{name}{mark}": part for name, part in parts.items()}
        if all(definitions.get(name, part) == part for name, part in named.items()):
            definitions.update(named)
            return schema
        mark += "_"  # another type has the same name


def _is_list(hint: Any) -> bool:
    """Whether all items of a type have the same type."""
    parts = get_args(hint)
    return _is_one_of(get_origin(hint) or hint, _LISTS) and (len(parts) < 2 or parts[1] is ...)


def _is_one_of(kind: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether a type is one of `kinds`."""
    return any(kind is one for one in kinds)


def _choice(values: list[Any]) -> dict[str, Any]:
    """The schema of an enumeration, with the type if all values share one."""
    words = {_JSON_TYPES.get(type(value)) for value in values}
    word = words.pop() if len(words) == 1 else None
    return ({"type": word} if word else {}) | {"enum": values}


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    Attributes:
        name: The name for the model.
        description: The description for the model.
        parameters: JSON schema of the arguments.
        function: The function; calling the tool calls it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any] = field(repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        """Whether the result has to be awaited."""
        return inspect.iscoroutinefunction(called_function(self.function))

    def run(self, arguments: Any) -> Any:
        """Call the function with a model's arguments; return its result, an awaitable if it is async.

        Raises:
            TypeError: The arguments do not fit the function.
        """
        if not isinstance(arguments, Mapping):
            raise TypeError(f"the arguments are no JSON object: {str(arguments)[:200]!r}")
        hints = hints_of(self.function)
        own = deepcopy(dict(arguments))  # a tool that changes its arguments must not change the history
        given = {name: _converted(name, hints.get(name, Any), value) for name, value in own.items()}
        signature = inspect.signature(self.function)
        try:
            positional = _positional(signature, given)
            bound = signature.bind(*positional, **given)
        except TypeError as error:
            names = ", ".join(self.parameters["properties"]) or "no arguments"
            raise TypeError(f"{self.name}: {error}; it takes {names}") from None
        return self.function(*bound.args, **bound.kwargs)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str | None = None, description: str | None = None) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, description: str | None = None
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool: a model gets its name, the first paragraph of its docstring, and its signature.

    Args:
        function: The function; without it, a decorator is returned.
        name: Replaces the function's name.
        description: Replaces the docstring's first paragraph.
    """

    def make(function: Callable[..., Any]) -> Tool:
        if isinstance(function, Tool):
            return function
        if not callable(function):
            raise TypeError(f"a tool is a function, not {type(function).__name__}")
        summary = inspect.cleandoc(getattr(function, "__doc__", None) or "").partition("\n\n")[0]
        called = name or str(getattr(function, "__name__", type(function).__name__))
        return Tool(called, description or " ".join(summary.split()), schema_of(function), function)

    return make if function is None else make(function)


def tools_of(tools: Iterable[Callable[..., Any]] | Any) -> tuple[Tool, ...]:
    """Make every function a tool.

    Raises:
        TypeError: `tools` is not a list of functions.
        ValueError: Two of them have the same name.
    """
    if not isinstance(tools, Iterable) or isinstance(tools, str | bytes):
        raise TypeError(f"tools is {type(tools).__name__}; it is a list of functions: tools=[my_function]")
    made = tuple(tool(one) for one in tools)
    names = [one.name for one in made]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two tools are called {twice[0]!r}; give one another name with @tool(name=...)")
    return made


def call_tool(tools: Mapping[str, Tool], request: ToolRequest) -> Any:
    """Run the requested tool; return its result, an awaitable if it is async.

    Raises:
        LookupError: There is no tool with that name; the message lists the others.
    """
    found = tools.get(request.name)
    if found is None:
        raise LookupError(f"there is no tool {request.name!r}; there are {', '.join(sorted(tools)) or 'none'}")
    return found.run(request.arguments)


def result_message(request: ToolRequest, result: Any) -> Message:
    """Return the tool message of a result: a text or content parts unchanged, anything else as JSON."""
    return Message.tool(_content(result), request.id, name=request.name)


def error_message(request: ToolRequest, error: str) -> Message:
    """Return the tool message of a failed call."""
    return Message.tool(f"ERROR: {error}", request.id, name=request.name)


def _content(result: Any) -> Content:
    if isinstance(result, str):
        return result
    if isinstance(result, ContentPart):
        return (result,)
    if isinstance(result, list | tuple) and any(isinstance(part, ContentPart) for part in result):
        return tuple(part if isinstance(part, ContentPart) else ContentPart.of_text(str(part)) for part in result)
    return json_text(result)


def _positional(signature: inspect.Signature, given: dict[str, Any]) -> list[Any]:
    """Remove from `given` the values of parameters that have no keyword, and return them up to the last one given."""
    names = [name for name, one in signature.parameters.items() if one.kind is inspect.Parameter.POSITIONAL_ONLY]
    while names and names[-1] not in given:
        names.pop()
    for name in names:
        if name not in given and signature.parameters[name].default is inspect.Parameter.empty:
            raise TypeError(f"missing a required argument: {name!r}")
    return [given.pop(name, signature.parameters[name].default) for name in names]


def _converted(name: str, hint: Any, value: Any) -> Any:
    """Convert an argument to its type; None, and a value of a type that only the function knows, are left to it."""
    if value is None:
        return None
    try:
        return msgspec.convert(value, hint, strict=False, dec_hook=_model)
    except msgspec.ValidationError as error:
        members = enum_of(hint)
        known = f"; it is one of {_values(members)}" if members is not None and "enum value" in str(error) else ""
        raise TypeError(f"{name}: {error}{known}") from None
    except Exception:  # noqa: BLE001 - as for its schema
        return _member(name, hint, value)


def _model(kind: Any, value: Any) -> Any:
    """Return the pydantic model of a value."""
    if not hasattr(kind, "model_validate"):
        raise NotImplementedError
    return kind.model_validate(value)


def _member(name: str, hint: Any, value: Any) -> Any:
    """Convert to members of an Enum that msgspec refuses: of texts and numbers, or one beside a text."""
    if get_origin(hint) is Annotated:
        return _member(name, get_args(hint)[0], value)
    kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    for kind, parts in ((kind, get_args(kind)) for kind in kinds):
        if isinstance(value, list) and _is_list(kind) and parts:
            return [_member(name, parts[0], one) for one in value]
        if isinstance(value, dict) and _is_one_of(get_origin(kind), _OBJECTS):
            return {key: _member(name, parts[1], one) for key, one in value.items()}
    members = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)), None)
    if members is None or value is None:
        return value
    try:
        return members(value)
    except ValueError:
        if type(value) in kinds:
            return value
        raise TypeError(f"{name}: {value!r} is none of {_values(members)}") from None


def _values(members: type[Enum]) -> str:
    return ", ".join(repr(member.value) for member in members)
