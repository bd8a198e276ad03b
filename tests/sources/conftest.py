"""Logs in memory, where there is any: most of these tests write them again and again, and a disk would be waited for."""

import tempfile
from pathlib import Path

import pytest

from tests.sources.homes import MEMORY


@pytest.fixture
def tmp_path(monkeypatch):
    """A folder of the test's own, and within it whatever else is made for a while."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as around:  # what a test puts beside its folder goes with it
        folder = Path(around) / "test"
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", around)
        yield folder


@pytest.fixture(scope="module")
def growing():
    """A folder for logs that every example writes anew."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)
