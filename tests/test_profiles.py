"""The profiles of hypothesis are those of the tiers, and what fails can be repeated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.profiles import LAWS_OF_BOTH_TIERS, QUICK, RELEASE, SLOW, examples

ROOT = Path(__file__).parents[1]
LAW = """
from hypothesis import given, settings, strategies as st
from tests.profiles import examples

IS_TRIED_MUCH = settings.default.max_examples == {wanted}

@examples(20)
@given(st.integers())
def test_law(number):
    assert not IS_TRIED_MUCH or number < 5000
"""


def run_law(tmp_path, *options, wanted=0):
    """Run a law in a test runner of its own, with this project's profiles; return its output."""
    folder = tmp_path / "laws"  # not `tests`: that package is this one
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (folder / "test_law.py").write_text(LAW.format(wanted=wanted))
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        str(ROOT / "pyproject.toml"),
        f"--rootdir={tmp_path}",
        "-p",
        "no:cacheprovider",
    ]
    ended = subprocess.run(
        [*command, *options, str(folder)], capture_output=True, text=True, env=env, cwd=tmp_path, timeout=100
    )
    return ended.stdout


def test_the_quick_tier_tries_few_and_the_same():
    """A failure of the quick tier is one of the change, not of chance."""
    assert settings().max_examples == QUICK
    assert examples(60).max_examples == 20
    assert examples(60).derandomize


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        pytest.param(["--hypothesis-profile", "release"], RELEASE, marks=pytest.mark.slow),
        (["-m", "slow or hypothesis", "--hypothesis-profile=slow"], SLOW),
    ],
)
def test_what_fails_in_the_slow_tier_can_be_repeated(tmp_path, options, wanted):
    """The seed is printed, and with it the same example is found."""
    out = run_law(tmp_path, *options, wanted=wanted)
    assert "1 failed" in out
    assert "--hypothesis-seed=" in out
    seed = out.partition("--hypothesis-seed=")[2].split()[0]
    again = run_law(tmp_path, *options, f"--hypothesis-seed={seed}", wanted=wanted)
    assert "1 failed" in again


def test_laws_of_both_tiers_are_there():
    """Each is a file with a law in it."""
    for path in LAWS_OF_BOTH_TIERS:
        assert "@given" in (ROOT / path).read_text("utf-8")
