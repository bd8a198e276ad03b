"""A pytest plugin that keeps the tests which the file named by `$CHOSEN_TESTS` lists, in its order."""

import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: number for number, name in enumerate(Path(os.environ["CHOSEN_TESTS"]).read_text().split("\n"))}
    items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])
