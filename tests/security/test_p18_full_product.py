"""P18, slow: every hostile log × every command and format × {pipe, terminal, no colours, an ASCII locale}."""

import os

import pytest

from tests.security.commands import command_lines, judge, run, run_on_tty
from tests.security.hostile import logs
from tests.security.hostile_bytes import byte_logs, sizes

LOGS = {**logs(), **byte_logs()}
LARGE = {name for name, _ in sizes()}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", LOGS)
def test_p18_every_command_in_every_format_everywhere(name, tmp_path, monkeypatch):
    """Nothing but our own colours arrives, on a terminal alone, and where they are wanted."""
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(LOGS[name])
    for arguments in command_lines(str(path), first_only=name in LARGE):
        shown = [argument for argument in arguments if argument != "--plain"]
        judge(arguments, run(*arguments))
        judge(shown, run_on_tty(*shown), sgr=True)
        with monkeypatch.context() as patch:
            patch.setenv("NO_COLOR", "1")
            judge(shown, run_on_tty(*shown))
        outcome = run(*arguments, encoding="ascii")
        judge(arguments, outcome)
        assert outcome.out.isascii()
    assert os.path.exists(path)
