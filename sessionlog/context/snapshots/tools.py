"""Read tool definitions into one type, from tuples, the JSON of providers and MCP, and live toolsets."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Json = Any
_ToolAndDefinition = tuple["Tool", Any]  # the live definition is the argument of filters

_SCHEMAS = ("parameters_json_schema", "input_schema", "inputSchema", "parameters", "parameters_schema", "json_schema")
_WRAPPED_DEPTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model may call.

    Attributes:
        name: Its name for the model.
        description: Its description for the model.
        schema: The JSON schema of its arguments.
        source_type: function, mcp, codemode, runtime or unknown.
        is_async: Its function is a coroutine.
        requires_approval: A person must approve each call.
        source_code: The source code of its function, if available.
    """

    name: str
    description: str | None = None
    schema: Json = field(default_factory=dict)
    source_type: str = "unknown"
    is_async: bool = False
    requires_approval: bool = False
    source_code: str | None = None

    @property
    def definition(self) -> dict[str, Json]:
        """The definition as it is sent to the model."""
        return {"name": self.name, "description": self.description or "", "input_schema": self.schema}


def read_tools(values: Iterable[object]) -> tuple[Tool, ...]:
    """Read definitions of any kind; those without a name are left out."""
    return tuple(tool for value in values if (tool := read_tool(value)) is not None)


def read_tool(value: object) -> Tool | None:
    """Read `(name, description, schema)`, a provider's or MCP's JSON, or an object with such attributes."""
    if isinstance(value, Tool):
        return value
    if isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], str):
        return Tool(name=value[0], description=value[1], schema={} if value[2] is None else value[2])
    inner = _get(value, "function") if isinstance(value, Mapping) else _get(value, "tool_def", "definition")
    if inner is None or isinstance(inner, str):
        inner = value
    name = _get(inner, "name") or _get(inner, "type")
    if not isinstance(name, str) or not name:
        return None
    description = _get(inner, "description")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else None,
        schema=_schema(inner),
        source_type="mcp" if isinstance(_get(inner, "inputSchema"), Mapping) else "unknown",
        requires_approval=bool(_get(value, "requires_approval", "requires_confirmation", "human_in_the_loop")),
    )


def tools_of_agent(agent: object) -> tuple[Tool, ...]:
    """Return the tools of a live agent that are known without a request to a server."""
    seen: dict[str, Tool] = {}
    for toolset in _items(getattr(agent, "toolsets", None)):
        for tool in tools_of_toolset(toolset):
            seen.setdefault(tool.name, tool)
    return tuple(seen.values())


def tools_of_toolset(toolset: object) -> Iterator[Tool]:
    """Yield the tools of a toolset, or of the toolsets that it wraps, as they are sent to the model."""
    return (tool for tool, _ in _find_tools(toolset, _WRAPPED_DEPTH))


def _find_tools(toolset: object, depth: int) -> Iterator[_ToolAndDefinition]:
    held = next((h for name in ("tools", "_tools", "_cached_tools") if _items(h := getattr(toolset, name, None))), None)
    if held is not None:
        for value in _items(held):
            tool = read_tool(value)
            if tool is not None:
                yield _add_function(value, tool), _get(value, "tool_def") or tool
        return
    registry = getattr(toolset, "registry", None)
    list_tools = getattr(registry, "list_tools", None)
    if callable(list_tools) and not inspect.iscoroutinefunction(list_tools):
        yield from ((replace(tool, source_type="codemode"), tool) for tool in read_tools(_items(list_tools())))
    elif depth:
        insides = [getattr(toolset, "wrapped", None), *_items(getattr(toolset, "toolsets", None))]
        inside = [found for one in insides if one is not None for found in _find_tools(one, depth - 1)]
        yield from _apply_wrapper(toolset, inside)


def _apply_wrapper(toolset: object, inside: list[_ToolAndDefinition]) -> list[_ToolAndDefinition]:
    """Apply what a wrapper does to its tools: rename, filter, change descriptions, require approval."""
    prefix, names = getattr(toolset, "prefix", None), getattr(toolset, "name_map", None)
    if isinstance(prefix, str) and prefix:
        inside = [_rename(found, f"{prefix}_{found[0].name}") for found in inside]
    if isinstance(names, Mapping):
        new = {old: name for name, old in names.items()}
        inside = [_rename(found, new.get(found[0].name, found[0].name)) for found in inside]
    keeps, prepare = getattr(toolset, "filter_func", None), getattr(toolset, "prepare_func", None)
    if callable(keeps):  # a filter that needs the run's context keeps all
        inside = [found for found in inside if _call_user_function(keeps, found[1]) is not False]
    if callable(prepare):
        inside = _apply_prepare(prepare, inside)
    if hasattr(toolset, "approval_required_func"):
        inside = [(replace(tool, requires_approval=True), definition) for tool, definition in inside]
    return inside


