"""The slash commands: one table for help, completion and suggestions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from sessionlog.cli.context import context
from sessionlog.cli.options import settings_of
from sessionlog.cli.repl.chat import Chat
from sessionlog.cli.reports import report_function
from sessionlog.cli.status import status


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One slash command.

    Attributes:
        help: Its line of help.
        run: Runs it with its argument, an empty text for none.
        arg: The argument's name in the help; empty if it takes none.
        aliases: Other names.
    """

    help: str
    run: Callable[[Chat, str], None]
    arg: str = ""
    aliases: tuple[str, ...] = ()


def _status(chat: Chat, _: str) -> None:
    chat.report("status", status, **settings_of("status", {"session": chat.path, "as_json": chat.output.wants_json}))
    if chat.is_recorded and not chat.session.usage and not chat.output.wants_json:
        chat.output.note("the context fill is not known: the agent reported no token usage; /context estimates it")


def _usage(chat: Chat, _: str) -> None:
    settings = settings_of("usage", {"paths": [chat.path], "as_json": chat.output.wants_json})
    chat.report("usage", report_function("usage"), **settings)


def _context(chat: Chat, _: str) -> None:
    chat.report("context", context, **settings_of("context", {"target": chat.path, "as_json": chat.output.wants_json}))


def _clear(chat: Chat, _: str) -> None:
    chat.session.clear()
    chat.output.note("the history is empty; the log keeps all messages")


def _quit(chat: Chat, _: str) -> None:
    chat.is_over = True


COMMANDS = {
    "/save": Command(help="Save the session as a JSON file.", arg="[FILE]", run=Chat.save),
    "/session": Command(
        help="Show which session it is, and where its log is.",
        run=lambda chat, _: chat.output.facts("session", chat.facts()),
    ),
    "/status": Command(help="Show its use, how full the context window is, and what is left.", run=_status),
    "/usage": Command(help="Report its tokens and cost by model.", run=_usage),
    "/context": Command(help="Show what fills the context window.", run=_context),
    "/fork": Command(help="Continue in a copy; this session stays as it is.", run=lambda chat, _: chat.fork()),
    "/undo": Command(help="Remove the newest turn.", run=lambda chat, _: chat.undo()),
    "/clear": Command(help="Empty the history; the log keeps all messages.", run=_clear),
    "/help": Command(help="List the commands.", run=lambda chat, _: chat.output.facts("help", help_rows())),
    "/quit": Command(help="Leave, as Ctrl-D does.", run=_quit, aliases=("/exit", "/q")),
}
"""In the order of the help."""

_BY_NAME = {alias: command for name, command in COMMANDS.items() for alias in (name, *command.aliases)}


def help_rows() -> list[tuple[str, str]]:
    """Return every command with its line of help."""
    rows = [(f"{name} {command.arg}".rstrip(), command.help) for name, command in COMMANDS.items()]
    return [*rows, ("//text", "Send a text that begins with a slash."), ("\\", "At a line's end: continue below.")]


def run_slash_command(chat: Chat, line: str) -> None:
    """Run the slash command of a line; an unknown one is an error that suggests the closest name."""
    name, _, rest = line.strip().partition(" ")
    command, argument = _BY_NAME.get(name), rest.strip()
    if command is None:
        near = get_close_matches(name, _BY_NAME, n=1)
        hint = f"did you mean {near[0]}?" if near else "/help lists the commands"
        chat.fail(f"there is no {name}; {hint} (begin a text with // to send one that begins with /)")
    elif argument and not command.arg:
        chat.fail(f"{name} takes no argument; /help lists the commands")
    else:
        command.run(chat, argument)
