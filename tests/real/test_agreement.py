"""One number for one thing: whichever command is asked, a session has the same requests, turns, tokens and cost."""

import pytest

from tests.agreement import check_agreement
from tests.real.data import folder, home_names, needs_homes

NOT_IN_EVENTS = {
    "claude-1.0.9": "a resumed session repeats rows without a sign of it: only the ledger knows the other file",
    "droid": "the log holds the sums of a session, not of its requests",
    "kimicode": "a fork repeats rows without a sign of it: only the ledger knows the other file",
    "qwen": "one session was killed before its only answer had counts",
}
"""Homes of which one log alone cannot say what the whole home says, and why."""


HOMES = home_names()


@pytest.mark.parametrize(
    "home",
    [
        pytest.param(home, marks=[needs_homes(home), *[pytest.mark.slow] * (turn % 2)])
        for turn, home in enumerate(HOMES)
    ],
)
def test_all_commands_tell_the_same_of_a_session(home, tmp_path):
    """In each home that a real client has left; in the quick tier every second one."""
    env, ledger = {"HOME": str(folder() / home)}, str(tmp_path / "ledger.sqlite")
    check_agreement(env, ledger, in_events=home not in NOT_IN_EVENTS)
