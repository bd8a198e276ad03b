"""The pages of docs/ cannot rot: their blocks run, in the order in which a reader would run them."""

import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from sessionlog.sources.registry import GROUP
from tests.sources.plugin import scribe

PAGE = scribe.PAGE.read_text("utf-8")
ROWS = re.search(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder with what a reader of the page has made: the module and a log."""
    module = ModuleType("scribe")
    exec(scribe.BLOCKS[0], module.__dict__)
    monkeypatch.setitem(sys.modules, "scribe", module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs-of-scribe").mkdir()
    (tmp_path / "logs-of-scribe" / "tale.scroll").write_text(ROWS)
    return module


def test_the_page_shows_a_whole_source(reader, capsys):
    """The source passes the check, and the numbers are those of the rows that the page shows."""
    for block in scribe.BLOCKS[1:]:
        exec(compile(block, "add-an-agent.md", "exec"), {})
    assert capsys.readouterr().out == "1 logs keep the promises of a source\n"
    lines = scribe.BLOCKS[0].count("\n")
    assert 40 <= lines <= 120, f"{lines} lines"


def test_the_entry_point_names_the_source(reader):
    """The group is the one that the registry looks in."""
    points = tomllib.loads(re.search(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1])
    [(group, names)] = points["project"]["entry-points"].items()
    assert (group, names) == (GROUP, {"scribe": "scribe:SOURCE"})
    assert reader.SOURCE.id == "scribe"


def test_every_step_is_on_the_page():
    """A word that the kit knows and the page does not would be looked for in vain."""
    from typing import get_args

    from sessionlog.sources.steps import Step

    named = set(re.findall(r"`([A-Z]\w+)`", PAGE))
    assert {step.__name__ for step in get_args(Step)} - {"MoreInput"} <= named
    assert all(json.loads(line) for line in ROWS.splitlines())
    assert Path(scribe.PAGE).is_file()
