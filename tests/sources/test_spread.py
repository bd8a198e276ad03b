"""Spread: what is done in several processes comes back in order and complete, and remote files stay here."""

import os
from functools import partial

import pytest

from sessionlog.engine.shares import map_shares
from sessionlog.sources.check import check_sources
from sessionlog.sources.scrub import scrub_logs
from sessionlog.sources.spread import in_shares, spread_files
from tests.sources.logs import answered, start, write_log

IN_TWO = partial(map_shares, jobs=2)


def name_and_process(item):
    return item, os.getpid()


@pytest.fixture
def folder(tmp_path):
    """Logs of which some are damaged, some have secrets, more than a share of them."""
    for number in range(300):
        text = "key ghp_" + "a1B2" * 9 if number % 7 == 0 else "hello"
        path = write_log(tmp_path / "logs" / f"s-{number:03}.jsonl", start(), answered(content=text))
        if number % 5 == 0:
            with open(path, "ab") as file:
                file.write(b"broken\n")
    return tmp_path / "logs"


@pytest.mark.parametrize("spread", [in_shares, IN_TWO])
def test_results_come_in_order(spread):
    """Whoever was ready first; the progress ends at all of them."""
    calls = []
    items = [(number, f"s3://bucket/{number}" if number % 100 == 1 else f"/none/{number}") for number in range(1000)]
    found = list(spread_files(items, name_and_process, spread, lambda *call: calls.append(call)))
    assert [item for item, _ in found] == list(range(1000))
    assert {pid for item, pid in found if item % 100 == 1} == {os.getpid()}
    assert calls == sorted(calls)
    assert calls[-1] == (1000, 1000)


def test_a_check_in_processes_finds_the_same(folder):
    """Every problem of every log."""
    alone = list(check_sources([str(folder)], {}))
    assert sum(found.damaged for _, found in alone) == 60
    assert list(check_sources([str(folder)], {}, spread=IN_TWO)) == alone


def test_a_scrub_in_processes_finds_and_writes_the_same(folder, tmp_path):
    """Every secret, and a copy of each log without it."""
    alone = list(scrub_logs([str(folder)], {}, copies=str(tmp_path / "one")))
    both = list(scrub_logs([str(folder)], {}, copies=str(tmp_path / "two"), spread=IN_TWO))
    assert sum(sum(found.counts.values()) for found in alone) == 43
    assert [(one.path, one.findings) for one in both] == [(one.path, one.findings) for one in alone]
    for name in os.listdir(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
