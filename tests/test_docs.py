"""The pages of docs/ cannot rot: their blocks run, in the order in which a reader would run them."""

import json
import os
import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.sources.registry import GROUP
from sessionlog.testing import check_source
from tests.sources.plugin import scribe
from tests.sources.plugin.scrolls import installed

PAGE = scribe.PAGE.read_text("utf-8")
ROWS, FORK = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SECOND = next(block for block in scribe.BLOCKS[1:] if "class Row(scribe.Row)" in block)
LONG_AGO = 1_700_000_000


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
        exec(compile(block, "add-an-agent.md", "exec"), {"__name__": "reader"})
    assert capsys.readouterr().out == "1 logs keep the promises of a source\n"
    lines = scribe.BLOCKS[0].count("\n")
    assert 40 <= lines <= 120, f"{lines} lines"


@pytest.fixture
def forks(reader, monkeypatch):
    """The second snippet as a module, and the fork beside the log that it came from."""
    module = ModuleType("forks")
    monkeypatch.setitem(sys.modules, "forks", module)
    exec(SECOND, module.__dict__)
    (Path("logs-of-scribe") / "fork.scroll").write_text(FORK)
    for path in Path("logs-of-scribe").iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO))
    return module


def test_the_second_snippet_knows_forks_sub_agents_costs_and_latencies(forks):
    """In a scan the copy is listed; it counts for no time, no turn and no prompt of the fork."""
    assert 20 <= SECOND.count("\n") <= 45
    assert check_source(forks.SOURCE, "logs-of-scribe", cuts=40, damages=20) == 2
    scan = forks.SOURCE.scan("logs-of-scribe/fork.scroll", None)
    [session] = scan.sessions
    found = {one.key: (one.agent, one.cost_nano, one.latency_ms) for one in session.records}
    assert {key: found[key] for key in ("s1", "r1")} == {
        "s1": ("proofreader", None, None),
        "r1": ("main", 250_000_000, 1500.0),
    }
    assert set(found) == {"r0", "s1", "r1"}
    assert (session.parent, session.turns, session.prompt) == ("tale", 1, "Check the names")
    assert [problem.detail for problem in scan.problems.first] == ["cost 'a lot' is not an amount"]
    events = list(forks.SOURCE.read("logs-of-scribe/fork.scroll", None))
    assert [event.data["agent"] for event in events if event.type == "llm.response" and "agent" in event.data] == [
        "proofreader"
    ]


def test_copies_count_once_in_a_report(forks):
    """As the page says: not in a scan, but where all logs come together."""
    with installed(EntryPoint("scribe", "forks:SOURCE", GROUP)):
        place = {"HOME": os.getcwd(), "SCRIBE_HOME": os.path.abspath("logs-of-scribe")}
        report = aggregate_usage(by=("agent",), env=place, filters={"source": ["scribe"]})
    assert {row.keys["agent"]: row.requests for row in report.rows} == {"main": 2, "proofreader": 1}


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
    assert all(json.loads(line) for line in (ROWS + FORK).splitlines())
    assert Path(scribe.PAGE).is_file()


def test_every_test_that_the_promises_name_is_there():
    """A promise or a bug without its test would be a claim."""
    root = Path(__file__).parents[1]
    page = (root / "docs" / "promises.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`tests/" in line]
    assert len(rows) > 15
    for row in rows:
        cell = row.rpartition(" | ")[2]
        path, folder = root, root / "tests"
        for name in re.findall(r"`([^`]+)`", cell):
            if name.startswith(("…", "test_")) and not name.endswith(".py"):
                assert name.strip("…") in path.read_text("utf-8"), row
                continue
            path = root / name if "/" in name else folder / name
            assert path.exists(), f"{name}: {row}"
            folder = path.parent


PROMISES = Path(__file__).parents[1] / "docs" / "promises.md"


def promised():
    """Number of a promise → the files that its row links to."""
    rows = re.findall(r"^\| P(\d+) \|(.*)\|$", PROMISES.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len({number for number, _ in rows}), "a promise has two rows"
    return {int(number): re.findall(r"\]\(([^)]+)\)", row) for number, row in rows}


def named():
    """Number of a promise → the files with tests that have it in their names, as the page would link to them."""
    found = {}
    for path in sorted((PROMISES.parents[1] / "tests").rglob("test_*.py")):
        for number in re.findall(r"^ *(?:async )?def test_p(\d\d)_", path.read_text("utf-8"), re.MULTILINE):
            found.setdefault(int(number), set()).add(os.path.relpath(path, PROMISES.parent))
    return found


def test_every_promise_has_a_row_and_tests_of_its_number():
    """From 1 to 26; each link of a row leads to a file with a test of that number, and none is left out."""
    rows, tests = promised(), named()
    assert sorted(rows) == list(range(1, 27))
    assert set(tests) == set(rows)
    for number, links in rows.items():
        assert sorted(links) == sorted(tests.get(number, ())), f"P{number}: its row and the names of tests differ"


def test_every_link_of_the_promises_leads_somewhere():
    """To a file that is there."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PROMISES.read_text("utf-8"))
    assert len(links) > 60
    assert [link for link in links if not link.startswith("https:") and not (PROMISES.parent / link).exists()] == []
