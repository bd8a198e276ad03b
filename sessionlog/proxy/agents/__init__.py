"""How each agent's requests are led through the proxy: variables, options and settings of one run.

    plan(["codex", "exec", "Fix it"], environment, proxy_url) → Launch(command=("codex", "-c", "openai_base_url=…", …))

An address that the user has set, in the environment, in settings or on the command line, is where the proxy sends the
requests on to: it is never lost. Files of the user's are read, and never changed. Unknown programs get the variables of
the providers' SDKs; what cannot be recorded is named in a note, and the agent works as without a proxy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from sessionlog.proxy.agents.draft import Draft
from sessionlog.proxy.agents.programs import find_program
from sessionlog.proxy.agents.sdk_variables import set_sdk_variables
from sessionlog.proxy.agents.table import AGENTS, Agent
from sessionlog.proxy.launch import Launch

_LOOPBACK = ("127.0.0.1", "localhost")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def plan(
    command: Sequence[str],
    environment: Mapping[str, str],
    proxy_url: Callable[[str], str],
    *,
    upstreams: Mapping[str, str] | None = None,
    folder: str | None = None,
    private_file: Callable[[str, str], str] | None = None,
) -> Launch:
    """Return how a command is started so that its requests to models pass through the proxy.

    Args:
        command: The program and its arguments, at least one word.
        environment: The variables that it would have had.
        proxy_url: Name of a route → its address at the proxy: `http://127.0.0.1:PORT/<secret>/anthropic`.
        upstreams: Name of a route → the base URL that its requests are to go to, in place of the agent's own.
        folder: Where it will run; the working directory by default.
        private_file: Writes a text to a file of a given name that lives as long as the command and that only its user
            can read, and returns the path. Without it, what only a file can set is not recorded, and a note names it.
    """
    program = find_program(command)
    agent = AGENTS.get(program.name) or Agent(harness=program.name, source=None, plan=set_sdk_variables)
    draft = Draft(
        program.command[program.at :],
        {**environment, **program.variables},
        proxy_url,
        upstreams=upstreams or {},
        folder=folder or _working_directory(),
        private_file=private_file,
    )
    agent.plan(draft)
    _pass_by_proxies(draft.environment)
    return Launch(
        command=(*program.command[: program.at], *draft.arguments),
        environment=draft.environment,
        upstreams=draft.upstreams,
        harness=agent.harness,
        source=agent.source,
        notes=tuple(draft.notes),
    )


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been deleted, which is the command's business
        return os.curdir


def _pass_by_proxies(environment: dict[str, str]) -> None:
    """Let no other proxy stand between the child and this machine."""
    if not any(environment.get(name) or environment.get(name.upper()) for name in _PROXIES):
        return
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [host.strip() for host in environment.get(name, "").split(",") if host.strip()]
        if hosts != ["*"]:
            environment[name] = ",".join(dict.fromkeys((*hosts, *_LOOPBACK)))
