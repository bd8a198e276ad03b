"""The command line, one module per command. `main` is the entry point; it imports little, so that start-up is fast.

Errors of the streams show no traceback: a closed pipe is silent, a full disk is one line on stderr.
"""

from __future__ import annotations

import io
import sys

from sessionlog._version import __version__
from sessionlog.cli import fast_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    _prepare_streams()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        return _close_stdout()
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # rich and typer turn a broken pipe into SystemExit
            raise
        return _close_stdout()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        from sessionlog.cli.guard import is_hook
        from sessionlog.cli.output import UNREADABLE, note

        _close_stdout()
        note(f"sessionlog: {error.filename or 'the output'}: {error.strerror or error}")
        return 0 if is_hook(argv) else UNREADABLE
    return code


def _run(argv: list[str]) -> int:
    argv = _expand_alias(argv)
    if argv in (["--version"], ["-V"]):
        sys.stdout.write(f"sessionlog {__version__}\n")
        return 0
    if not argv and sys.stdout.isatty():
        return _run_dashboard()
    code = fast_path.run(argv)
    if code is not None:
        return code
    from sessionlog.cli.app import run

    return run(argv)


def _run_dashboard() -> int:
    """Show the short overview: without arguments on a terminal; a pipe gets the help."""
    from sessionlog.cli.dashboard import dashboard
    from sessionlog.cli.output import run_command

    return run_command(dashboard)


PERIODS = {"daily": "day", "weekly": "week", "monthly": "month"}


def _expand_alias(argv: list[str]) -> list[str]:
    """Expand `help [COMMAND]`, `version`, `calendar`, and periods: `daily -b model` is `usage --by day -b model`."""
    word, rest = (argv[0], argv[1:]) if argv else ("", [])
    if word == "help":
        return [*rest, "--help"]
    if word == "version" and not rest:
        return ["--version"]
    if word == "calendar":
        return ["usage", "--heatmap", *rest]
    if word not in PERIODS:
        return argv
    return ["usage", "--by", PERIODS[word], *rest]


def _prepare_streams() -> None:
    """Make streams replace characters that their encoding lacks; output to a missing stream is discarded."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_error_handler(stream))


def _error_handler(stream: io.TextIOWrapper) -> str:
    """Return the codec error handler of a stream; UTF-8 lacks only lone surrogates."""
    if stream.encoding.lower() in ("utf-8", "utf8"):
        return "replace"
    from sessionlog.render.look_alikes import ERRORS

    return ERRORS


def _close_stdout() -> int:
    """Close stdout and return 0: otherwise the interpreter flushes it again at exit and prints an error."""
    from contextlib import suppress

    with suppress(OSError):
        sys.stdout.close()
    return 0
