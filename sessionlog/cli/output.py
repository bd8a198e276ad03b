"""What every command says in the same way: data to stdout, notes to stderr, errors with the next step.

Exit codes: 0 fine, 1 the command found what it looks for, 2 wrong usage, 3 data unreadable, 130 interrupted.
"""

from __future__ import annotations

import sys

from sessionlog.errors import LogNotReadable, MissingExtra, NotRecorded, SessionLogError
from sessionlog.render.escape import terminal

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

FOUND, USAGE, UNREADABLE = 1, 2, 3


class Leave(Exception):
    """The command is at its end: what there is to say has been said.

    Attributes:
        code: The exit code.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def note(text: str) -> None:
    """Say something beside the data, on stderr; untrusted parts are made harmless."""
    print(terminal(text), file=sys.stderr)


def fail(text: str, code: int = USAGE) -> NoReturn:
    """Say what was wrong and leave with `code`."""
    note(f"sessionlog: {text}")
    raise Leave(code)


def ended(command: Callable[..., None], /, *args: Any, **settings: Any) -> int:
    """Run a command to its end and return its exit code; errors that the library names become a sentence."""
    try:
        command(*args, **settings)
    except BrokenPipeError:  # the reader of a pipe has gone: nothing is left to say
        return 0
    except Leave as stop:
        return stop.code
    except SessionLogError as error:
        note(f"sessionlog: {error}")
        return UNREADABLE if isinstance(error, LogNotReadable | MissingExtra | NotRecorded) else USAGE
    return 0


def print_json(value: Any) -> None:
    """Print one JSON document; `value` is built of JSON types, and strings of it may be hostile: ASCII only."""
    import json  # noqa: PLC0415 - 1 ms, which tables save

    print(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False).replace("\x7f", "\\u007f"))


def print_text(text: str) -> None:
    """Print finished text as it is, with characters the terminal cannot show replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
