"""The fast path into every command: parse the command line here, without the 100 ms that typer takes to load.

It parses well-formed command lines only, by the same declarations and to the same settings as typer. It declines
everything else (help, mistakes, completion, abbreviated and repeated options): typer parses that and reports errors.
"""

from __future__ import annotations

import os

from sessionlog.cli.options import COMMANDS, FORMATS, Option, settings_of, subcommand_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_COMPLETION = "_SESSIONLOG_COMPLETE"
_MAX_DIGITS = 9


def run(argv: Sequence[str]) -> int | None:
    """Run a command line and return its exit code; None if the fast path declines it."""
    argv = subcommand_first(argv)
    settings = parse(argv)
    if argv[:1] == ["guard"]:  # agents wait for it, and read exit code 2, which typer has for mistakes, as "block"
        from sessionlog.cli.guard import answer_hook, is_hook

        if is_hook(argv):
            return answer_hook(argv, settings)
    if settings is None:
        return None
    from sessionlog.cli.functions import function_of
    from sessionlog.cli.output import run_command

    return run_command(function_of(command_name(argv) or ""), **settings)


def command_name(argv: Sequence[str]) -> str | None:
    """Return the command that a command line begins with, such as `ledger` or `ledger sync`; None if there is none."""
    names = (" ".join(argv[:length]) for length in (2, 1) if len(argv) >= length)
    return next((name for name in names if name in COMMANDS), None)


def parse(argv: Sequence[str]) -> dict[str, Any] | None:
    """Return the settings of a command line by name; None if typer has to parse it."""
    command = command_name(argv)
    if command is None or any(name.startswith(_COMPLETION) for name in os.environ):
        return None
    declared = COMMANDS[command]
    named = {name: option for option in declared for name in (option.name, option.short) if name is not None}
    given = _read(argv[len(command.split()) :], named)
    if given is None or sum(form.setting in given for form in FORMATS) > 1:
        return None
    if any(option.required and option.setting not in given for option in declared):
        return None
    return settings_of(command, given)


def _read(words: Sequence[str], options: dict[str, Option]) -> dict[str, Any] | None:
    given: dict[str, Any] = {}
    tail = options[""] if "" in options and options[""].kind == "rest" else None
    rest = iter(words)
    for word in rest:
        if tail is not None and (word == "--" or not word.startswith("-")):
            given[tail.setting] = [*([] if word == "--" else [word]), *rest] or None
            return given
        name, equals, value = word.partition("=") if word.startswith("-") else ("", "=", word)
        option = options.get(name)
        if option is None:
            return None
        if option.kind != "flag" and not equals:
            value = next(rest, "")
            if value.startswith("-") and value != "-":
                return None
        setting = True if option.kind == "flag" and not equals else _value(option, value)
        if setting is None or (option.setting in given and option.kind != "texts"):
            return None
        if option.kind == "texts":
            given.setdefault(option.setting, []).append(setting)
        else:
            given[option.setting] = setting
    return given


def _value(option: Option, text: str) -> str | float | None:
    """Return an option's value from its text; None if it is empty or may be invalid."""
    if option.kind == "flag" or not text.strip():
        return None
    if option.kind == "decimal":
        plain = text.replace(".", "", 1)
        fits = plain.isascii() and plain.isdigit() and len(text) <= _MAX_DIGITS
        return float(text) if fits and (option.least is None or float(text) >= option.least) else None
    if option.kind != "number":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    number = int(text)
    fits = (option.least is None or number >= option.least) and (option.most is None or number <= option.most)
    return number if fits and text == str(number) else None
