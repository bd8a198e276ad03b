"""The function of a command: the one of its name in the module of its name, or a report's."""

from __future__ import annotations

from importlib import import_module

from sessionlog.cli.reports import REPORTS, report_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_OF_SUBCOMMANDS = {"ledger": "ledger_upkeep"}
"""The module of a command's subcommands where it is not the command's own, so that the command imports little."""


def function_of(name: str) -> Callable[..., None]:
    """Return the function of a command, `usage`, `ledger` or `ledger sync`; it takes what `options` declares for it."""
    if name in REPORTS:
        return report_function(name)
    command, _, part = name.replace("-", "_").partition(" ")
    module = _OF_SUBCOMMANDS.get(command, command) if part else command
    function: Callable[..., None] = getattr(import_module(f"sessionlog.cli.{module}"), part or command)
    return function
