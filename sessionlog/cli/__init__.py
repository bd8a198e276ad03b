"""The words: one file per command. `main` is the entry point; it stays light so that start-up is paid for once.

Whatever happens to the streams, no traceback is shown: a reader that has gone is silence, a full disk is a sentence.
"""

from __future__ import annotations

import gc
import io
import sys

from sessionlog._version import __version__
from sessionlog.cli import hot

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if arguments is not None:
        return _main(list(arguments))
    try:
        return _main(sys.argv[1:])
    finally:
        gc.freeze()  # this process is at its end: to look for garbage once more would cost it 2 ms


def _main(argv: list[str]) -> int:
    _prepare_streams()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        return _give_up()
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # else rich or typer has seen the pipe break first
            raise
        return _give_up()
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        from sessionlog.cli.output import UNREADABLE, note  # noqa: PLC0415 - as above

        _give_up()
        note(f"sessionlog: {error.filename or 'the output'}: {error.strerror or error}")
        return UNREADABLE
    return code


def _run(argv: list[str]) -> int:
    argv = _meant(argv)
    if argv in (["--version"], ["-V"]):
        sys.stdout.write(f"sessionlog {__version__}\n")
        return 0
    code = hot.run(argv)
    if code is not None:
        return code
    from sessionlog.cli.app import run  # noqa: PLC0415 - typer costs 100 ms, which the short ways save

    return run(argv)


PERIODS = {"daily": "day", "weekly": "week", "monthly": "month"}


def _meant(argv: list[str]) -> list[str]:
    """What words that people try mean: `help [COMMAND]`, `version`, `calendar`, `daily -b model` (`--by day,model`)."""
    word, rest = (argv[0], argv[1:]) if argv else ("", [])
    if word == "help":
        return [*rest, "--help"]
    if word == "version" and not rest:
        return ["--version"]
    if word == "calendar":
        return ["usage", "--heatmap", *rest]
    if word not in PERIODS:
        return argv
    by = [PERIODS[word]]
    while (place := next((n for n, one in enumerate(rest[:-1]) if one in ("--by", "-b")), None)) is not None:
        by.append(rest[place + 1])
        rest = rest[:place] + rest[place + 2 :]
    return ["usage", "--by", ",".join(by), *rest]


def _prepare_streams() -> None:
    """Let streams replace what their encoding lacks, and drop what is written to a closed one."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_errors_of(stream))


def _errors_of(stream: io.TextIOWrapper) -> str:
    """The error handler of a stream: UTF-8 lacks only half characters."""
    if stream.encoding.lower() in ("utf-8", "utf8"):
        return "replace"
    from sessionlog.render.look_alikes import ERRORS  # noqa: PLC0415 - for few terminals

    return ERRORS


def _give_up() -> int:
    """Close stdout: else the interpreter would flush it once more at its end, and complain."""
    from contextlib import suppress  # noqa: PLC0415 - 2 ms, for what hardly happens

    with suppress(OSError):
        sys.stdout.close()
    return 0
