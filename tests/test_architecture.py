"""The house tests itself: imports point down, and every tool stays in its room.

The archive keeps logs as their sources read them, so it stands on the sources, beside the ledger, which needs only what
scans gave. Imports are read from the syntax tree, so that an import inside a function or
behind TYPE_CHECKING counts as well.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import sessionlog

HOUSE = Path(sessionlog.__file__).parent
TESTS = Path(__file__).parent
NAME = "sessionlog"

ORDER = (
    {"cli"},
    {"mcp_server", "ui"},
    {"render"},
    {"export", "search"},
    {"analytics"},
    {"conversation"},
    {"context"},
    {"transcript"},
    {"ledger"},
    {"pricing", "sources"},
    {"reader"},
    {"settings"},
    {"files", "places", "hashes", "messages"},
    {"events"},
    {"errors"},
    {"lazy_imports", "locks"},
)
"""From the top of the house to its bottom; rooms of one storey do not know each other. Settings stand on files: they
are read through the seam to the operating system."""

STAIRS = {
    "logger": {"files", "settings", "events", "errors", "locks"},
    "integrations": {"logger", "messages", "events", "errors", "locks"},
    "proxy": {"integrations", "logger", "messages", "files", "places", "settings", "events", "errors", "locks"},
    "demo": {"logger", "files", "events", "errors"},
    "guard": {"analytics", "ledger", "sources", "pricing", "files", "places", "hashes", "errors"},
    "engine": {"ledger", "sources", "pricing", "reader", "files", "settings", "events", "errors"},
    "archive": {"sources", "reader", "files", "settings", "events", "errors"},
}  # fmt: skip
"""Rooms beside that order, with all that they may import."""

USERS = {
    "logger": {"cli", "conversation", "integrations"},
    "integrations": set(),
    "proxy": {"cli"},
    "demo": {"cli"},
    "guard": {"cli"},
    "engine": {"cli", "mcp_server", "render", "export", "analytics"},
    "archive": {"cli", "mcp_server", "render", "search", "analytics", "conversation", "context"},
}
"""Rooms of the order that may import a room beside it."""

DOORS = {"__init__", "__main__", "_version", "testing", "source_check"}
"""Modules at the top that belong to no room. They may import any."""

WRITE_PATH = ("logger", "events", "files", "places", "settings")
HEAVY = {"rich", "typer", "pydantic", "dateutil", "sqlite3", "asyncio"}
"""What `import sessionlog` inside an agent must not cost."""

AGENTS_ONLY = ("mcp", "mcp_types", "pydantic", "anyio")
"""What a server for agents needs; nobody else pays the second that it takes to load."""

VAGUE = {"utils", "util", "helpers", "helper", "core", "common", "misc"}
MOST_NAMES = 40
OPENERS = {"os.open", "os.fdopen", "os.rename", "os.replace", "io.open", "gzip.open", "codecs.open"}


class Import(NamedTuple):
    """One import as written: the importing module, the imported one, the line, and the functions around it."""

    module: str
    target: str
    line: int
    inside: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


@pytest.fixture(scope="module", autouse=True)
def _kept_no_longer():
    """Syntax trees of the whole package take more than a hundred megabytes."""
    yield
    trees.cache_clear()
    calls.cache_clear()


@cache
def trees() -> dict[str, ast.Module]:
    """Module name → syntax tree, for every file of the package."""
    return {_module_name(path): ast.parse(path.read_text("utf-8"), str(path)) for path in sources(HOUSE)}


def sources(folder: Path) -> list[Path]:
    """The Python files under a folder, in a stable order."""
    return sorted(folder.rglob("*.py"))


def _module_name(path: Path) -> str:
    parts = [NAME, *path.relative_to(HOUSE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The first name below the package: the folder, or the single file that is a room."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@cache
def imports() -> tuple[Import, ...]:
    """Every import of the package, of our own modules and of others'."""
    return tuple(found for module, tree in trees().items() for found in _imports_of(module, tree))


def _imports_of(module: str, tree: ast.Module) -> Iterator[Import]:
    for node, inside in _walk(tree, ()):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno, inside)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} imports relatively; name the room"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield Import(module, whole if whole in trees() else str(node.module), node.lineno, inside)


