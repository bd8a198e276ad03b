"""Every system call that the write path makes may fail, in every way, and nothing acknowledged is lost for it."""

import itertools

import pytest

from tests.reliability.faults import CAUSES, MODES, Fuse, all_faults, run_scenario


def _findings(folder, faults, durability, **how):
    for fault in faults:
        for finding in run_scenario(folder, Fuse(fault), durability, **how):
            yield f"{fault}: {finding}"


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_p01_no_fault_loses_an_acknowledged_event(memory, durability):
    """Call N of each kind fails for each cause: once, for good, or until it recovers, by turns with both durabilities.

    The agent goes on and the account is true.
    """
    turns = 2 * len(MODES)
    faults = [
        fault
        for fault in all_faults(memory, durability)
        if (CAUSES.index(fault.cause) + fault.nth) % turns == 2 * MODES.index(fault.mode) + (durability == "fsync")
    ]
    print(f"{len(faults)} faults")
    assert len(faults) > 400
    assert list(itertools.islice(_findings(memory, faults, durability), 20)) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_p01_no_fault_of_any_mode_loses_an_acknowledged_event(memory, durability, torn):
    """Each cause in each mode, and the same where the log was torn before: what heals it may fail as well."""
    faults = list(all_faults(memory, durability, torn=torn))
    print(f"{len(faults)} faults")
    assert len(faults) > 2_000
    assert list(itertools.islice(_findings(memory, faults, durability, torn=torn), 20)) == []


def test_the_scenario_is_sound(memory):
    """Without a fault everything is recorded, so that a finding is the fault's."""
    fuse = Fuse(None)
    assert run_scenario(memory, fuse, "os") == []
    assert fuse.calls["write"] >= 6
