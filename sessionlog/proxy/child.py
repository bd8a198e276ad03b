"""The recorded command as a child of this process: in its group and on its terminal, with its exit code.

The terminal sends Ctrl-C to the whole group, so that this process only has to survive it. Other signals reach this
process alone, and are passed on.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes of a shell for commands that cannot be started."""

_OF_TERMINALS = ("SIGINT", "SIGQUIT")
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class CommandNotStarted(Exception):
    """A command that is not there, or is no program.

    Attributes:
        code: The exit code that a shell gives for it.
    """

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def find_command(name: str, environment: Mapping[str, str]) -> None:
    """Check that a command can be started: a path, or a name in the folders of PATH.

    Raises:
        CommandNotStarted: It is not there, or may not be executed.
    """
    path = environment.get("PATH", os.defpath)
    if shutil.which(name, path=path) is None:
        if shutil.which(name, os.F_OK, path) is not None:
            raise CommandNotStarted(f"{name}: not executable", NOT_EXECUTABLE)
        raise CommandNotStarted(f"{name}: command not found", NOT_FOUND)


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command with this process's streams, and return its exit code; 128 + N if signal N ended it.

    Raises:
        CommandNotStarted: The system refuses to start it.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []
    with _signals_for(children, early):
        try:
            child = subprocess.Popen(command, env=dict(environment))  # noqa: S603 - the command that the user gave
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            raise CommandNotStarted(f"{command[0]}: {error.strerror}", code) from error
        children.append(child)
        for number in early:
            child.send_signal(number)
        code = child.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _signals_for(children: Sequence[subprocess.Popen[bytes]], early: list[int]) -> Iterator[None]:
    """Return a context in which signals are the child's business, and those that come before it are kept in `early`.

    A signal that this process was started to ignore stays so, for the child too.
    """

    def pass_on(number: int, _frame: object) -> None:
        if not children:
            early.append(number)
        for child in children:
            child.send_signal(number)

    def leave_to_terminal(number: int, frame: object) -> None:
        if not any(map(os.isatty, range(3))):  # no terminal has sent it to the child, too
            pass_on(number, frame)

    handlers = dict.fromkeys(_OF_TERMINALS, leave_to_terminal) | dict.fromkeys(_PASSED_ON, pass_on)
    before = dict(_install(handlers))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _install(handlers: Mapping[str, Callable[[int, object], None]]) -> Iterator[tuple[int, Any]]:
    for name, handler in handlers.items():
        number = getattr(signal, name, None)  # Windows has only some of them
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            yield number, signal.signal(number, handler)
