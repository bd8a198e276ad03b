"""The short way into the commands that are asked often: parsed here, without the 100 ms that typer takes to load.

Only what is well formed is read, to the settings that typer would find, by the same declarations. Whatever else there
is (help, mistakes, completion, shortened and doubled options) is declined: typer reads it then, and says what is wrong.
"""

from __future__ import annotations

import gc
import os

from sessionlog.cli.options import COMMANDS, FORMATS, Option, settings_of

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_COMPLETION = "_SESSIONLOG_COMPLETE"
_DIGITS = 9


def run(argv: Sequence[str]) -> int | None:
    """Run a command line and return its exit code; None if it is none for the short way."""
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
    from sessionlog.cli.output import ended  # noqa: PLC0415 - as above
    from sessionlog.cli.reports import REPORTS, command_of  # noqa: PLC0415 - as above

    if argv[0] in REPORTS:
        return ended(command_of(argv[0]), **settings)
    from importlib import import_module  # noqa: PLC0415 - as above

    return ended(getattr(import_module(f"sessionlog.cli.{argv[0]}"), argv[0]), **settings)


def parse(argv: Sequence[str]) -> dict[str, Any] | None:
    """Return the settings that a command line asks for, by name; None if it is for typer to read."""
    if not argv or argv[0] not in COMMANDS or any(name.startswith(_COMPLETION) for name in os.environ):
        return None
    declared = COMMANDS[argv[0]]
    named = {name: option for option in declared for name in (option.name, option.short) if name is not None}
    given = _read(argv[1:], named)
    if given is None or sum(form.to in given for form in FORMATS) > 1:
        return None
    return settings_of(argv[0], given)


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
        if setting is None or (option.to in given and option.kind != "texts"):
            return None
        if option.kind == "texts":
            given.setdefault(option.to, []).append(setting)
        else:
            given[option.to] = setting
    return given


def _value(option: Option, text: str) -> str | int | None:
    """What a text means to an option; None for nothing, and for what may be wrong."""
    if option.kind == "flag" or not text:
        return None
    if option.kind != "number":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return None
    number = int(text)
    fits = (option.least is None or number >= option.least) and (option.most is None or number <= option.most)
    return number if fits and text == str(number) else None
