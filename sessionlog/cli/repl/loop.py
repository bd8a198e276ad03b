"""The loop: a text is read, a command is followed or a turn taken, until there is nothing more to read.

However a chat ends, its session is saved and closed: left, stopped by a signal, or broken by a pipe that is gone.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from sessionlog.cli.output import FOUND, Leave
from sessionlog.cli.repl.chat import Chat, ToldToEnd
from sessionlog.cli.repl.lines import Lines
from sessionlog.cli.repl.words import follow
from sessionlog.errors import SessionLogError

_SIGNALS = ("SIGTERM", "SIGHUP")


def talk(chat: Chat, lines: Lines) -> None:
    """Chat until the lines end, or somebody leaves; without a person, a turn that failed ends it with exit code 1."""
    with _ending_tidily():
        try:
            while not chat.is_over:
                _next(chat, lines)
        except BaseException as error:
            chat.end("cancelled" if isinstance(error, KeyboardInterrupt | SystemExit) else "error")
            if isinstance(error, ToldToEnd):
                with suppress(OSError):  # the terminal has gone
                    _say_how_to_go_on(chat)
            raise
        finally:
            lines.close()
        chat.end()
    _say_how_to_go_on(chat)
    if chat.has_lost or (chat.has_failed and not chat.face.is_interactive):
        raise Leave(FOUND)


def _say_how_to_go_on(chat: Chat) -> None:
    if chat.face.is_interactive and chat.is_recorded:
        chat.face.facts("left", [("log", chat.path), ("go on", chat.resume_line)])


def _next(chat: Chat, lines: Lines) -> None:
    """Read one text, and do what it says."""
    try:
        text = lines.read()
    except EOFError:
        chat.is_over = True
        return
    except KeyboardInterrupt:
        if not chat.face.is_interactive:
            raise
        if lines.is_empty:
            chat.face.say("Ctrl-D or /quit leaves")
        return
    if not text.strip():
        return
    try:
        if text.startswith("/") and not text.startswith("//") and "\n" not in text.strip():
            follow(chat, text)
        else:
            chat.take_turn(text.removeprefix("/") if text.startswith("//") else text)
    except KeyboardInterrupt:
        if not chat.face.is_interactive:
            raise
        chat.face.stopped()
    except SessionLogError as error:
        chat.fail(str(error))


@contextmanager
def _ending_tidily() -> Iterator[None]:
    """Save and end when the process is told to end, or its terminal has gone."""

    def leave(number: int, _: object) -> NoReturn:
        raise ToldToEnd(128 + number)

    known = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before: dict[Any, Any] = {number: signal.signal(number, leave) for number in known}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
