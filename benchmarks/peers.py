"""The tools that are compared, and what installs them: into one folder, by the package managers that are there anyway.

What cannot be installed is left out, and named with the reason. The peers' own binaries are run, without the start of a
Node wrapper.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

CCUSAGE = "ccusage@20.0.24"
TOKSCALE = "4.17.0"
DUCKDB = "duckdb==2.0.0"

_TOKSCALE_PLATFORMS = {
    ("linux", "x86_64"): "linux-x64-gnu",
    ("linux", "aarch64"): "linux-arm64-gnu",
    ("darwin", "arm64"): "darwin-arm64",
    ("darwin", "x86_64"): "darwin-x64",
}


@dataclass(slots=True, kw_only=True)
class Tools:
    """How each tool is started; None if it is not here.

    Attributes:
        ours: The command of the sessionlog that is measured.
        ccusage: Its native binary.
        tokscale: Its native binary.
        duckdb: A Python that has it.
        options: The options that `ours usage` knows.
        missing: What was left out, and why.
    """

    ours: tuple[str, ...]
    ccusage: str | None = None
    tokscale: str | None = None
    duckdb: str | None = None
    options: frozenset[str] = frozenset()
    missing: list[str] = field(default_factory=list)


def install(folder: str, *, ours: str | None, peers: bool, ccusage: str | None) -> Tools:
    """Find or install every tool.

    Args:
        folder: Where to install to.
        ours: Command of the sessionlog to measure; by default the one of this Python.
        peers: Install the peers.
        ccusage: A binary to use in place of the registry's.
    """
    tools = Tools(ours=(ours,) if ours else _own_command(), ccusage=ccusage)
    said = subprocess.run([*tools.ours, "usage", "--help"], capture_output=True, text=True, env=_plain()).stdout
    tools.options = frozenset(word.strip(",[]") for word in said.split() if word.startswith("--"))
    if peers:
        if not ccusage:
            tools.ccusage = _npm(folder, tools, CCUSAGE, "@ccusage/ccusage-*/bin/ccusage*")
        here = (sys.platform, platform.machine())
        package = f"@tokscale/cli-{_TOKSCALE_PLATFORMS.get(here, '-'.join(here))}"
        tools.tokscale = _npm(folder, tools, f"{package}@{TOKSCALE}", "@tokscale/cli-*/bin/tokscale*")
        tools.duckdb = _venv(folder, tools, "duckdb", (DUCKDB,), "duckdb")
    return tools


def _own_command() -> tuple[str, ...]:
    """The console script beside this Python, as users start it; else the module."""
    script = Path(sys.executable).with_name("sessionlog")
    return (str(script),) if script.exists() else (sys.executable, "-m", "sessionlog")


def _plain() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "120", "TERM": "dumb"}


def _npm(folder: str, tools: Tools, package: str, binary: str) -> str | None:
    """The native binary of a package, or None with a word of why."""
    npm = shutil.which("npm")
    if npm is None:
        tools.missing.append(f"{package}: no npm here")
        return None
    prefix = f"{folder}/npm-{package.strip('@').partition('@')[0].replace('/', '-')}"
    quiet = ["--no-audit", "--no-fund", "--loglevel", "error", "--cache", f"{folder}/npm-cache"]
    done = subprocess.run([npm, "install", "--prefix", prefix, *quiet, package], capture_output=True, text=True)
    found = sorted(Path(prefix, "node_modules").glob(binary))
    if done.returncode or not found:
        tools.missing.append(f"{package}: {_last_line(done.stderr) or 'no binary for this machine'}")
        return None
    found[0].chmod(0o755)  # npm leaves this to the package's Node wrapper
    return str(found[0])


def _venv(folder: str, tools: Tools, name: str, wanted: Sequence[str], module: str) -> str | None:
    """A Python of its own that can import the module, or None with a word of why."""
    made = f"{folder}/venv-{name}"
    python = f"{made}/{'Scripts' if os.name == 'nt' else 'bin'}/python"
    for command in (
        [sys.executable, "-m", "venv", made],
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted],
        [python, "-c", f"import {module}"],  # also writes its .pyc files
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            tools.missing.append(f"{name}: {_last_line(done.stderr)}")
            return None
    return python


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
