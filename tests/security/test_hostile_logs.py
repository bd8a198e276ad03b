"""Every command on every hostile log: it neither crashes nor lets the log speak to the terminal."""

import os

import pytest

from sessionlog.errors import Problem
from sessionlog.reader.check import check_log
from sessionlog.reader.stream import read_events
from tests.security.commands import RUNS, command_lines, judge, run
from tests.security.hostile import logs
from tests.security.hostile_bytes import byte_logs, sizes
from tests.turns import by_turns

LOGS = {**logs(), **byte_logs()}
LARGE = {name for name, _ in sizes()}


def test_no_log_is_there_twice():
    """Under another name it would only take time."""
    assert len(set(LOGS.values())) == len(LOGS)


@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", LOGS)
def test_p18_every_command_survives_every_log(name, tmp_path):
    """Exit codes of the house, no traceback, no control byte, and JSON, CSV and Markdown that can be read.

    Each log is shown by every fourth command, the next ones by the others, in the formats by turns.
    """
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(LOGS[name])
    turn, first = divmod(list(LOGS).index(name), 4)
    for arguments in command_lines(str(path), turn=0 if name in LARGE else turn, commands=[*RUNS][first::4]):
        judge(arguments, run(*arguments))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("scanned_once")
@pytest.mark.parametrize("name", LOGS)
def test_p18_every_command_survives_every_log_in_every_format(name, tmp_path):
    """The same in all formats but for large logs."""
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(LOGS[name])
    for arguments in command_lines(str(path), first_only=name in LARGE):
        judge(arguments, run(*arguments))


def events(path):
    """The events that can be read, with their bytes."""
    return [(item, item.raw) for item in read_events(path) if not isinstance(item, Problem)]


@pytest.mark.parametrize("name", by_turns(LOGS, 2))
def test_repair_costs_no_event(name, tmp_path):
    """After `check --repair` a log has nothing left to repair and every event that it had, byte for byte.

    A file without any event is refused and stays as it is; numbers of the wrong type cannot be mended.
    """
    path = str(tmp_path / f"{name}.jsonl")
    with open(path, "wb") as file:
        file.write(LOGS[name])
    os.utime(path, (1_700_000_000, 1_700_000_000))  # no writer is in the middle of its last line
    before = events(path)
    for arguments in (["check", "--repair", path], ["check", path]):
        outcome = run(*arguments)
        judge(arguments, outcome)
        assert outcome.code in (0, 1)
    left = check_log(path)
    assert not left.repairable or not before
    assert (outcome.code == 1) == bool(left.damaged)
    assert events(path) == before
