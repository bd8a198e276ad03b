"""The typer application: which commands there are. Only the one that is called is imported, all for help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

from sessionlog._version import __version__
from sessionlog.cli.output import guarded, note

COMMANDS: Mapping[str, str] = {
    "usage": "sessionlog.cli.usage:usage",
    "sessions": "sessionlog.cli.sessions:sessions",
    "replay": "sessionlog.cli.replay:replay",
    "routing-quality": "sessionlog.cli.routing_quality:routing_quality",
    "check": "sessionlog.cli.check:check",
    "pricing": "sessionlog.cli.pricing:pricing",
    "demo": "sessionlog.cli.demo:demo",
}
"""Command → module and function, in the order of the help text."""


def build_app(commands: Sequence[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the application with these commands."""
    built = typer.Typer(
        name="sessionlog",
        help="The flight recorder and the meter for AI agents.\n\nExample: sessionlog usage --since 7d",
        epilog="Start with `sessionlog demo`. Logs are looked for in $SESSIONLOG_DIR or the state folder of your user.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback()(_global)
    for name in commands:
        module, function = COMMANDS[name].split(":")
        built.command(name)(guarded(getattr(import_module(module), function)))
    return built


def _version(value: bool) -> None:
    if value:
        typer.echo(f"sessionlog {__version__}")
        raise typer.Exit


def _global(
    *,
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Record, read back, replay and measure the sessions of AI agents.

    Example: sessionlog usage --since 7d
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line; usage errors are said with control characters made harmless."""
    named = [argument for argument in arguments[:1] if argument in COMMANDS]
    try:
        result = build_app(named or tuple(COMMANDS))(
            args=list(arguments), prog_name="sessionlog", standalone_mode=False
        )
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        note(f"sessionlog: {message()}")
        note(_next_step(arguments))
        return int(getattr(error, "exit_code", 2))
    return result if isinstance(result, int) else 0


def _next_step(arguments: Sequence[str]) -> str:
    command = f" {arguments[0]}" if arguments and arguments[0] in COMMANDS else ""
    return f"Try: sessionlog{command} --help"


def __getattr__(name: str) -> typer.Typer:
    """`app`, with every command, for tests and documentation tools."""
    if name == "app":
        return build_app()
    raise AttributeError(name)
