"""What every command says in the same way: data to stdout, notes to stderr, errors with the next step.

Exit codes: 0 fine, 1 the command found what it looks for, 2 wrong usage, 3 data unreadable, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import typer

from sessionlog.errors import LogNotReadable, MissingExtra, NotRecorded, SessionLogError
from sessionlog.render.escape import terminal

FOUND, USAGE, UNREADABLE = 1, 2, 3

_F = TypeVar("_F", bound=Callable[..., Any])


def note(text: str) -> None:
    """Say something beside the data, on stderr; untrusted parts are made harmless."""
    print(terminal(text), file=sys.stderr)


def fail(text: str, code: int = USAGE) -> NoReturn:
    """Say what was wrong and leave with `code`."""
    note(f"sessionlog: {text}")
    raise typer.Exit(code)


def guarded(command: _F) -> _F:
    """Turn the errors that the library names into a sentence and an exit code."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:  # the reader of a pipe has gone: nothing is left to say, and typer would exit with 1
            raise typer.Exit from None
        except SessionLogError as error:
            fail(str(error), UNREADABLE if isinstance(error, LogNotReadable | MissingExtra | NotRecorded) else USAGE)

    return cast("_F", run)


def print_json(value: Any) -> None:
    """Print one JSON document; `value` is built of JSON types, and strings of it may be hostile: ASCII only."""
    print(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f"))


def print_text(text: str) -> None:
    """Print finished text as it is, with characters the terminal cannot show replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
