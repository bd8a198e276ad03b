"""A printed seed, so that any failure can be run again: `SESSIONLOG_SEED=… pytest tests/reliability`."""

import os
import random
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def seed():
    """The seed of this run; given by `$SESSIONLOG_SEED`, else fresh."""
    value = int(os.environ.get("SESSIONLOG_SEED") or random.SystemRandom().getrandbits(32))
    print(f"SESSIONLOG_SEED={value}")
    return value


@pytest.fixture
def tmp_path():
    """A folder on the disk, if it is one that temporary files are on: traps take gigabytes, and writes tear there."""
    with tempfile.TemporaryDirectory(prefix="sessionlog-test-", dir=os.environ["SESSIONLOG_TESTS_DISK"]) as folder:
        yield Path(folder)


@pytest.fixture
def memory(tmp_path):
    """A folder in memory where there is one: the disk's own time is not what is tested."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
