"""Tools of every make are read into one value, live ones with what only they know."""

import asyncio
from types import SimpleNamespace

import pytest

from sessionlog.context.snapshots.tools import Tool, list_available_tools, read_tool, read_tools, tools_of_agent

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def run(coroutine):
    """Await without a loop left behind."""
    with asyncio.Runner() as runner:
        return runner.run(coroutine)


@pytest.mark.parametrize(
    "value",
    [
        ("read", "Read a file", SCHEMA),
        {"name": "read", "description": "Read a file", "parameters": SCHEMA},
        {"name": "read", "description": "Read a file", "input_schema": SCHEMA},
        {"type": "function", "function": {"name": "read", "description": "Read a file", "parameters": SCHEMA}},
        SimpleNamespace(name="read", description="Read a file", parameters_json_schema=SCHEMA),
        SimpleNamespace(name="r", tool_def=SimpleNamespace(name="read", description="Read a file", parameters_json_schema=SCHEMA)),
        SimpleNamespace(name="read", description="Read a file", function_schema=SimpleNamespace(json_schema=SCHEMA)),
    ],
)  # fmt: skip
def test_a_definition_of_every_kind(value):
    """Tuples, OpenAI's, Anthropic's, our logs', live objects."""
    assert read_tool(value) == Tool(name="read", description="Read a file", schema=SCHEMA)


def test_a_definition_of_mcp():
    """Known by its spelling of the schema."""
    tool = read_tool({"name": "read", "inputSchema": SCHEMA})
    assert (tool.source_type, tool.schema) == ("mcp", SCHEMA)


@pytest.mark.parametrize("value", [None, 3, "read", {}, {"name": 3}, {"function": {}}, ("a", "b"), []])
def test_what_has_no_name_is_no_tool(value):
    """It is left out."""
    assert read_tools([value]) == ()


def test_a_provider_tool_is_called_by_its_type():
    """Tools that a provider runs itself have nothing else."""
    assert read_tool({"type": "web_search_20250305", "max_uses": 3}).name == "web_search_20250305"


async def fetch(url):
    """An async tool."""


def test_tools_of_wrapped_toolsets():
    """A prefix is a part of the name, toolsets inside toolsets are found, a name is listed once."""
    inner = SimpleNamespace(tools={"fetch": SimpleNamespace(name="fetch", function=fetch, requires_approval=True)})
    prefixed = SimpleNamespace(wrapped=inner, prefix="web")
    agent = SimpleNamespace(toolsets=[SimpleNamespace(toolsets=[prefixed, inner]), inner])
    tools = tools_of_agent(agent)
    assert [tool.name for tool in tools] == ["web_fetch", "fetch"]
    assert all(t.is_async and t.requires_approval and t.source_type == "function" for t in tools)
    assert "async def fetch" in tools[0].source_code


def test_a_toolset_around_itself_ends():
    """A circle holds no tools."""
    circle = SimpleNamespace()
    circle.wrapped = circle
    assert tools_of_agent(SimpleNamespace(toolsets=[circle])) == ()


def test_tools_of_a_registry():
    """Code mode's toolsets know theirs from a registry."""
    registry = SimpleNamespace(list_tools=lambda: [SimpleNamespace(name="run", description="Run", input_schema=SCHEMA)])
    (tool,) = tools_of_agent(SimpleNamespace(toolsets=[SimpleNamespace(registry=registry)]))
    assert (tool.name, tool.source_type) == ("run", "codemode")


class _Server:
    def __init__(self, *, up):
        self._up = up
        self._cached_tools = [{"name": "old", "inputSchema": {}}]

    async def list_tools(self):
        if not self._up:
            raise ConnectionError
        return [{"name": "new", "description": "New", "inputSchema": SCHEMA}]


class _Registry:
    """Finds its tools when it is told to; some of them are deferred."""

    def __init__(self, *, knows_deferred):
        self._tools = []
        if knows_deferred:
            self.list_tools = lambda include_deferred=False: self._tools[: None if include_deferred else 1]
        else:
            self.list_tools = lambda: self._tools

    async def discover_all(self):
        self._tools = [{"name": "one", "description": "1"}, {"name": "later", "description": "2"}]


@pytest.mark.parametrize("knows_deferred", [True, False])
def test_a_registry_discovers_its_tools(knows_deferred):
    """Deferred ones as well, alone or behind a toolset; one that fails hides nothing else."""
    registry = _Registry(knows_deferred=knows_deferred)
    names = ["one", "later"]
    assert [name for name, _, _ in run(list_available_tools([SimpleNamespace(registry=registry)]))] == names
    assert [name for name, _, _ in run(list_available_tools([registry]))] == names
    registry = _Registry(knows_deferred=knows_deferred)
    registry.discover_all = lambda: 1 / 0
    assert run(list_available_tools([registry, _Server(up=False)])) == [("old", None, {})]


def test_servers_are_asked():
    """What they tell comes first; one that is down gives what is known of it."""
    assert run(list_available_tools([_Server(up=True)])) == [("new", "New", SCHEMA), ("old", None, {})]
    assert run(list_available_tools(SimpleNamespace(toolsets=[_Server(up=False)]))) == [("old", None, {})]


def test_an_agent_without_tools():
    """None, or something else altogether."""
    assert tools_of_agent(None) == ()
    assert run(list_available_tools(None)) == []
