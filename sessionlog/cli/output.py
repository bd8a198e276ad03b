"""What every command says in the same way: data to stdout, notes to stderr, errors with the next step.

Exit codes: 0 fine, 1 the command found what it looks for, 2 wrong usage, 3 data unreadable, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

import typer

from sessionlog.render.escape import terminal

FOUND, USAGE, UNREADABLE, INTERRUPTED = 1, 2, 3, 130


def note(text: str) -> None:
    """Say something beside the data, on stderr; untrusted parts are made harmless."""
    print(terminal(text), file=sys.stderr)  # noqa: T201 - cli/ is where printing happens


def fail(text: str, code: int = USAGE) -> NoReturn:
    """Say what was wrong and leave with `code`."""
    note(f"sessionlog: {text}")
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """Print one JSON document; `value` is built of JSON types, and strings of it may be hostile: ASCII only."""
    print(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False))  # noqa: T201 - cli/ is where printing happens
