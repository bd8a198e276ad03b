"""The command line, run inside the test's process."""

from dataclasses import dataclass

from sessionlog.cli.app import run as run_command


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str


def run(capsys, *arguments: str) -> Done:
    """Run one command line; `capsys` has what it prints."""
    code = run_command(arguments)
    printed = capsys.readouterr()
    return Done(code=code, out=printed.out, err=printed.err)
