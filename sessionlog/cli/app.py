"""The typer application: which commands there are. Only the one that is called is imported, all for help."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from sessionlog._version import __version__
from sessionlog.cli import options
from sessionlog.cli.declared import declare
from sessionlog.cli.output import ended, note
from sessionlog.cli.reports import REPORTS, command_of


class Word(NamedTuple):
    """One command: the module that has it, and what it does in fewer words than a line of help has."""

    home: str
    summary: str


GROUPS: Mapping[str, Mapping[str, Word]] = {
    "Reports": {
        "usage": Word("reports", "Report tokens, cache hits, success, speed and cost."),
        "models": Word("reports", "List models: requests, tokens, list price, cost, share."),
        "sessions": Word("reports", "List sessions: how they ended, what they cost."),
        "tools": Word("reports", "Report tool calls: errors, durations, output."),
        "blocks": Word("reports", "List five-hour blocks, their pace, and rate limits."),
        "budget": Word("budget", "Show what is left to spend, and check it."),
        "routing-quality": Word("routing_quality", "Judge the router: how often its choice was kept."),
        "watch": Word("watch", "Watch running sessions, their pace and what is left."),
    },
    "One session": {
        "status": Word("status", "Tell what a session used and what is left."),
        "replay": Word("replay", "Show a session as a conversation."),
        "diff": Word("diff", "Compare two sessions, from where they part."),
        "context": Word("context", "Show what fills the context window, and what repeats."),
    },
    "Logs and what is kept": {
        "sources": Word("reports", "List the agents whose logs are found here."),
        "check": Word("check", "Name every damaged byte by file and line; mend logs."),
        "scrub": Word("scrub", "Find keys and passwords in logs; write clean copies."),
        "sql": Word("sql", "Ask the ledger a question of your own, in SQL."),
        "ledger": Word("ledger", "Show, prove, rebuild and back up what is remembered."),
        "archive": Word("archive", "Keep closed logs, so that they can be replayed later."),
        "pricing": Word("pricing", "Show what a model costs, and who says so."),
    },
    "Agents": {
        "chat": Word("chat", "Talk with an agent, and record it."),
        "mcp": Word("mcp", "Answer agents' questions over MCP, on stdio."),
        "demo": Word("demo", "Record a scripted run, and show every report on it."),
    },
}
"""The commands by what they are for, in the order of the help text."""

COMMANDS: Mapping[str, Word] = {name: word for group in GROUPS.values() for name, word in group.items()}

_TYPE = re.compile(r" <[^>]*>$")


class _Command(TyperCommand):
    """A command whose help names values instead of Python types: `--speed SPEED`, not `--speed <str>`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options as two lists."""
        _write_options(self.get_params(ctx), ctx, formatter)


class _Overview(TyperGroup):
    """All commands, in the order in which they stand above."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names; typer alone would put those that have commands of their own at the end."""
        return [name for name in COMMANDS if name in super(_Overview, self).list_commands(ctx)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        """Write a list for each group, their summaries below each other."""
        width = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            if lines := [(name.ljust(width), word.summary) for name, word in group.items() if name in self.commands]:
                with formatter.section(heading):
                    formatter.write_dl(lines)


class _Group(TyperGroup):
    """The same for a command that has commands of its own."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _write_options(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)


def _write_options(params: Sequence[Any], ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *options.GROUPS, "Options")}
    for param in params:
        record = param.get_help_record(ctx)
        if record is not None:
            named = {name: heading for heading, names in options.GROUPS.items() for name in names}
            heading = "Arguments" if param.param_type_name == "argument" else named.get(param.opts[0], "Options")
            sections[heading].append((_TYPE.sub(_value(param), record[0]), record[1]))
    for heading, lines in sections.items():
        if lines:
            with formatter.section(heading):
                formatter.write_dl(lines)


def _value(param: Any) -> str:
    return "" if param.param_type_name == "argument" else f" {param.opts[-1].lstrip('-').upper()}"


def build_app(commands: Sequence[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the application with these commands."""
    built = typer.Typer(
        name="sessionlog",
        cls=_Overview,
        help="The flight recorder and the meter for AI agents.\n\nExample: sessionlog usage --since 7d",
        epilog="Start with `sessionlog demo`. Without a PATH the logs of every agent on this machine are read: "
        "`sessionlog sources` says where they are looked for.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback()(_global)
    for name in commands:
        module, summary = import_module(f"sessionlog.cli.{COMMANDS[name].home}"), COMMANDS[name].summary
        command = _command(name, function_of(name))
        if hasattr(module, "PARTS"):
            built.add_typer(_group(command, module.PARTS), name=name, cls=_Group, short_help=summary)
        else:
            built.command(name, cls=_Command, short_help=summary)(command)
    return built


def function_of(name: str) -> Callable[..., None]:
    """Return a command's function."""
    if name in REPORTS:
        return command_of(name)
    function: Callable[..., None] = getattr(import_module(f"sessionlog.cli.{COMMANDS[name].home}"), COMMANDS[name].home)
    return function


def _group(command: Callable[..., None], parts: Mapping[str, tuple[Callable[..., None], str]]) -> typer.Typer:
    """A command that has commands of its own; alone it is a command, too."""
    group = typer.Typer(rich_markup_mode=None)
    group.callback(invoke_without_command=True)(command)
    for name, (part, summary) in parts.items():
        group.command(name, cls=_Command, short_help=summary)(_command(name, part))
    return group


def _command(name: str, function: Callable[..., None]) -> Callable[..., None]:
    """A command as typer takes it: with the signature it was declared with, and an exit code at its end."""

    @wraps(function)
    def run(*args: Any, **settings: Any) -> None:
        code = ended(function, *args, **settings)
        if code:
            raise typer.Exit(code)

    if name in options.COMMANDS:
        declare(run, options.COMMANDS[name])
    return run


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
    """Run one command line, help when it is empty; usage errors are said with control characters made harmless."""
    words = list(arguments) or ["--help"]
    named = [word for word in words[:1] if word in COMMANDS]
    try:
        result = build_app(named or tuple(COMMANDS))(args=words, prog_name="sessionlog", standalone_mode=False)
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        note(f"sessionlog: {message()}")
        note(_next_step(words))
        return int(getattr(error, "exit_code", 2))
    return result if isinstance(result, int) else 0


def _next_step(arguments: Sequence[str]) -> str:
    command = f" {arguments[0]}" if arguments[0] in COMMANDS else ""
    return f"Try: sessionlog{command} --help"


def __getattr__(name: str) -> typer.Typer:
    """`app`, with every command, for tests and documentation tools."""
    if name == "app":
        return build_app()
    raise AttributeError(name)
