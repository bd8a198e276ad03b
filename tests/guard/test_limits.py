"""The table [guard] of config.toml: defaults, and sentences on what is not valid."""

import pytest

from sessionlog.errors import InvalidSettings
from sessionlog.guard.limits import GuardLimits, parse_limits


def test_defaults():
    """Loops are recognised without any setting, and money is left to budgets."""
    assert parse_limits({}) == GuardLimits(repeats=5, cost_per_minute=None, interrupt=True)


def test_all_keys():
    """Each replaces its default."""
    table = {"repeats": 0, "cost_per_minute": 2, "interrupt": False}
    assert parse_limits(table) == GuardLimits(repeats=0, cost_per_minute=2, interrupt=False)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"repeat": 5}, "unknown key 'repeat'; known are repeats, cost_per_minute, interrupt"),
        ({"repeats": 1}, "repeats must be 0 or a whole number from 2 to 1,000; it is 1"),
        ({"repeats": 1001}, "it is 1001"), ({"repeats": -5}, "it is -5"), ({"repeats": True}, "it is True"),
        ({"repeats": 5.0}, "it is 5.0"), ({"repeats": "5"}, "it is '5'"),
        ({"cost_per_minute": 0}, "cost_per_minute must be a number above 0, up to 1,000,000; it is 0"),
        ({"cost_per_minute": float("nan")}, "it is nan"), ({"cost_per_minute": float("inf")}, "it is inf"),
        ({"cost_per_minute": True}, "it is True"), ({"cost_per_minute": "2"}, "it is '2'"),
        ({"interrupt": 1}, "interrupt must be true or false; it is 1"),
    ],
)  # fmt: skip
def test_what_is_not_valid_is_named(table, message):
    """With the file, the key and what is allowed."""
    with pytest.raises(InvalidSettings) as error:
        parse_limits(table, path="/c.toml")
    assert str(error.value).startswith("/c.toml: [guard] ")
    assert message in str(error.value)
