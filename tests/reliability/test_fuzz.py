"""A short fuzz run, the same each time, and every kept input that once failed. The long one is `fuzz/__main__.py`.

What failed in an agent's log is a case of `tests/sources` or `testdata/sources`: an input that names a file of test
data by its number would mean another one tomorrow.
"""

import random
from pathlib import Path

import pytest

from tests.reliability.fuzz.changes import change
from tests.reliability.fuzz.homes import home_targets
from tests.reliability.fuzz.laws import LawBroken, TooLong, demand, limited
from tests.reliability.fuzz.parsers import parser_targets
from tests.reliability.fuzz.run_target import Findings, run_random

KEPT = Path(__file__).parents[2] / "testdata" / "fuzz"
QUICK_HOMES = ("source:claude-code", "source:codex", "source:opencode", "source:cline", "commands", "ledger")
PARSERS = {target.name: target for target in parser_targets()}
HOMES = {target.name: target for target in home_targets(most_cases=1) if target.name in QUICK_HOMES}


@pytest.mark.parametrize("name", PARSERS)
def test_a_hundred_inputs_of_a_parser(name, memory):
    """Nothing but named errors, in two seconds of processor time each, and the target's own laws."""
    run(PARSERS[name], memory, runs=100)


@pytest.mark.parametrize("name", HOMES)
def test_some_inputs_of_a_home(name, memory):
    """The same for what reads agents' logs, for commands over damaged logs, and for the ledger."""
    run(HOMES[name], memory, runs=20)


def run(target, folder, *, runs):
    """Try inputs and demand that none is a finding."""
    made = folder / "made"
    made.mkdir()
    inputs = target.make(made)
    findings = Findings(target.name, folder)
    run_random(inputs, findings, runs=runs, seed=11)
    kept = folder / "findings.jsonl"
    assert not kept.exists(), kept.read_text()
    assert findings.runs == runs


@pytest.mark.parametrize("path", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_an_input_that_once_failed(path, memory):
    """It is named for its target."""
    target = next(target for name, target in PARSERS.items() if path.name.startswith(f"{name}-"))
    with limited():
        target.make(memory).check(path.read_bytes())


def test_what_breaks_a_law_is_kept_once(tmp_path):
    """A finding is an error's type and its place; the input is saved as it was."""
    findings = Findings("a:b", tmp_path)

    def check(data):
        demand(len(data) < 2, "two bytes")

    for data in (b"1", b"22", b"333"):
        findings.try_one(check, data)
    [line] = (tmp_path / "findings.jsonl").read_text().splitlines()
    assert "two bytes" in line
    [kept] = tmp_path.glob("a-b-*")
    assert kept.read_bytes() == b"22"


def test_an_input_without_an_end_is_a_finding():
    """The limit is processor time, and nothing of the product's can swallow it."""

    def spin():
        while True:
            try:
                sum(range(1000))
            except Exception:
                continue

    with pytest.raises(TooLong), limited(0.05):
        spin()


def test_changes_are_repeatable():
    """The same seed makes the same inputs, and the header stays."""
    seeds = [b"ab" + b'{"a": [1, {"b": null}], "c": "x"}\n' * 3, b"ab\x00\xff", b"ab"]
    one, other = ([change(seeds[n % 3], random.Random(n), seeds, 2) for n in range(300)] for _ in range(2))
    assert one == other
    assert all(data.startswith(b"ab") for data in one)
    assert len(set(one)) > 100


def test_laws_are_named():
    """A broken law is an assertion with words."""
    with pytest.raises(LawBroken, match="words"):
        demand(0, "words")
