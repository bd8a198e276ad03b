"""Import an agent from `module:agent` or `path/to/file.py:agent`, from the current folder as `python` would.

Errors name what was looked for, where, and what to do. The folder stays on the path for the whole chat, because an
agent may import modules of its folder late.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import reduce
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from sessionlog import files
from sessionlog.cli.output import Exit, fail
from sessionlog.conversation.agent import Agent

FORMS = "name it as module:agent or path/to/file.py:agent"
_MAX_NAMES = 6
"""Names of a module that an error lists."""


@contextmanager
def on_path(name: str) -> Iterator[None]:
    """Put the agent's folder on the path: that of its file, else the current one."""
    location = name.rpartition(":")[0]
    folder = os.path.dirname(os.path.abspath(location)) if _is_file(location) else os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def load_agent(name: str, *, model: str | None = None) -> Agent:
    """Import an agent.

    Args:
        name: `module:agent` or `path/to/file.py:agent`; the part after the colon may have dots.
        model: The model for a client to use.

    Raises:
        Exit: With exit code 2 if there is no such agent, or it cannot be used as one.
    """
    location, colon, attribute = name.rpartition(":")
    if not (location and colon and attribute):
        fail(f"{name!r} does not name an agent; {FORMS}")
    found = _find_attribute(_import(location), location, attribute)
    if isinstance(found, Agent):
        if model is not None:
            fail(f"--model is for a client or a function; {name} is an Agent, which has its own")
        return found
    try:
        return Agent(found, model=model, name=attribute)
    except (TypeError, ValueError) as error:
        step = "" if model or "model=" not in str(error) else "; here that is --model NAME"
        fail(f"{name}: {error}{step}")


def absolute(name: str) -> str:
    """Return an agent's name with an absolute path, if it names a file."""
    location, colon, attribute = name.rpartition(":")
    return f"{os.path.abspath(location)}{colon}{attribute}" if colon and _is_file(location) else name


def _is_file(location: str) -> bool:
    return location.endswith(".py") or os.sep in location


def _import(location: str) -> ModuleType:
    try:
        return _file_module(location) if _is_file(location) else import_module(location)
    except ModuleNotFoundError as error:
        if error.name is not None and (location == error.name or location.startswith(f"{error.name}.")):
            fail(f"no module {error.name!r} in {os.getcwd()} or among the installed packages; {FORMS}")
        fail(f"{location} needs {error.name!r}, which is not installed here{_where(error, location)}")
    except (KeyboardInterrupt, GeneratorExit, Exit):
        raise
    except SystemExit as error:
        fail(f"{location} ended the program while it was imported (exit {error.code}); guard its start by __main__")
    except BaseException as error:  # noqa: BLE001 - the user's code may raise anything
        command = shlex.join(["python", location] if _is_file(location) else ["python", "-m", location])
        cause = f"{type(error).__name__}: {error}{_where(error, location)}"
        fail(f"{location} cannot be imported: {cause}; `{command}` shows the traceback")


def _file_module(location: str) -> ModuleType:
    if files.stat_path(location) is None:
        fail(f"{location}: no such file; {FORMS}")
    stem = os.path.basename(location).removesuffix(".py")
    name = stem if stem not in sys.modules else f"sessionlog_chat_{stem}"
    spec = spec_from_file_location(name, os.path.abspath(location))
    if spec is None or spec.loader is None:
        fail(f"{location} is no Python file; {FORMS}")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _where(error: BaseException, location: str) -> str:
    """Return the last line of the user's own code in a traceback, as ` (path:line)`; empty if there is none."""
    name = os.path.basename(location) if _is_file(location) else f"{location.rpartition('.')[2]}.py"
    line, trace = None, error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if os.path.basename(path) == name or os.path.dirname(path).endswith(location.replace(".", os.sep)):
            line = f"{path}:{trace.tb_lineno}"
        trace = trace.tb_next
    if line is None and isinstance(error, SyntaxError) and error.filename:
        line = f"{error.filename}:{error.lineno}"
    return "" if line is None else f" ({line})"


def _find_attribute(module: ModuleType, location: str, attribute: str) -> Any:
    try:
        return reduce(getattr, attribute.split("."), module)
    except AttributeError:
        own = [key for key, value in vars(module).items() if not key.startswith("_") and _may_be_agent(value, module)]
        near = get_close_matches(attribute, own, n=1)
        named = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(own[:_MAX_NAMES])}" if own else FORMS
        fail(f"{location} has no {attribute!r}; {named}")


def _may_be_agent(value: Any, module: ModuleType) -> bool:
    """Whether a value may be an agent of the module: no class, and not imported."""
    if isinstance(value, type | ModuleType) or getattr(value, "__module__", module.__name__) in {
        "typing",
        "__future__",
    }:
        return False
    return not callable(value) or getattr(value, "__module__", None) == module.__name__ or hasattr(value, "answer")
