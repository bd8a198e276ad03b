"""P18, slow: every hostile log × every command and format, on a terminal, without colours, or in an ASCII locale.

The quick tier has the same logs and commands in a pipe. Here each pair is run in one of the three other surroundings:
which one turns from log to log and from command to command, so that each command meets each of them 68 times.
"""

import pytest

from tests.security.commands import command_lines, judge, run, run_on_tty
from tests.security.hostile import logs
from tests.security.hostile_bytes import byte_logs, sizes

LOGS = {**logs(), **byte_logs()}
LARGE = {name for name, _ in sizes()}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def on_a_terminal(arguments, monkeypatch):
    """Our own colours, and nothing else that acts."""
    shown = [argument for argument in arguments if argument != "--plain"]
    judge(shown, run_on_tty(*shown), sgr=True)


def without_colours(arguments, monkeypatch):
    """Not even those."""
    shown = [argument for argument in arguments if argument != "--plain"]
    with monkeypatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        judge(shown, run_on_tty(*shown))


def in_ascii(arguments, monkeypatch):
    """A locale that has no letters for it."""
    outcome = run(*arguments, encoding="ascii")
    judge(arguments, outcome)
    assert outcome.out.isascii()


SURROUNDINGS = (on_a_terminal, without_colours, in_ascii)


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", LOGS)
def test_p18_every_command_in_every_format_everywhere(name, tmp_path, monkeypatch):
    """Nothing but our own colours arrives, on a terminal alone, and where they are wanted."""
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(LOGS[name])
    turn = list(LOGS).index(name)
    for number, arguments in enumerate(command_lines(str(path), first_only=name in LARGE)):
        SURROUNDINGS[(turn + number) % 3](arguments, monkeypatch)
