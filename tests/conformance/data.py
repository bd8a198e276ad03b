"""The conformance data: what the original answered, read from the folder that `$SESSIONLOG_CONFORMANCE` names.

Nothing of it is copied into the project. Where the folder is unset, each group of cases is one skipped test whose
reason says how many cases it stands for; where it is set, every case is a test of its own.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest

VARIABLE = "SESSIONLOG_CONFORMANCE"
COUNTS = {"usage": 54, "replay": 34, "window": 29, "cost": 10, "read": 150, "log": 2}
"""How many cases there are of each kind; `test_differences` compares it with the data."""

_NAMES = {
    "usage": lambda case: f"{case['dir']} {case['since'] or 'all'}",
    "replay": lambda case: case["file"],
    "window": lambda case: case["spec"],
    "cost": lambda case: f"{case['model']} {case['input']} {case['output']}",
    "read": lambda case: case["file"],
    "log": lambda case: case["file"],
}


def is_here() -> bool:
    """The folder is named."""
    return bool(os.environ.get(VARIABLE))


def needs_data(reason: str) -> pytest.MarkDecorator:
    """Skip without the folder; `reason` counts what is not compared."""
    return pytest.mark.skipif(not is_here(), reason=f"{VARIABLE} is not set: {reason}")


def folder() -> Path:
    """The data's folder."""
    return Path(os.environ[VARIABLE])


@cache
def document(name: str):
    """One JSON file of the data."""
    return json.loads((folder() / name).read_text("utf-8"))


def expected_text(name: str) -> str:
    """A text of the original; the bytes of a character that it cut in two become surrogates."""
    return (folder() / name).read_bytes().decode("utf-8", "surrogateescape")


def name_of(kind: str, case) -> str:
    """What a case is called in the table of differences, without its kind."""
    return _NAMES[kind](case)


def cases(kind: str, *, having: str | None = None):
    """Parameters of a test: (name, case) for every case of a kind, or for those that have a key."""
    if not is_here():
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {COUNTS[kind]} {kind} cases not compared")
        return [pytest.param("", {}, marks=mark, id=f"{COUNTS[kind]}-{kind}-cases")]
    listed = [case for case in document("cases.json")[kind] if having is None or having in case]
    return [pytest.param(name_of(kind, case), case, id=name_of(kind, case)) for case in listed]
