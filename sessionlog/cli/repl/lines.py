"""Where the lines of a chat come from: a person at a terminal, who can edit them, or a pipe.

A reader gives one text at a time and raises EOFError at the end; Ctrl-C is KeyboardInterrupt.
"""

from __future__ import annotations

import io
import locale
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Protocol

from sessionlog.cli.repl.history import TypedBefore
from sessionlog.render.chat import prompt


class Lines(Protocol):
    """Gives what is said, text by text.

    Attributes:
        is_empty: Nothing was typed when Ctrl-C came.
    """

    is_empty: bool

    def read(self) -> str:
        """Return the next text.

        Raises:
            EOFError: There is no more.
            KeyboardInterrupt: Ctrl-C.
        """

    def close(self) -> None:
        """Give back what was taken."""


class TypedLines:
    """Lines of a person, with readline where Python has it. A line that ends with a backslash goes on in the next."""

    def __init__(self, typed: TypedBefore, words: Sequence[str], *, coloured: bool) -> None:
        self._typed, self._words = typed, sorted(words)
        self._readline = _readline()
        self._coloured = coloured
        self._last: str | None = None
        self.is_empty = True
        if self._readline is not None:
            self._prepare(self._readline)

    def read(self) -> str:
        """Ask for a text."""
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
        text = sound("\n".join(lines))
        self._remember(text)
        return text

    def close(self) -> None:
        """Complete nothing any more."""
        if self._readline is not None:
            self._readline.set_completer(None)

    def complete(self, text: str, state: int) -> str | None:
        """Return one of the commands that begin with what was typed; readline asks until there is none."""
        assert self._readline is not None
        at_begin = self._readline.get_begidx() == 0
        found = [word for word in self._words if word.startswith(text)] if at_begin and text.startswith("/") else []
        return f"{found[state]} " if state < len(found) else None

    def _line(self, *, first: bool) -> str:
        coloured, unicode = self._coloured, _speaks_unicode()
        try:
            return input(prompt(first=first, coloured=coloured, unicode=unicode, edited=self._readline is not None))
        except (KeyboardInterrupt, EOFError):
            self.is_empty = first and (self._readline is None or not self._readline.get_line_buffer())
            sys.stdout.write("\n")  # the prompt's row is left
            raise

    def _remember(self, text: str) -> None:
        if not text.strip() or text == self._last:
            return
        self._last = text
        self._typed.add(text)
        if self._readline is not None:
            self._readline.add_history(text)

    def _prepare(self, readline: ModuleType) -> None:
        readline.set_auto_history(False)
        readline.set_completer_delims(" \t\n")
        readline.set_completer(self.complete)
        old = "libedit" in (readline.__doc__ or "")  # macOS
        readline.parse_and_bind("bind ^I rl_complete" if old else "tab: complete")
        if not old:  # a text of several lines that is pasted is one text; Python switches that off
            readline.parse_and_bind("set enable-bracketed-paste on")
        readline.clear_history()
        for text in self._typed.texts():
            readline.add_history(text)
            self._last = text


class PipedLines:
    """Lines of a pipe or a file, each as it is."""

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
        return sound(line.rstrip("\r\n"))

    def close(self) -> None:
        """Nothing was taken."""


def sound(text: str) -> str:
    """Return a text that any encoder takes: what was typed in no known encoding becomes a sign."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if not text.isascii() else text


def _readline() -> ModuleType | None:
    try:
        import readline  # noqa: PLC0415 - it takes hold of the terminal, which a pipe has not
    except ImportError:
        return None
    return readline


def _speaks_unicode() -> bool:
    """Whether both the stream and the editor of lines, which goes by the locale, can show our signs."""
    encodings = (getattr(sys.stdout, "encoding", None) or "", locale.getencoding())
    return all(encoding.lower().replace("-", "") == "utf8" for encoding in encodings)
