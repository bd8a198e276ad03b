"""The short way into every command: parsed here, without the 100 ms that typer takes to load.

Only what is well formed is read, to the settings that typer would find, by the same declarations. Whatever else there
is (help, mistakes, completion, shortened and doubled options) is declined: typer reads it then, and says what is wrong.
"""

from __future__ import annotations

import gc
import os

from sessionlog.cli.options import COMMANDS, FORMATS, Option, part_first, settings_of

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_COMPLETION = "_SESSIONLOG_COMPLETE"
_DIGITS = 9


def run(argv: Sequence[str]) -> int | None:
    """Run a command line and return its exit code; None if it is none for the short way."""
    argv = part_first(argv)
    settings = parse(argv)
    if settings is None:
        return None
    from sessionlog.cli import warm  # noqa: PLC0415 - only a command that runs pays for it

    gc.disable()  # there is no garbage so early, and to look for it costs 1 ms
    try:
        if warm.answer(argv[0], settings):
            return 0
    finally:
        gc.enable()
    from sessionlog.cli.functions import function_of  # noqa: PLC0415 - as above
    from sessionlog.cli.output import ended  # noqa: PLC0415 - as above

    return ended(function_of(command_of(argv) or ""), **settings)


def command_of(argv: Sequence[str]) -> str | None:
    """Return the command that a line begins with, `ledger` or `ledger sync`; None if there is none."""
    names = (" ".join(argv[:length]) for length in (2, 1) if len(argv) >= length)
    return next((name for name in names if name in COMMANDS), None)


def parse(argv: Sequence[str]) -> dict[str, Any] | None:
    """Return the settings that a command line asks for, by name; None if it is for typer to read."""
    command = command_of(argv)
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
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=") if word.startswith("-") else ("", "=", word)
        option = options.get(name)
        if option is None:
            return None
        if option.kind != "flag" and not equals:
            value = next(rest, "")
            if value.startswith("-"):
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
    """What a text means to an option; None for nothing, and for what may be wrong."""
    if option.kind == "flag" or not text:
        return None
    if option.kind == "decimal":
        plain = text.replace(".", "", 1)
        fits = plain.isascii() and plain.isdigit() and len(text) <= _DIGITS
        return float(text) if fits and (option.least is None or float(text) >= option.least) else None
    if option.kind != "number":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    number = int(text)
    fits = (option.least is None or number >= option.least) and (option.most is None or number <= option.most)
    return number if fits and text == str(number) else None
