"""The typer application with its commands. Only the called command is imported; help imports all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from sessionlog._version import __version__
from sessionlog.cli import options
from sessionlog.cli.functions import function_of
from sessionlog.cli.output import note, run_command
from sessionlog.cli.signatures import declare

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Reports": {
        "usage": "Report tokens, cache hits, success, speed and cost.",
        "models": "List models: requests, tokens, list price, cost, share.",
        "sessions": "List sessions: how they ended, what they cost.",
        "tools": "Report tool calls: errors, durations, output.",
        "blocks": "List five-hour blocks, their pace, and rate limits.",
        "yield": "Report what sessions committed to git, and its cost.",
        "advise": "Report what was paid without need, and what to do.",
        "budget": "Show what is left to spend, and check it.",
        "routing-quality": "Judge the router: how often its choice was kept.",
        "report": "Write the usage of a period as one HTML page.",
        "watch": "Watch running sessions, their pace and what is left.",
        "ui": "Browse sessions, conversations and usage on the terminal.",
    },
    "One session": {
        "status": "Show what a session used and what is left.",
        "replay": "Show a session as a conversation.",
        "diff": "Compare two sessions, from where they part.",
        "context": "Show what fills the context window, and what repeats.",
        "audit": "Compare an agent's log with what passed on the wire.",
    },
    "Logs, ledger and archive": {
        "find": "Find words in all sessions, and who changed a file.",
        "sources": "List the agents whose logs are found here.",
        "check": "Name every damaged byte by file and line; mend logs.",
        "scrub": "Find keys and passwords in logs; write clean copies.",
        "sql": "Query the ledger in SQL.",
        "export": "Export the ledger to OpenTelemetry, or as parquet.",
        "ledger": "Show, verify, rebuild and back up the ledger.",
        "archive": "Keep closed logs, so that they can be replayed later.",
        "pricing": "Show what a model costs, and the price's source.",
    },
    "Agents": {
        "run": "Run any command, and record what models answer it.",
        "guard": "Stop an agent at a budget or in a loop: its hook.",
        "chat": "Talk with an agent, and record it.",
        "mcp": "Answer agents' questions over MCP, on stdio.",
        "demo": "Show the reports on made-up logs of four agents.",
    },
}
"""The commands by heading, in the order of the help text, each with its summary."""

COMMANDS: Mapping[str, str] = {name: summary for group in GROUPS.values() for name, summary in group.items()}

SUBCOMMANDS: Mapping[str, Mapping[str, str]] = {
    "budget": {
        "check": "Exit with 1 if a budget is exceeded, and name it.",
        "reset": "Confirm the clock and the ledger as they are now.",
    },
    "ledger": {
        "sync": "Bring it up to date now, and show what was read.",
        "verify": "Compare it with the logs, and its sums with its rows.",
        "rebuild": "Read all logs again; keep the records of deleted logs.",
        "backup": "Copy it into a new file.",
        "forget": "Delete the records of deleted logs.",
    },
}
"""The subcommands of a command, each with its summary."""

_TYPE = re.compile(r" <[^>]*>$")


class _Command(TyperCommand):
    """A command whose help names values instead of Python types: `--speed SPEED`, not `--speed <str>`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options in groups."""
        _write_options(self.get_params(ctx), ctx, formatter)


class _Overview(TyperGroup):
    """The top-level help, which lists commands in the order of GROUPS."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names; typer itself would list commands with subcommands last."""
        return [name for name in COMMANDS if name in super(_Overview, self).list_commands(ctx)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer's signature
        """Write a list for each group, with the summaries aligned."""
        width = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            if lines := [(name.ljust(width), summary) for name, summary in group.items() if name in self.commands]:
                with formatter.section(heading):
                    formatter.write_dl(lines)


class _Group(TyperGroup):
    """A command with subcommands, whose help names values as `_Command` does."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _write_options(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)


def _write_options(params: Sequence[Any], ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {heading: [] for heading in ("Arguments", *options.GROUPS, "Options")}
    named = {name: heading for heading, names in options.GROUPS.items() for name in names}
    for param in params:
        record = param.get_help_record(ctx)
        if record is not None:
            heading = "Arguments" if param.param_type_name == "argument" else named.get(param.opts[0], "Options")
            sections[heading].append((_TYPE.sub(_value(param), record[0]), record[1]))
    for heading, lines in sections.items():
        if lines:
            with formatter.section(heading):
                formatter.write_dl(lines)


def _value(param: Any) -> str:
    return "" if param.param_type_name == "argument" else f" {param.opts[-1].lstrip('-').upper()}"


def build_app(
    commands: Sequence[str] = tuple(COMMANDS),
    *,
    only_overview: bool = False,
    has_options: bool = True,
    subcommand: str = "",
) -> typer.Typer:
    """Return the application with these commands; for the overview their modules and options are not needed.

    It needs no options of its own for a command line that begins with a command, nor does a command with a `subcommand`
    that is called. Typer would check them first, with pydantic, which takes more than half of the time of help.
    """
    built = typer.Typer(
        name="sessionlog",
        cls=_Overview,
        help="The flight recorder and the meter for AI agents.\n\nExample: sessionlog usage --since 7d",
        epilog="Start with `sessionlog demo`. Without a PATH the logs of every agent on this machine are read: "
        "`sessionlog sources` shows where they are looked for.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=has_options,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback(add_help_option=has_options)(_global if has_options else lambda: None)
    for name in commands:
        summary = COMMANDS[name]
        if only_overview:
            built.command(name, short_help=summary)(lambda: None)
        elif name in SUBCOMMANDS:
            built.add_typer(_group(name, subcommand), name=name, cls=_Group, short_help=summary)
        else:
            has_rest = any(option.kind == "rest" for option in options.COMMANDS[name])
            context = {"allow_interspersed_args": not has_rest}
            built.command(name, cls=_Command, short_help=summary, context_settings=context)(_command(name))
    return built


def _group(name: str, called: str = "") -> typer.Typer:
    """Return a command that also runs without a subcommand; only with the one that is called, if that is known."""
    group = typer.Typer(rich_markup_mode=None)
    if called:
        group.callback(add_help_option=False)(lambda: None)
    else:
        group.callback(invoke_without_command=True)(_alone(name))
    for part in [called] if called else SUBCOMMANDS[name]:
        group.command(part, cls=_Command, short_help=SUBCOMMANDS[name][part])(_command(f"{name} {part}"))
    return group


def _alone(name: str) -> Callable[..., None]:
    """Return a command with subcommands as it runs without one."""
    command = _command(name)

    @wraps(command)
    def alone(ctx: typer.Context, **settings: Any) -> None:
        if ctx.invoked_subcommand is None:
            command(**settings)

    declare(alone, options.COMMANDS[name], context=typer.Context)
    return alone


def _command(name: str) -> Callable[..., None]:
    """Return the command as typer expects it: the declared signature, and its exit code raised as `typer.Exit`."""
    function = function_of(name)

    @wraps(function)
    def run(**settings: Any) -> None:
        code = run_command(function, **settings)
        if code:
            raise typer.Exit(code)

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
    """Run one command line, or help if it is empty, and return its exit code; usage errors are printed escaped."""
    words = options.subcommand_first(arguments) or ["--help"]
    named = [word for word in words[:1] if word in COMMANDS]
    called = [word for word in words[1:2] if named and word in SUBCOMMANDS.get(words[0], ())]
    is_completion = "_SESSIONLOG_COMPLETE" in os.environ
    only_overview = words in (["--help"], ["-h"]) and not is_completion
    try:
        app = build_app(
            named or tuple(COMMANDS), only_overview=only_overview, has_options=is_completion or not named,
            subcommand="" if is_completion else "".join(called),
        )  # fmt: skip
        result = app(args=words, prog_name="sessionlog", standalone_mode=False)
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
