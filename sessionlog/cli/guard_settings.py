"""`sessionlog guard --install` and `--uninstall`: print, write or remove the guard's hooks in an agent's settings."""

from __future__ import annotations

import os
import shlex
import sys

from sessionlog.cli.output import UNREADABLE, fail, note, print_json, print_text
from sessionlog.errors import SessionLogError
from sessionlog.guard import hook_settings
from sessionlog.places import user_home
from sessionlog.render.escape import terminal
from sessionlog.render.times import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.guard.hook import Agent

_NEXT = {"codex": "Codex runs new hooks when you trust them: once, in Codex, by /hooks"}
"""What else an agent needs, by its id."""


def install(agent: Agent, *, write: bool, strict: bool, ledger: str | None) -> None:
    """Print the settings that make an agent run the guard, or write them into the agent's settings."""
    command, path = _command(agent, strict=strict, ledger=ledger), _shown_path(agent)
    if not write:
        print_json({"hooks": hook_settings.hooks_of(agent, command)})
        note(f"add this to {path}, or let `--write` do it")
        return
    try:
        is_new = hook_settings.install(agent, command, os.environ)
    except OSError as error:
        _fail(path, error)
    _print(
        f"{path} {'has' if is_new else 'already had'} the hooks; `sessionlog guard --uninstall {agent.id}` removes them"
    )
    for sentence in (_NEXT.get(agent.id), "`sessionlog ledger sync` reads the logs there are, so that they count, too"):
        if sentence and is_new:
            note(sentence)


def uninstall(agent: Agent) -> None:
    """Remove the guard's hooks from an agent's settings."""
    path = _shown_path(agent)
    try:
        is_changed = hook_settings.uninstall(agent, os.environ)
    except OSError as error:
        _fail(path, error)
    _print(f"{path} {'no longer has the hooks' if is_changed else 'has no hooks of sessionlog'}")


def _command(agent: Agent, *, strict: bool, ledger: str | None) -> str:
    """Return the hook's command, with absolute paths.

    It runs in folders that are not trusted: without `-P`, `-m` would import modules from there.
    """
    script = os.path.join(os.path.dirname(sys.executable), "sessionlog")
    program = [script] if os.access(script, os.X_OK) else [sys.executable, "-P", "-m", "sessionlog"]
    options = ["--strict"] if strict else []
    options += ["--ledger", os.path.abspath(ledger)] if ledger else []
    return shlex.join([*program, "guard", agent.id, *options])


def _shown_path(agent: Agent) -> str:
    return home_path(hook_settings.settings_path(agent, os.environ), user_home(os.environ))


def _print(text: str) -> None:
    print_text(f"{terminal(text)}\n")


def _fail(path: str, error: OSError) -> None:
    if isinstance(error, SessionLogError):
        raise error
    fail(f"{path}: {error.strerror or error}", UNREADABLE)
