"""A copied ledger: it becomes a machine of its own, and nothing of either is deleted or counted twice."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.ledger.opening import open_ledger
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


@pytest.mark.parametrize(
    "ways",
    [{}, {"compact"}, {"loses_state"}, {"compact", "loses_state"}, {"shares_state"}, {"shares_state", "compact"}],
)
def test_a_copy_becomes_a_machine_of_its_own(machine, copy, ways):
    """Once, with a sentence, whoever exports second; the rows of both stay, also where they are merged or share state."""
    if "shares_state" in ways:
        copy.env["XDG_STATE_HOME"] = machine.env["XDG_STATE_HOME"]
    expected, ids, noted = {"old": 1}, {"a": [], "b": []}, []
    for number in range(3):
        for name, one, other in (("a", machine, copy), ("b", copy, machine)):
            add_log(switch_to(one, other), f"{name}{number}")
            expected[f"{name}{number}"] = 1
            done = (lost_state(one) if "loses_state" in ways else one).export(compact="compact" in ways)
            assert done.deleted == 0
            ids[name].append(done.machine_id)
            noted += [name for note in done.notes if "is now a new machine" in note]
            assert sessions_of(machine) == expected
    assert noted == ["b"]
    assert [len(set(of)) for of in ids.values()] == [1, 1]
    assert ids["a"] != ids["b"]


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


def test_what_one_copy_has_deleted_is_still_the_other_s(machine, copy):
    """A session of both that one of them forgets is there from the next export of the other one on."""
    forget_log(machine, Path(machine.env["SESSIONLOG_DIR"]) / "old.jsonl")
    assert machine.export().deleted > 0
    switch_to(copy, machine).export()
    assert sessions_of(machine) == {"old": 1}
    assert switch_to(machine, copy).export().deleted == 0
    assert sessions_of(machine) == {"old": 1}


def test_a_copy_is_noticed_in_a_place_that_is_new_to_both(machine, copy, tmp_path):
    """The second one to export there becomes a machine of its own, everywhere."""
    for one in (machine, copy):
        one.team = str(tmp_path / "another")
    add_log(switch_to(machine, copy), "a")
    first = machine.export()
    done = switch_to(copy, machine).export()
    assert done.machine_id != first.machine_id
    assert sessions_of(machine) == {"old": 1, "a": 1}
    copy.team = str(tmp_path / "team")
    assert copy.export().machine_id == done.machine_id


def test_a_dry_run_of_a_copy_changes_nothing(machine, copy):
    """It says what would be."""
    switch_to(machine, copy)
    add_log(machine, "a")
    before = machine.export().machine_id
    switch_to(copy, machine)
    states = set(Path(copy.env["XDG_STATE_HOME"]).rglob("*.sqlite"))
    done = copy.export(dry_run=True)
    assert (done.usage, [note for note in done.notes if "would become a new machine" in note]) == (1, list(done.notes))
    assert set(Path(copy.env["XDG_STATE_HOME"]).rglob("*.sqlite")) == states
    assert before not in (done.machine_id, copy.export().machine_id)


def test_a_place_that_was_moved_is_the_same(machine, tmp_path):
    """Its manifests are this ledger's, whatever the place is called."""
    before = machine.export().machine_id
    (tmp_path / "team").rename(tmp_path / "moved")
    machine.team = str(tmp_path / "moved")
    add_log(machine, "a")
    done = machine.export()
    assert (done.machine_id, done.notes, done.deleted) == (before, (), 0)
    assert sessions_of(machine) == {"old": 1, "a": 1}


def test_two_folders_of_state_are_one_machine(machine, tmp_path):
    """Of one ledger, whoever exports first."""
    second = Machine(machine.folder, machine.home, machine.team)
    second.env = {**machine.env, "XDG_STATE_HOME": f"{tmp_path}/second"}
    for number, one in enumerate((second, machine, second, machine)):
        add_log(machine, f"a{number}")
        done = one.export()
        assert (done.notes, done.deleted, len(sessions_of(machine))) == ((), 0, number + 2)


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


def test_a_lost_ledger_is_the_same_machine_in_every_place(machine, tmp_path):
    """What it forgets later is deleted in all of them."""
    before, places = machine.export().machine_id, (machine.team, str(tmp_path / "another"))
    machine.team = places[1]
    assert machine.export().machine_id == before
    for path in machine.folder.glob("ledger.sqlite*"):
        path.unlink()
    gone = add_log(machine, "a")
    for machine.team in places:
        done = machine.export()
        assert (done.machine_id, done.notes, sessions_of(machine)) == (before, (), {"old": 1, "a": 1})
    forget_log(machine, gone)
    for machine.team in places:
        assert machine.export().deleted > 0
        assert sessions_of(machine) == {"old": 1}
