"""Warned: which warnings a session has been given, so that each is given once.

A file for each session in the state folder has a line for each warning: a hash of the budget, its warning level and
the period. A warning of a new day is a new one. The agents' own logs are never written to.
"""

from __future__ import annotations

import os
import time

from sessionlog import files
from sessionlog.hashes import blake2b
from sessionlog.places import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessionlog.analytics.budgets.states import BudgetState
    from sessionlog.guard.hook import Hook

_KEPT_SECONDS = 30 * 86_400
_NAME_BYTES, _LINE_BYTES = 16, 8


def guard_folder(env: Mapping[str, str]) -> str:
    """Return the folder of the guard's own state."""
    return os.path.join(state_home(env), "sessionlog", "guard")


def not_warned_yet(hook: Hook, states: Iterable[BudgetState], env: Mapping[str, str]) -> list[BudgetState]:
    """Return the budgets whose warning level this session has not been warned of, and remember them.

    Raises:
        OSError: The file cannot be written.
    """
    folder = os.path.join(guard_folder(env), "warned")
    path = os.path.join(folder, _hash(f"{hook.agent.id} {hook.session}", _NAME_BYTES))
    known = (files.read_small(path) or b"").decode("ascii", "replace").split()
    new = [(state, line) for state in states if (line := _line(state)) not in known]
    if new:
        if not known:
            files.make_directories(folder)
            _remove_old(folder)
        files.append_private(path, [f"{line}\n".encode() for _, line in new])
    return [state for state, _ in new]


def _line(state: BudgetState) -> str:
    rule = state.rule
    period = state.start_ns if rule.period else None  # a rolling window always begins now
    return _hash(f"{rule.name} {rule.key()} {rule.limit} {rule.warn:g} {period}", _LINE_BYTES)


def _hash(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def _remove_old(folder: str) -> None:
    """Remove the files of sessions that were warned long ago."""
    oldest = time.time() - _KEPT_SECONDS
    for name in files.list_names(folder):
        path = os.path.join(folder, name)
        status = files.stat_path(path)
        if status is not None and status.st_mtime < oldest:
            files.remove_file(path)
