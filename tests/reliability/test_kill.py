"""kill -9 in the middle of writing: what was acknowledged is there, once, and every torn byte is named."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
HARNESS = Path(__file__).with_name("kill_harness.py")
SEED = os.environ.get("SESSIONLOG_SEED", "20261121")


def kill(cycles, writers):
    command = [sys.executable, str(HARNESS), "--cycles", str(cycles), "--writers", str(writers), "--seed", SEED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    print(done.stdout)
    return json.loads(done.stdout)


def settle(result, cycles, least_events):
    assert result["failures"] == []
    assert result["cycles"] == cycles
    assert result["events"] >= least_events, "the writers were killed before they wrote: nothing was proved"


def test_one_writer():
    """500 kills of a lone writer lose no acknowledged event and double none."""
    settle(kill(500, 1), 500, 500)


def test_three_writers_on_one_file():
    """150 rounds of three writers on one file, killed one after the other, lose and double nothing."""
    settle(kill(150, 3), 150, 300)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_one_writer_at_length():
    """10,000 kills of a lone writer."""
    settle(kill(10_000, 1), 10_000, 10_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_writers_at_length():
    """3,000 rounds of three writers."""
    settle(kill(3_000, 3), 3_000, 6_000)


def test_a_real_process_with_the_public_api(tmp_path):
    """Killing a process that uses the context manager leaves an unfinished session with what it acknowledged."""
    script = (
        "import os, signal, sys\n"
        "from sessionlog import SessionLogger\n"
        "with SessionLogger(sys.argv[1], 's', model='m', work_dir='/w') as log:\n"
        "    for number in range(int(sys.argv[2])):\n"
        "        assert log.llm_response('x', usage={'input': 1, 'output': 2})\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    from sessionlog import aggregate_usage

    for round_ in range(20):
        folder = tmp_path / str(round_)
        done = subprocess.run([sys.executable, "-c", script, str(folder), str(round_)], check=False)
        assert done.returncode == -9
        totals = aggregate_usage(str(folder)).totals
        assert (totals.requests, totals.output_tokens) == (round_, 2 * round_)
        assert (totals.sessions, totals.success_sessions) == (1, 0)
