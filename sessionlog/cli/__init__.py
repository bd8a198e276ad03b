"""The words: one file per command. `main` is the entry point; it stays light so that start-up is paid for once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from sessionlog._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if argv in (["--version"], ["-V"]):
        sys.stdout.write(f"sessionlog {__version__}\n")
        return 0
    from sessionlog.cli.app import run  # noqa: PLC0415 - typer costs 100 ms

    try:
        code = run(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has gone: nothing is left to say
        with suppress(BrokenPipeError):
            sys.stdout.close()  # else the interpreter would try again, and complain
        return 0
    except KeyboardInterrupt:
        return 130
    return code
