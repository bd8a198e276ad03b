"""Faults below Python: each system call of the write path fails for real, by a shim that the system's compiler builds.

The Python seam is honest: no call of the write path goes past it, so the fault loop of `test_faults.py` has met them all.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.shim import REPAIR_READS, build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The shim; the tests are skipped where none can be built."""
    found = build(tmp_path_factory.mktemp("shim"))
    if found is None:
        pytest.skip("no C compiler that builds a shared library for this system")
    return found


@pytest.fixture
def child(library, memory):
    """Run a task of `tests.reliability.shim` in a child with the shim; its answer."""

    def run(task, every=1):
        answer = memory / "answer.json"
        own = {"LD_PRELOAD": str(library), "HOME": str(memory), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        command = [sys.executable, "-m", "tests.reliability.shim", task, memory, answer, str(every)]
        subprocess.run(command, env={**os.environ, **own}, check=True)
        return json.loads(answer.read_text())

    return run


def test_the_python_seam_sees_every_call(child):
    """What the C library is asked to do was asked through `files`, but for what the reading half asks by itself."""
    answer = child("comparison")
    for name, found in answer.items():
        assert found["findings"] == []
        assert found["seen"]["write"] >= 5
        assert set(found["passed"]) <= (REPAIR_READS if name == "repair" else set())
    assert {"link", "rename", "unlink", "fsync", "flock", "ftruncate"} - set(answer["repair"]["seen"]) == {"ftruncate"}


@pytest.mark.parametrize(
    ("every", "runs"), [(100, 30), pytest.param(1, 3_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_no_fault_below_python_loses_an_acknowledged_event(child, every, runs):
    """Every n-th of: call N of each kind fails, once, for good, or until it recovers; `check --repair` under it, too."""
    answer = child("faults", every)
    print(f"{answer['runs']} runs")
    assert answer["findings"] == []
    assert answer["runs"] >= runs
