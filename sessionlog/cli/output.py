"""The output of every command: data to stdout, notes to stderr, errors with the next step.

Exit codes: 0 success, 1 findings (such as damage, an exceeded budget, a difference) or nothing found (`find`), 2 wrong
usage, 3 data unreadable, 130 interrupted.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

FOUND, USAGE, UNREADABLE = 1, 2, 3
_PATHS = ("paths", "target", "pair")  # settings that name logs and folders
PIECE = 1 << 20  # characters written at once


class Exit(Exception):
    """End the command with an exit code, after it has printed everything.

    Attributes:
        code: The exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def note(text: str) -> None:
    """Print a note to stderr, escaped for the terminal."""
    from sessionlog.render.escape import terminal

    print(terminal(text), file=sys.stderr)


def fail(text: str, code: int = USAGE) -> NoReturn:
    """Print an error and end the command with `code`.

    Raises:
        Exit: Always.
    """
    note(f"sessionlog: {text}")
    raise Exit(code)


def run_command(command: Callable[..., None], /, *args: Any, **settings: Any) -> int:
    """Run a command and return its exit code; an error of the library is printed in one line."""
    from contextvars import copy_context

    try:
        if any("://" in str(settings.get(name)) for name in _PATHS):
            from sessionlog.cli.remote_paths import with_places

            command = with_places(command, _PATHS)
        copy_context().run(command, *args, **settings)  # context variables that a command sets end with it
    except BrokenPipeError:  # the reader has closed the pipe
        return 0
    except Exit as stop:
        return stop.code
    except Exception as error:
        from sessionlog import errors

        if not isinstance(error, errors.SessionLogError):
            raise
        note(f"sessionlog: {error}")
        unreadable = isinstance(
            error,
            errors.EngineFailed | errors.LogNotReadable | errors.MissingExtra | errors.NotExported | errors.NotRecorded,
        )
        return UNREADABLE if unreadable else USAGE
    return 0


def print_json(value: Any) -> None:
    """Print one JSON document, in ASCII because its strings are untrusted.

    Lists of the outermost object may be iterators; they are written item by item.
    """
    if isinstance(value, dict) and value:
        for piece in _pieces(value):
            sys.stdout.write(piece)
        print()
        return
    print(json_text(value))


def _pieces(value: dict[str, Any]) -> Iterator[str]:
    """Yield an object's JSON in pieces: see `json_text`."""
    before = "{\n  "
    for key, item in value.items():
        yield f"{before}{_quoted(key)}: "
        before = ",\n  "
        if isinstance(item, str | dict | int | float) or item is None:
            yield json_text(item, "\n  ")
            continue
        begun = "["
        for one in item:
            yield f"{begun}\n    {json_text(one, chr(10) + '    ')}"
            begun = ","
        yield "[]" if begun == "[" else "\n  ]"
    yield "\n}"


def json_text(value: Any, line: str = "\n") -> str:
    """Return a JSON value as `json.dumps` with an indent of 2 writes it, without the time that importing json takes.

    Raises:
        ValueError: A number is not finite.
        TypeError: It is no JSON value.
    """
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if value - value != 0.0:
            raise ValueError(f"{value} is not JSON compliant")
        return float.__repr__(value)
    inner = f"{line}  "
    if isinstance(value, dict):
        items, first, last = [f"{_quoted(key)}: {json_text(item, inner)}" for key, item in value.items()], "{", "}"
    elif isinstance(value, list | tuple):
        items, first, last = [json_text(item, inner) for item in value], "[", "]"
    else:
        raise TypeError(f"{type(value).__name__} is not a JSON value")
    return f"{first}{inner}{f',{inner}'.join(items)}{line}{last}" if items else first + last


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii

    return encode_basestring_ascii(text).replace("\x7f", "\\u007f")


def print_text(text: str) -> None:
    """Print escaped text, with characters that stdout cannot encode replaced."""
    encoding, errors = sys.stdout.encoding or "utf-8", sys.stdout.errors
    errors = "replace" if errors in (None, "strict") else errors
    for start in range(0, len(text), PIECE):
        sys.stdout.write(text[start : start + PIECE].encode(encoding, errors).decode(encoding))