def _walk(node: ast.AST, inside: tuple[str, ...]) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    for child in ast.iter_child_nodes(node):
        yield child, inside
        named = (child.name,) if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else ()
        yield from _walk(child, (*inside, *named))


def our_imports() -> list[Import]:
    """The imports of our own modules."""
    return [i for i in imports() if i.target.split(".")[0] == NAME]


def allowed(room: str) -> set[str]:
    """The rooms that a room may import, itself included."""
    if room in STAIRS:
        return STAIRS[room] | {room}
    storey = next((index for index, rooms in enumerate(ORDER) if room in rooms), len(ORDER))
    below = set().union(*ORDER[storey + 1 :])
    return below | {room} | {beside for beside, users in USERS.items() if room in users}


@cache
def calls() -> tuple[tuple[str, int, str], ...]:
    """(module, line, dotted name) of every call whose function is spelled as a name."""
    return tuple(
        (module, node.lineno, name)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)).replace(".", "").replace("_", "").isalnum()
    )


def test_every_room_has_a_place():
    """A new folder or file at the top must be given its place in the order before anything imports it."""
    rooms = {room_of(module) for module in trees()} - DOORS
    assert rooms == set().union(*ORDER, STAIRS)


def test_imports_point_down():
    """No room imports one above it or beside it."""
    wrong = [
        str(i)
        for i in our_imports()
        if room_of(i.module) not in DOORS
        and room_of(i.target) not in allowed(room_of(i.module)) | {"_version"}
        and not (i.inside[-1:] == ("to_table",) and room_of(i.target) == "render")
    ]
    assert wrong == []


def test_imports_make_no_circle():
    """Modules can be put in one order, imports inside functions and for type checkers included."""
    graph: dict[str, set[str]] = {module: set() for module in trees()}
    for found in our_imports():
        if found.inside[-1:] != ("to_table",):
            graph[found.module].add(found.target)
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' → '.join(reversed(error.args[1]))}")


def test_the_write_path_does_not_know_the_read_half():
    """Whatever logger, events, files and settings import, directly or not, is of the write path too."""
    reached: dict[str, str] = {m: m for m in trees() if room_of(m) in WRITE_PATH}
    waiting = list(reached)
    while waiting:
        module = waiting.pop()
        for found in our_imports():
            if found.module == module and found.target not in reached:
                reached[found.target] = f"{reached[module]} → {found.target}"
                waiting.append(found.target)
    known = {*WRITE_PATH, "errors", "locks", "_version"}
    strangers = {way for module, way in reached.items() if room_of(module) not in known}
    assert strangers == set()


@pytest.mark.parametrize("module", ["sessionlog", "sessionlog.logger.session_logger"])
def test_recording_loads_nothing_heavy(module):
    """In a fresh interpreter, importing the write path loads no reporting module and no library behind one."""
    code = f"import sys; bare = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - bare))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert HEAVY.isdisjoint(name.split(".")[0] for name in loaded)
    ours = {room_of(name) for name in loaded if name.split(".")[0] == NAME}
    assert ours <= {*WRITE_PATH, "errors", "lazy_imports", "locks", "_version", "__init__"}


@pytest.mark.parametrize(
    ("library", "room"),
    [
        ("rich", "render"),
        ("textual", "ui"),
        ("typer", "cli"),
        ("requests", "export"),
        ("google", "export"),
        ("duckdb", "export"),
        ("fsspec", "files"),
        *((name, "mcp_server") for name in AGENTS_ONLY),
    ],
)
def test_a_library_stays_in_its_room(library, room):
    """How it looks is render's business, the words are cli's, the protocol that of a server for agents.

    Whoever asks an agent for a structured answer has pydantic: a function of `conversation` may import it then. What
    `export` writes, `engine.place` reads with DuckDB; queries of events are DuckDB's, too. Remote logs are opened where all
    files are.
    """
    wrong = [
        str(i)
        for i in imports()
        if i.target.split(".")[0] == library
        and room_of(i.module) != room
        and not (library == "pydantic" and room_of(i.module) == "conversation" and i.inside)
        and not (
            library == "duckdb" and (i.module.startswith(f"{NAME}.engine.place") or room_of(i.module) == "analytics")
        )
    ]
    assert wrong == []


