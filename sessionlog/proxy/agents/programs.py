"""The program that a command runs, found behind the runners that people put before it.

`npx -y @openai/codex@latest exec`, `timeout 60 claude` and `node …/node_modules/@google/gemini-cli/bundle/gemini.js`
are recognised; what a shell makes of a text (`sh -c '…'`) is not guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VERSION = re.compile(r"(?<=.)@[^/]*$")
_SCRIPT = re.compile(r"\.(?:exe|cmd|bat|ps1|js|mjs|cjs|py)$", re.IGNORECASE)
_PACKAGE = re.compile(r"/node_modules/((?:@[^/]+/)?[^/]+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runner:
    """A program that runs another one.

    Attributes:
        words: Subcommands, one of which has to follow; () if the program follows at once.
        valued: Options that take the next argument.
        skipped: Arguments between the options and the program.
    """

    words: tuple[str, ...] = ()
    valued: frozenset[str] = frozenset()
    skipped: int = 0


_NPX = frozenset({"-p", "--package", "-w", "--workspace", "--cache", "--userconfig"})
_UV = frozenset(
    {
        "--directory", "--env-file", "--extra", "--from", "--group", "--index", "--index-url", "-p", "--project",
        "--python", "--with", "--with-editable", "--with-requirements",
    }
)  # fmt: skip
_RUNNERS = {
    "npx": _Runner(valued=_NPX),
    "npm": _Runner(words=("exec", "x"), valued=_NPX),
    "pnpm": _Runner(words=("dlx", "exec"), valued=_NPX),
    "pnpx": _Runner(valued=_NPX),
    "yarn": _Runner(words=("dlx", "exec", "run"), valued=_NPX),
    "bunx": _Runner(valued=_NPX),
    "bun": _Runner(words=("x", "run"), valued=_NPX),
    "node": _Runner(valued=frozenset({"-r", "--require", "--import", "--loader", "-C", "--conditions"})),
    "uvx": _Runner(valued=_UV),
    "uv": _Runner(words=("run", "tool run"), valued=_UV),
    "pipx": _Runner(words=("run",), valued=frozenset({"--spec", "--python"})),
    "timeout": _Runner(valued=frozenset({"-s", "--signal", "-k", "--kill-after"}), skipped=1),
    "nice": _Runner(valued=frozenset({"-n", "--adjustment"})),
    "nohup": _Runner(),
    "stdbuf": _Runner(valued=frozenset({"-i", "-o", "-e"})),
    "time": _Runner(),
    "env": _Runner(valued=frozenset({"-u", "--unset", "-C", "--chdir"})),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a command runs.

    Attributes:
        name: The file's name without its ending, or the package's without its version: `claude`, `@openai/codex`.
        command: The command without a leading `env` that only sets variables.
        at: Where the program's arguments begin in `command`.
        variables: What that `env` sets.
    """

    name: str
    command: tuple[str, ...]
    at: int
    variables: Mapping[str, str]


def find_program(command: Sequence[str]) -> Program:
    """Return the program of a command with at least one word."""
    command, variables = _without_env(tuple(command))
    at = 0
    while (then := _behind_runner(command, at)) is not None:
        at = then
    return Program(name=_name_of(command[at]), command=command, at=at + 1, variables=variables)


def _without_env(command: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return a command without `env A=1 B=2`, and what that sets: it would overrule the variables that are injected."""
    if os.path.basename(command[0]) != "env":
        return command, {}
    at = 1
    while at < len(command) and _ASSIGNMENT.match(command[at]):
        at += 1
    if at == len(command) or command[at].startswith("-"):
        return command, {}
    pairs = (assignment.partition("=") for assignment in command[1:at])
    return command[at:], {name: value for name, _, value in pairs}


def _behind_runner(command: tuple[str, ...], at: int) -> int | None:
    """Return where the program stands that the one at a position runs; None if that one runs no other."""
    runner = _RUNNERS.get(_name_of(command[at]))
    if runner is None or _PACKAGE.search(command[at]):
        return None
    at += 1
    if runner.words:
        given = next(
            (words for words in runner.words if command[at : at + words.count(" ") + 1] == (*words.split(),)), ""
        )
        if not given:
            return None
        at += given.count(" ") + 1
    while at < len(command) and command[at].startswith("-"):
        option = command[at]
        at += 2 if option in runner.valued else 1
        if option == "--":
            break
    at += runner.skipped
    return at if at < len(command) and not _ASSIGNMENT.match(command[at]) else None


def _name_of(word: str) -> str:
    path = word.replace("\\", "/")
    if found := _PACKAGE.search(path):
        return found[1]
    name = path if path.startswith("@") else path.rpartition("/")[2]
    return _SCRIPT.sub("", _VERSION.sub("", name))
