"""The loop of a chat: read a text, then run a slash command or a turn, until the input ends.

However the chat ends (/quit, a signal, a broken pipe), its session is ended in the log.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from sessionlog.cli.output import FOUND, Exit
from sessionlog.cli.repl.chat import Chat, Terminated
from sessionlog.cli.repl.commands import run_slash_command
from sessionlog.cli.repl.inputs import Input
from sessionlog.errors import SessionLogError

_SIGNALS = ("SIGTERM", "SIGHUP")


def run_chat(chat: Chat, lines: Input) -> None:
    """Chat until the input ends or the user leaves.

    Raises:
        Exit: With exit code 1 if a turn is not in the log, or, without a person at the terminal, if a turn failed.
    """
    with _terminated_by_signals():
        try:
            while not chat.is_over:
                _next(chat, lines)
        except BaseException as error:
            chat.end("cancelled" if isinstance(error, KeyboardInterrupt | SystemExit) else "error")
            if isinstance(error, Terminated):
                with suppress(OSError):  # the terminal may be closed
                    _show_resume_command(chat)
            raise
        finally:
            lines.close()
        chat.end()
    _show_resume_command(chat)
    if chat.has_unrecorded_turn or (chat.has_failed and not chat.output.is_interactive):
        raise Exit(FOUND)


def _show_resume_command(chat: Chat) -> None:
    if chat.output.is_interactive and chat.is_recorded:
        chat.output.facts("left", [("log", chat.path), ("go on", chat.resume_command)])


def _next(chat: Chat, lines: Input) -> None:
    """Read one text, and run it as a slash command or a turn."""
    try:
        text = lines.read()
    except EOFError:
        chat.is_over = True
        return
    except KeyboardInterrupt:
        if not chat.output.is_interactive:
            raise
        if lines.is_empty:
            chat.output.note("Ctrl-D or /quit leaves")
        return
    if not text.strip():
        return
    try:
        if text.startswith("/") and not text.startswith("//") and "\n" not in text.strip():
            run_slash_command(chat, text)
        else:
            chat.take_turn(text.removeprefix("/") if text.startswith("//") else text)
    except KeyboardInterrupt:
        if not chat.output.is_interactive:
            raise
        chat.output.stopped()
    except SessionLogError as error:
        chat.fail(str(error))


@contextmanager
def _terminated_by_signals() -> Iterator[None]:
    """Raise Terminated on SIGTERM and SIGHUP, so that the session is ended in its log."""

    def leave(number: int, _: object) -> NoReturn:
        raise Terminated(128 + number)

    known = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before: dict[Any, Any] = {number: signal.signal(number, leave) for number in known}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
