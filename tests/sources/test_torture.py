"""Every trap that is known of any agent's format, one small home each, with the truth written beside it by hand."""

import tempfile
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.ledger.ask import load_book
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.discover import recognise
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import load_source
from sessionlog.testing import check_source
from tests.sources.homes import MEMORY, all_cases, build_home, environment, truth_of
from tests.turns import agent_of, every

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
COLUMNS = (
    "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip
CASES = all_cases()
NATIVE = Path(__file__).parents[2] / "testdata" / "replay"
KIN = {"openclaw": ("codex", "claude-code"), "kilo": ("opencode",), "mimo": ("opencode", "claude-code", "codex")}
"""Agents that keep logs of others in their folders, or share a format."""


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """One case."""
    return request.param


@pytest.fixture(scope="module")
def home(case):
    """Its home, of which every test reads only."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield build_home(case, folder)


@pytest.fixture
def place(case, home):
    """How to ask for its agent's logs and no others."""
    return {"env": environment(case, home), "now": NOW, "filters": {"source": [case.split("/")[0]]}}


@pytest.fixture(scope="module")
def report(case, home):
    """What its logs used, by all that the truth tells apart."""
    filters = {"source": [case.split("/")[0]]}
    return aggregate_usage(
        None, by=("provider", "model", "agent"), env=environment(case, home), now=NOW, filters=filters
    )


def test_our_totals_equal_the_truth(case, report):
    """Every token, in the right row."""
    rows = {(row.provider, row.model): dict.fromkeys(COLUMNS, 0) for row in report.rows}
    for row, name in product(report.rows, COLUMNS):
        rows[row.provider, row.model][name] += getattr(row, name)
    truth = {
        (row["provider"], row["model"]): {name: row.get(name, 0) for name in COLUMNS} for row in truth_of(case)["rows"]
    }
    assert rows == truth
    assert report.problem_count == truth_of(case).get("problems", 0), [str(p) for p in report.problems]


def test_provenance_and_agents_equal_the_truth(case, report):
    """What is known to be incomplete says so, and sub-agents are told from the agent."""
    truth = truth_of(case)
    inexact = {name: count for name, count in report.provenance.items() if name != "exact" and count}
    assert inexact == {name: count for name, count in truth.get("provenance", {}).items() if count}
    if "agents" in truth:
        agents = Counter()
        for row in report.rows:
            agents[row.keys["agent"]] += row.requests
        assert agents == truth["agents"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if "charged_to" in truth_of(case)], indirect=True, scope="module"
)
def test_what_is_charged_equals_the_truth(case, place):
    """Every request is in one row of each of `skill`, `plugin` and `mcp`, so that rows sum to the total."""
    for key, truth in truth_of(case)["charged_to"].items():
        report = aggregate_usage(None, by=(key,), **place)
        sums = {row.keys[key]: [row.requests, row.input_tokens, row.output_tokens] for row in report.rows}
        assert sums == truth
        assert list(map(sum, zip(*sums.values(), strict=True))) == [
            report.totals.requests, report.totals.input_tokens, report.totals.output_tokens
        ]  # fmt: skip


def test_sessions_equal_the_truth(case, place):
    """Which sessions there are, how they ended, where, and what they were asked."""
    found = {one.session: one.to_dict() for one in list_sessions(None, **place).rows}
    truth = truth_of(case)["sessions"]
    assert {name: {key: found[name].get(key) for key in truth.get(name, {})} for name in found} == truth


@pytest.mark.parametrize("case", [case for case in CASES if "tools" in truth_of(case)], indirect=True, scope="module")
def test_tools_equal_the_truth(case, place):
    """Every call once, with its errors."""
    truth = truth_of(case)["tools"]
    book = load_book(None, PriceBook.load(), env=place["env"])
    sql = """SELECT CASE server WHEN '' THEN tool ELSE server || '/' || tool END, COUNT(*), SUM(failed)
             FROM tools GROUP BY 1"""
    assert {name: {"calls": calls, "errors": errors} for name, calls, errors in book.query(sql, {})} == truth


@pytest.mark.usefixtures("tmp_path")  # where it makes its copy
@pytest.mark.usefixtures("tmp_path")  # where it makes its copy
@pytest.mark.parametrize("case", every(CASES, 4, group=agent_of), indirect=True, scope="module")
def test_p08_the_source_keeps_its_promises(case, home):
    """Scan and events agree, scans resume at any byte, damage never raises."""
    assert check_source(load_source(case.split("/")[0]), home, cuts=1, damages=1) > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("tmp_path")
def test_p08_every_source_keeps_its_promises_wherever_it_is_cut(case, home):
    """The same with each case, cut and damaged in many places."""
    assert check_source(load_source(case.split("/")[0]), home, cuts=20, damages=10) > 0


def test_no_other_source_takes_a_log(case, home):
    """A log is recognised by its content, whoever is asked first."""
    wrong = []
    for path in sorted(path for path in home.rglob("*") if path.is_file()):
        log = recognise(str(path))
        if isinstance(log, Log) and log.source.id not in (case.split("/")[0], *KIN.get(case.split("/")[0], ())):
            wrong.append((path.name, log.source.id))
    assert wrong == []


@pytest.mark.parametrize("path", sorted(NATIVE.glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_source_takes_a_native_log(path):
    """Not even a hostile one."""
    log = recognise(str(path))
    assert isinstance(log, Log)
    assert log.source.id == "native"


def test_every_agent_has_cases():
    """Each agent's folder holds the traps of its format."""
    agents = {case.split("/")[0] for case in CASES}
    assert agents >= {"claude-code"}
