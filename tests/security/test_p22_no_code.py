"""P22: no code is chosen by data. What could run code is named here, and hostile logs are read under a watch."""

import ast
import io
import os
import sys
from pathlib import Path

import pytest

import sessionlog
from tests.reliability.children import in_child
from tests.security.commands import run
from tests.security.hostile import line

PACKAGE = Path(sessionlog.__file__).parent
FORBIDDEN_MODULES = frozenset({"pickle", "marshal", "shelve", "dill", "yaml", "runpy", "code", "imp", "ctypes", "cffi"})
FORBIDDEN_CALLS = frozenset({"eval", "exec", "compile", "__import__"})
IMPORTERS = {
    "lazy_imports.py": "names of our own modules, imported when they are first used",
    "cli/functions.py": "our own commands, checked against their names",
    "cli/reports.py": "our own reports, named in the module",
    "cli/completion.py": "our own reports, named in the module",
    "sources/registry.py": "our own sources, and those that an installed package declares",
    "conversation/agents/base.py": "our own adapters, and the library of a provider that our table has",
    "reader/unpack.py": "a decoder of the standard library or its backport",
    "context/tokenizers.py": "splintr or tiktoken",
    "cli/repl/loading.py": "the agent that the command line names",
}
"""Which modules import by a name that is computed, and whose names these are."""
OURS = {
    (
        "files/batch_file.py",
        "marshal",
    ): "values of this program: in a file without a name, or in a folder that is ours alone",
    ("ui/line_store.py", "marshal"): "lines of the terminal application, packed in memory",
    ("sources/spool.py", "pickle"): "values of a scan that msgpack cannot hold, in a file without a name",
}
"""What could run code, of what this program itself has written: packings of a moment before, which nothing else can write, and code."""
RUNS = {
    "analytics/git_history.py": "the git on PATH, with everything off that a repository could make it start",
    "cli/replay.py": "$PAGER, of the user's own environment",
    "demo/__init__.py": "this program",
    "proxy/child.py": "the command that the command line names",
}
"""Which modules start a process, and which one."""


def uses():
    """(file, what it uses) for each use of something that could run code."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((name, alias.name.split(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield name, node.module.split(".")[0]
                yield from ((name, alias.name) for alias in node.names if alias.name == "import_module")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
                literal = all(isinstance(argument, ast.Constant) for argument in node.args)
                if not (node.func.id == "__import__" and literal):
                    yield name, f"{node.func.id}()"


def test_p22_nothing_in_the_package_runs_data():
    """No pickle of what was read, no eval, no YAML; names that are computed are imported in few places, each of which is known."""
    found = set(uses())
    assert {(name, used) for name, used in found if used in FORBIDDEN_MODULES or used.endswith("()")} == set(OURS)
    assert {name for name, used in found if used == "import_module"} == set(IMPORTERS)
    assert {name for name, used in found if used == "subprocess"} == set(RUNS)


def watch(folder, ran):
    """Note, for the rest of this process, each process that starts and all code that comes from below a folder."""

    def hook(event, args):
        if event in {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"}:
            ran.append([event, repr(args[0])])
        elif event == "exec" and args[0].co_filename.startswith(folder):
            ran.append([event, args[0].co_filename])
        elif event in {"import", "compile"} and str(args[1] or "").startswith(folder):
            ran.append([event, str(args[1])])

    sys.addaudithook(hook)


@pytest.fixture
def hostile(tmp_path):
    """A folder with a module that leaves a mark when it is run, and a log that names it wherever a name may stand."""
    folder = tmp_path / "work"
    folder.mkdir()
    mark = tmp_path / "owned"
    module = folder / "hostile_agent.py"
    module.write_text(f"open({str(mark)!r}, 'w').close()\nagent = SOURCE = print\n")
    names = {
        name: value
        for name in (
            "agent",
            "source",
            "tool",
            "module",
            "adapter",
            "provider",
            "model",
            "harness",
            "tokenizer",
            "codec",
        )
        for value in ("hostile_agent:agent",)
    }
    metadata = {**names, "python": f"{module}:agent", "__reduce__": ["os.system", f"touch {mark}"]}
    log = b"".join([
        line("session.start", {"v": 1, **names, "metadata": metadata, "prompt": "!!python/object/apply:os.system ['true']"}),
        line("llm.request", {**names, "messages": [{"role": "user", "content": "__import__('hostile_agent')"}]}, seq=1),
        line("llm.response", {**names, "content": "x", "usage": {"input": 1, "output": 1}}, seq=2),
        line("tool.call", {**names, "input": {"command": f"touch {mark}"}, "output": f"$(touch {mark})"}, seq=3),
        line("hostile_agent.agent", names, seq=4),
        line("session.end", {**names, "status": "success"}, seq=5),
    ])  # fmt: skip
    (folder / "s.jsonl").write_bytes(log)
    return folder, mark


COMMANDS = (
    ["usage", "s.jsonl", "--by", "source,harness,meta.agent,meta.python"], ["sessions", "s.jsonl"], ["tools", "s.jsonl"],
    ["replay", "s.jsonl", "--plain"], ["context", "s.jsonl"], ["diff", "s.jsonl", "s.jsonl"], ["check", "s.jsonl"],
    ["scrub", "s.jsonl"], ["routing-quality", "s.jsonl"], ["blocks", "s.jsonl"], ["status", "s.jsonl"],
    ["pricing", "hostile_agent:agent"], ["chat", "--resume", "s.jsonl"], ["chat", "--resume", "s.jsonl", "--dir", "."],
)  # fmt: skip


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_p22_no_command_runs_what_a_log_names(hostile, arguments):
    """Nothing beside the log is imported, compiled or run, and no process is started."""
    folder, mark = hostile

    def work():
        os.chdir(folder)
        sys.path.insert(0, "")  # as it is where a program is started by `python -m`
        sys.stdin = io.StringIO()
        ran = []
        watch(str(folder), ran)
        return run(*arguments).code, ran, sorted(set(sys.modules) & {"hostile_agent"})

    code, ran, imported = in_child(work)
    assert (ran, imported) == ([], [])
    assert code in {0, 1, 2, 3}
    assert not mark.exists()


def test_p22_the_watch_sees_what_runs(hostile):
    """Else the test above could not fail."""
    folder, mark = hostile

    def work():
        sys.path.insert(0, str(folder))
        ran = []
        watch(str(folder), ran)
        __import__("hostile_agent")
        return [event for event, _ in ran]

    assert "exec" in in_child(work)
    assert mark.exists()
