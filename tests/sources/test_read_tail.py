"""The steps at the end of a log: those of its last rows, whatever the first of them was cut from."""

import gzip

import pytest

from sessionlog.sources.contents import read_json
from sessionlog.sources.registry import source_of
from sessionlog.sources.steps import ToolCall
from tests.guard.agent_logs import LOGS, ClaudeCode


def commands(log, path, count):
    """The commands of the calls in the last bytes of a log."""
    steps = source_of(log.agent).read_tail(str(path), count)
    return [str(read_json(step.input)).split("ls ")[1][0] for step in steps if isinstance(step, ToolCall)]


@pytest.mark.parametrize("agent", LOGS)
def test_the_last_rows_are_read(agent, tmp_path):
    """A row that is cut, at the beginning or the end, is left out."""
    log = LOGS[agent](tmp_path)
    sizes = []
    for number in range(4):
        log.finished(f"ls {number}")
        sizes.append(log.path.stat().st_size)
    assert commands(log, log.path, 1 << 20) == ["0", "1", "2", "3"]
    if agent != "gemini":  # its rows change earlier ones, and are read whole
        assert commands(log, log.path, sizes[3] - sizes[1] + 1) == ["2", "3"]
        assert commands(log, log.path, 5) == []
    with log.path.open("ab") as file:
        file.write(b'{"type": "assist')
    assert commands(log, log.path, 1 << 20) == ["0", "1", "2", "3"]


def test_a_packed_log_is_read_whole(tmp_path):
    """Its bytes are no rows."""
    log = ClaudeCode(tmp_path)
    log.finished("ls 1")
    packed = log.path.with_name(f"{log.path.name}.gz")
    packed.write_bytes(gzip.compress(log.path.read_bytes()))
    assert commands(log, packed, 10) == ["1"]