def test_an_agent_s_package_is_its_adapter_s():
    """A session with a plain function never loads them; each is imported by its adapter, its integration, its replay."""
    own = {
        "pydantic_ai": ("pydantic_ai", "pydantic"),
        "openai": ("openai",),
        "anthropic": ("anthropic",),
        "langchain_core": ("langchain",),
        "agents": ("openai_agents",),
        "litellm": ("litellm",),
        "opentelemetry": ("otel",),
        "httpx": (),
        "httpx2": (),
    }
    wrong = [
        str(i)
        for i in imports()
        if (names := own.get(i.target.split(".")[0])) is not None
        and not (i.module.startswith(f"{NAME}.conversation.agents.") and i.module.split(".")[3].startswith(names))
        and not (i.module.startswith(f"{NAME}.integrations.") and i.module.split(".")[2] in names)
        and not (i.module.startswith(f"{NAME}.testing.replay.") and i.module.split(".")[3] in names)
        and not (i.target.startswith("opentelemetry") and room_of(i.module) == "export")
    ]
    assert wrong == []


def test_only_files_speaks_to_the_file_system():
    """Opening, locking, renaming and temporary files have one seam, so that faults can be injected there."""
    wrong = [
        str(i) for i in imports() if i.target.split(".")[0] in {"fcntl", "tempfile"} and room_of(i.module) != "files"
    ]
    wrong += [
        f"{module}:{line} calls {name}"
        for module, line, name in calls()
        if (name == "open" or name in OPENERS) and room_of(module) != "files"
    ]
    assert wrong == []


def test_there_is_one_kind_of_lock():
    """Others may stay held after a Ctrl-C; a turn's and a hook's are given up, not waited for."""
    kinds = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier", "allocate_lock"}
    known = {"conversation.session", "cli.guard"}
    wrong = [
        f"{module}:{node.lineno} calls {ast.unparse(node)}"
        for module, tree in trees().items()
        if module.removeprefix(f"{NAME}.") not in known
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in kinds
        if ast.unparse(node) not in {"RLock()", "Condition(self._lock)"}
    ]
    wrong += [str(i) for i in imports() if i.target == "_thread" and room_of(i.module) not in {"locks", "cli"}]
    assert wrong == []


def test_only_the_command_line_prints():
    """The library says what it has to say in values and errors."""
    wrong = [f"{module}:{line}" for module, line, name in calls() if name == "print" and room_of(module) != "cli"]
    assert wrong == []


def test_names_say_something():
    """No module and no folder is a drawer for everything."""
    parts = {part for module in trees() for part in module.split(".")}
    assert parts & VAGUE == set()


def test_every_public_module_says_its_idea():
    """A module begins with a docstring; only an empty `__init__` has nothing to say."""
    mute = [
        module
        for module, tree in trees().items()
        if not module.rpartition(".")[2].startswith("_") and tree.body and ast.get_docstring(tree) is None
    ]
    assert mute == []


def test_every_test_states_its_behaviour():
    """Each test function has a docstring."""
    mute = [
        f"{path.relative_to(TESTS)}:{node.lineno} {node.name}"
        for path in sources(TESTS)
        for one in ast.parse(path.read_text("utf-8")).body
        for node in (one.body if isinstance(one, ast.ClassDef) else [one])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert mute == []


def test_public_names_are_few_and_sorted():
    """`__all__` can be read at one look."""
    assert list(sessionlog.__all__) == sorted(sessionlog.__all__, key=lambda name: (not name.isupper(), name))
    assert 0 < len(sessionlog.__all__) <= MOST_NAMES


def test_public_names_are_what_is_importable():
    """Everything promised is there, and nothing else looks public."""
    assert {name for name in sessionlog.__all__ if not hasattr(sessionlog, name)} == set()
    shown = {name for name in dir(sessionlog) if not name.startswith("_")}
    modules = {name for name in shown if isinstance(getattr(sessionlog, name), ModuleType)}
    promised = {name for name in sessionlog.__all__ if not name.startswith("_")}
    assert shown - modules == promised