def _rename(found: _ToolAndDefinition, name: str) -> _ToolAndDefinition:
    tool, definition = found
    is_value = dataclasses.is_dataclass(definition) and not isinstance(definition, type)
    return replace(tool, name=name), dataclasses.replace(definition, name=name) if is_value else definition


def _apply_prepare(prepare: Callable[..., object], inside: list[_ToolAndDefinition]) -> list[_ToolAndDefinition]:
    made = _call_user_function(prepare, [definition for _, definition in inside])
    if not isinstance(made, list | tuple):
        return inside
    tools = {tool.name: tool for tool, _ in inside}
    return [
        (replace(tools[read.name], description=read.description, schema=read.schema), definition)
        for definition in made
        if (read := read_tool(definition)) is not None and read.name in tools
    ]


def _call_user_function(function: Callable[..., object], about: object) -> object:
    """Call a filter or prepare function without a run's context; None if it needs one, or must be awaited."""
    if inspect.iscoroutinefunction(function):
        return None
    try:
        answer = function(None, about)
    except Exception:  # noqa: BLE001 - a use of the missing context may raise anything
        return None
    if inspect.iscoroutine(answer):
        answer.close()
    if inspect.isawaitable(answer):
        return None
    return answer if isinstance(about, list) else bool(answer)


async def list_available_tools(toolsets: object) -> list[tuple[str, str | None, dict[str, Any]]]:
    """List the tools of an agent or its toolsets as `(name, description, schema)`, with those of servers.

    A registry that discovers its tools (`discover_all`, as Codemode's) does so first, and lists deferred ones as well.
    If a server fails, the tools already known of it are listed; nothing raises.
    """
    found: dict[str, Tool] = {}
    for toolset in _items(getattr(toolsets, "toolsets", toolsets)):
        for tool in [*await _list_of_server(toolset), *tools_of_toolset(toolset)]:
            found.setdefault(tool.name, tool)
    return [(tool.name, tool.description, tool.schema) for tool in found.values()]


async def _list_of_server(toolset: object) -> tuple[Tool, ...]:
    registry = next(
        (one for one in (toolset, _get(toolset, "registry", "_registry")) if hasattr(one, "discover_all")), None
    )
    methods = (getattr(toolset, name, None) for name in ("list_tools", "tools"))
    list_tools = next(filter(inspect.iscoroutinefunction, methods), None)
    try:
        if registry is not None:
            return await _discover(registry)
        return () if list_tools is None else read_tools(_items(await list_tools()))
    except Exception:  # noqa: BLE001 - a server that is down must not hide the other tools
        return ()


async def _discover(registry: Any) -> tuple[Tool, ...]:
    """Return the tools of a registry after its discovery."""
    found = registry.discover_all()
    if inspect.isawaitable(found):
        await found
    try:
        listed = registry.list_tools(include_deferred=True)
    except TypeError:
        listed = registry.list_tools()
    return read_tools(_items(await listed if inspect.isawaitable(listed) else listed))


def _add_function(value: object, tool: Tool) -> Tool:
    """Add what only the live object has: its function's source code, and whether it is a coroutine."""
    function = _get(value, "function", "_function")
    if not callable(function):
        return tool
    try:
        code = inspect.getsource(function)
    except (OSError, TypeError):
        code = None
    return replace(tool, source_type="function", is_async=inspect.iscoroutinefunction(function), source_code=code)


def _schema(value: object) -> Json:
    for name in _SCHEMAS:
        schema = _get(value, name)
        if isinstance(schema, Mapping):
            return schema
    function = _get(value, "function_schema")
    schema = None if function is None else _get(function, "json_schema")
    return schema if isinstance(schema, Mapping) else {}


def _items(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


def _get(value: object, *names: str) -> Any:
    for name in names:
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if found is not None:
            return found
    return None
