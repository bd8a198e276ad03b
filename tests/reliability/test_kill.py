"""kill -9: what was acknowledged is in the log, once, in order, and no torn line hides another one."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.reliability.kill import run_apart
from tests.reliability.oracle import check_bytes, read_log

AGENT = """
import os, sys
from sessionlog import SessionLogger
folder, second = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
log, acknowledged = SessionLogger(folder, "agent", provider="anthropic", model="claude-opus-4-5"), 0
while True:
    with log.tool_call("bash", {"command": "x" * (acknowledged * 37 % 9000)}, n=acknowledged) as call:
        call.output = "done"
    assert call.recorded
    acknowledged += 1
    os.pwrite(second, acknowledged.to_bytes(8, "little"), 0)
"""


@pytest.fixture
def folders(tmp_path, memory):
    """A folder on the disk and one in memory: their writes tear differently."""
    return [tmp_path, memory]


@pytest.mark.parametrize(("writers", "cycles"), [(1, 100), (3, 40)])
def test_p02_acknowledged_events_survive_sigkill(folders, seed, writers, cycles):
    """However often writers of one file are killed, each acknowledged event is read back once and in order."""
    tally = run_apart(folders, cycles=cycles, writers=writers, seed=seed)
    print(tally)
    assert tally.findings == []
    assert tally.cycles == cycles
    assert tally.acknowledged > cycles


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("writers", "cycles"), [(1, 5_000), (3, 1_000)])
def test_p02_acknowledged_events_survive_thousands_of_sigkills(folders, seed, writers, cycles):
    """The same for longer, and by then some lines must have been torn, or the harness does not hit."""
    tally = run_apart(folders, cycles=cycles, writers=writers, seed=seed)
    print(tally)
    assert tally.findings == []
    assert tally.torn > cycles / 100


def test_p02_a_real_process_keeps_its_word(tmp_path, seed):
    """A Python process that uses the public API and is killed ten times, each time continuing the same session."""
    chance = random.Random(seed)
    before = 0
    for cycle in range(10):
        second = tmp_path / f"acknowledged-{cycle}"
        agent = subprocess.Popen([sys.executable, "-c", AGENT, str(tmp_path), str(second)])
        deadline = time.monotonic() + 60
        while not (second.exists() and second.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.01))
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        acknowledged = int.from_bytes(second.read_bytes(), "little")
        log = read_log(tmp_path / "agent.jsonl")
        read = [event.data["n"] for event in log.of_type("tool.call")][before:]
        assert read in (list(range(acknowledged)), list(range(acknowledged + 1)))
        assert acknowledged
        assert check_bytes(log) == []
        before += len(read)


@pytest.mark.timeout(600)
def test_p02_kills_while_the_log_is_repaired_packed_and_read_into_a_ledger(folders, seed):
    """Repair, archive and sync are killed as well: nothing is lost or doubled, and the ledger says what the log says."""
    for attempt in range(10):  # on a busy machine every repair may be killed before its first change
        tally = run_apart(folders, cycles=20, writers=2, seed=seed + attempt, actors=("repair", "sync", "archive"))
        print(tally)
        assert tally.findings == []
        if tally.repaired:
            return
    pytest.fail("no repair changed a log before it was killed")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_p02_hundreds_of_kills_while_the_log_is_repaired_packed_and_read_into_a_ledger(folders, seed):
    """The same for longer."""
    tally = run_apart(folders, cycles=300, writers=2, seed=seed, actors=("repair", "sync", "archive"))
    print(tally)
    assert tally.findings == []
