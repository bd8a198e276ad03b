"""The declarations: what they promise, the commands take, and what they say of numbers is so."""

import inspect
import subprocess
import sys

import pytest

from sessionlog.analytics.blocks import HOURS, MOST_HOURS
from sessionlog.cli import options
from sessionlog.cli.functions import function_of
from sessionlog.cli.options import settings_of
from sessionlog.cli.reporting import _FILTERS, ReportArguments

TYPES = {
    "text": "str | None",
    "texts": "list[str] | None",
    "rest": "list[str] | None",
    "number": "int | None",
    "decimal": "float | None",
    "flag": "bool",
}


@pytest.mark.parametrize("command", options.COMMANDS)
def test_a_command_takes_what_its_declaration_names(command):
    """The same settings in the same order, of the declared kind; defaults stand in the declaration alone."""
    parameters = inspect.signature(function_of(command)).parameters
    types = {name: parameter.annotation for name, parameter in parameters.items()}
    if types.pop("settings", "") == "Any":
        shared = {**dict.fromkeys(_FILTERS, TYPES["texts"]), **ReportArguments.__annotations__}
        types = {option.setting: types.get(option.setting) or shared[option.setting]
                 for option in options.COMMANDS[command]}  # fmt: skip
    assert [*types] == [option.setting for option in options.COMMANDS[command]]
    for option in options.COMMANDS[command]:
        kind = (
            TYPES[option.kind].partition(" |")[0]
            if option.default is not None or option.required
            else TYPES[option.kind]
        )
        assert types[option.setting] == kind
    assert all(parameter.default is inspect.Parameter.empty for parameter in parameters.values())


def test_a_report_is_asked_for_nothing_that_no_declaration_names():
    """A setting that no command declares would never have a value."""
    declared = {option.setting for declaration in options.COMMANDS.values() for option in declaration}
    assert {*_FILTERS, *ReportArguments.__annotations__} <= declared


@pytest.mark.parametrize("declaration", options.COMMANDS.values(), ids=[*options.COMMANDS])
def test_names_are_used_once(declaration):
    """Two options of one command differ in name and in setting."""
    for names in ([option.name for option in declaration], [option.setting for option in declaration]):
        assert len(names) == len(set(names))


def test_what_occurs_in_several_commands_is_one_declaration():
    """An option of one name differs between commands only where what it says does."""
    seen = {}
    for declaration in options.COMMANDS.values():
        for option in declaration:
            seen.setdefault((option.name, option.help, option.default, option.default_help), set()).add(option)
    assert {key for key, found in seen.items() if len(found) > 1} == set()


def test_settings_are_what_was_given_and_else_the_default():
    """Every setting has a value."""
    settings = settings_of("blocks", {"hours": 3, "paths": ["x"]})
    assert (settings["hours"], settings["paths"], settings["gaps"], settings["since"]) == (3, ["x"], False, None)
    assert settings_of("blocks", {})["hours"] == 5


def test_the_hours_of_a_block_are_those_of_the_report():
    """The declaration repeats them, so that it need not import the report."""
    [hours] = [option for option in options.BLOCKS if option.setting == "hours"]
    assert (hours.default, hours.least, hours.most) == (HOURS, 1, MOST_HOURS)


def test_declarations_import_nothing():
    """They are read on the way to every quick answer."""
    code = "import io, sys; bare = set(sys.modules); import sessionlog.cli.options; print(*set(sys.modules) - bare)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {
        "sessionlog", "sessionlog._version", "sessionlog.lazy_imports", "sessionlog.cli", "sessionlog.cli.fast_path",
        "sessionlog.cli.options",
    }  # fmt: skip
    assert {name for name in loaded if name.startswith("sessionlog")} == ours
    assert {name.split(".")[0] for name in loaded} <= {"sessionlog", "__future__", "gc"}


@pytest.mark.parametrize("command", ["usage", "sessions", "tools", "blocks"])
def test_two_books_exit_2(cli, command):
    """A book cannot be kept in a file and not be kept."""
    ran = cli(command, "--ledger", "book.db", "--no-ledger")
    assert ran == (2, "", "sessionlog: choose only one of --ledger and --no-ledger\n")


@pytest.mark.parametrize("command", ["usage", "sessions", "tools", "blocks"])
def test_at_least_one_process_scans(cli, command):
    """None at all is wrong usage."""
    ran = cli(command, "--jobs", "0")
    assert (ran.code, ran.out) == (2, "")
    assert "--jobs" in ran.err
