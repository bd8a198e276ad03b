"""Two ledgers that export as one machine, as a copied home does: nothing of either is deleted or counted twice."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.ledger.store import open_ledger
from sessionlog.ledger.upkeep import find_forgettable, forget
from tests.export.machines import Machine, export_at_once, usage_of
from tests.export.test_parquet import add_log, lost_state, make_machine
from tests.ledger.entries import PRICES


@pytest.fixture
def machine(tmp_path):
    """A machine that has exported one session."""
    machine = make_machine(tmp_path, "a")
    add_log(machine, "old")
    machine.export()
    return machine


@pytest.fixture
def copy(machine, tmp_path):
    """A copy of it: the ledger with its id, the state, and the home, at the same path when it is switched to."""
    shutil.copytree(machine.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("home"))
    shutil.copytree(machine.home, tmp_path / "copy" / "away")
    return Machine(tmp_path / "copy", machine.home, machine.team)


def switch_to(one, other):
    """Put the home of one machine where both have it, if it is not there; return the machine."""
    if (one.folder / "away").exists():
        one.home.rename(other.folder / "away")
        (one.folder / "away").rename(one.home)
    return one


def sessions_of(machine):
    """The sessions that the place counts, each with its requests."""
    return {session: sums[0] for (session,), sums in usage_of(machine.team, ("session",)).items()}


def forget_log(machine, path):
    """Remove a log, and its rows from the ledger."""
    path.unlink(missing_ok=True)
    machine.usage()
    book = open_ledger(machine.ledger, PRICES)
    assert forget(book, find_forgettable(book)) == 1
    book.close()


@pytest.mark.parametrize("ways", [{}, {"compact": True}, {"loses_state": True}, {"compact": True, "loses_state": True}])
def test_exports_in_turn_keep_the_rows_of_both(machine, copy, ways):
    """Also when one merges the files of both, or has lost its state; each export after the other one is noted."""
    compact = ways.get("compact", False)
    expected = {"old": 1}
    for number in range(3):
        for name, one, other in (("a", machine, copy), ("b", copy, machine)):
            add_log(switch_to(one, other), f"{name}{number}")
            expected[f"{name}{number}"] = 1
            done = (lost_state(one) if ways.get("loses_state") else one).export(compact=compact)
            assert done.deleted == 0
            assert any("was of another ledger" in note for note in done.notes) == bool(number or name == "b")
            assert sessions_of(machine) == expected


def test_each_deletes_only_its_own(machine, copy):
    """What one ledger forgets is deleted, after exports of the other one, too; what the other one has is not."""
    add_log(switch_to(copy, machine), "b")
    copy.export()
    path = add_log(switch_to(machine, copy), "a")
    machine.export()
    assert sessions_of(machine) == {"old": 1, "a": 1, "b": 1}
    switch_to(copy, machine).export()
    forget_log(switch_to(machine, copy), path)
    assert machine.export().deleted > 0
    assert sessions_of(machine) == {"old": 1, "b": 1}
    assert switch_to(copy, machine).export().deleted == 0
    assert sessions_of(machine) == {"old": 1, "b": 1}


def test_what_one_copy_has_deleted_comes_back_with_the_other(machine, copy):
    """A session of both that one of them forgets is there again after the next export of the other one."""
    forget_log(machine, Path(machine.env["SESSIONLOG_DIR"]) / "old.jsonl")
    assert machine.export().deleted > 0
    switch_to(copy, machine).export()
    assert sessions_of(machine) == {"old": 1}
    assert switch_to(machine, copy).export().deleted == 0
    assert sessions_of(machine) == {"old": 1}


def test_a_machine_alone_is_no_copy(machine):
    """Its own exports are its own without its state, too, and what it forgets meanwhile is deleted."""
    path = add_log(machine, "gone")
    assert machine.export().notes == ()
    forget_log(machine, path)
    done = lost_state(machine).export()
    assert (done.notes, done.deleted > 0) == ((), True)
    assert sessions_of(machine) == {"old": 1}


def test_exports_at_once_lose_nothing(machine, tmp_path):
    """Of a ledger with two folders for state and of another machine, in processes of their own."""
    other = make_machine(tmp_path, "c")
    add_log(machine, "new-a")
    add_log(other, "new-c")
    second = Machine(machine.folder, machine.home, machine.team)
    second.env = {**machine.env, "XDG_STATE_HOME": f"{tmp_path}/second"}
    export_at_once((machine, second, other))
    expected = {"old": 1, "new-a": 1, "new-c": 1}
    assert sessions_of(machine) == expected
    assert [one.export().deleted for one in (machine, second, other)] == [0, 0, 0]
    assert sessions_of(machine) == expected
