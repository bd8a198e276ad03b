"""The input of a chat: a person at a terminal, with line editing, or a pipe."""

from __future__ import annotations

import io
import locale
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Protocol

from sessionlog.cli.repl.history import InputHistory
from sessionlog.render.chat import prompt


class Input(Protocol):
    """Yields the user's texts, one at a time.

    Attributes:
        is_empty: Nothing was typed when Ctrl-C was pressed.
    """

    is_empty: bool

    def read(self) -> str:
        """Return the next text.

        Raises:
            EOFError: There is no more.
            KeyboardInterrupt: Ctrl-C.
        """

    def close(self) -> None:
        """Release readline."""


class TerminalInput:
    """A person's lines, edited with readline if Python has it. A line that ends with a backslash continues below."""

    def __init__(self, history: InputHistory, commands: Sequence[str], *, coloured: bool) -> None:
        self._history, self._commands = history, sorted(commands)
        self._readline = _readline()
        self._coloured = coloured
        self._last: str | None = None
        self.is_empty = True
        if self._readline is not None:
            self._prepare(self._readline)

    def read(self) -> str:
        """Prompt for a text and return it."""
        self.is_empty = True
        lines: list[str] = []
        while True:
            try:
                lines.append(self._line(first=not lines))
            except EOFError:
                if not lines:
                    raise
                break
            if not lines[-1].endswith("\\"):
                break
            lines[-1] = lines[-1][:-1]
        text = valid_unicode("\n".join(lines))
        self._remember(text)
        return text

    def close(self) -> None:
        """Remove the completer."""
        if self._readline is not None:
            self._readline.set_completer(None)

    def complete(self, text: str, state: int) -> str | None:
        """Return the command number `state` that begins with `text`; None ends readline's list."""
        assert self._readline is not None
        is_command = self._readline.get_begidx() == 0 and text.startswith("/")
        found = [name for name in self._commands if name.startswith(text)] if is_command else []
        return f"{found[state]} " if state < len(found) else None

    def _line(self, *, first: bool) -> str:
        coloured, unicode = self._coloured, _supports_unicode()
        try:
            return input(prompt(first=first, coloured=coloured, unicode=unicode, edited=self._readline is not None))
        except (KeyboardInterrupt, EOFError):
            self.is_empty = first and (self._readline is None or not self._readline.get_line_buffer())
            sys.stdout.write("\n")  # leave the prompt's row
            raise

    def _remember(self, text: str) -> None:
        if not text.strip() or text == self._last:
            return
        self._last = text
        self._history.add(text)
        if self._readline is not None:
            self._readline.add_history(text)

    def _prepare(self, readline: ModuleType) -> None:
        readline.set_auto_history(False)
        readline.set_completer_delims(" \t\n")
        readline.set_completer(self.complete)
        old = "libedit" in (readline.__doc__ or "")  # macOS
        readline.parse_and_bind("bind ^I rl_complete" if old else "tab: complete")
        if not old:  # a pasted text of several lines is one text; Python turns that off
            readline.parse_and_bind("set enable-bracketed-paste on")
        readline.clear_history()
        for text in self._history.texts():
            readline.add_history(text)
            self._last = text


class PipedInput:
    """The lines of a pipe or a file."""

    def __init__(self) -> None:
        stream = sys.stdin
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
        self._stream = stream
        self.is_empty = True

    def read(self) -> str:
        """Return the next line without its end."""
        line = self._stream.readline() if self._stream is not None else ""
        if not line:
            raise EOFError
        return valid_unicode(line.rstrip("\r\n"))

    def close(self) -> None:
        """Do nothing."""


def valid_unicode(text: str) -> str:
    """Return a text with undecodable bytes (lone surrogates) replaced by U+FFFD, so that any encoder accepts it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if not text.isascii() else text


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:
        return None
    return readline


def _supports_unicode() -> bool:
    """Whether both stdout and readline, which uses the locale's encoding, can show the prompt's symbols."""
    encodings = (getattr(sys.stdout, "encoding", None) or "", locale.getencoding())
    return all(encoding.lower().replace("-", "") == "utf8" for encoding in encodings)
