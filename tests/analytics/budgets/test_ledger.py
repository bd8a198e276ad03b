"""A ledger as budgets ask it: clocks that were set, ledgers that were replaced, threads, and forks."""

import os
import sqlite3
import threading

import pytest

from sessionlog.analytics.budgets import clock
from sessionlog.analytics.budgets.clock import read_clock
from sessionlog.analytics.budgets.tamper_check import confirm_ledger
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.upkeep import rebuild
from sessionlog.ledger.verify import verify_ledger
from sessionlog.pricing.book import PriceBook
from tests.analytics.budgets.budget_world import World, said_unknown
from tests.ledger.entries import SECOND
from tests.reliability.children import in_child

# --- clocks and ledgers that are not what they were


@pytest.mark.parametrize(("seconds", "way"), [(3600, "forward"), (-3600, "back"), (61, "forward"), (-61, "back")])
def test_a_clock_that_was_set(world, seconds, way):
    """Since the first question of this boot; a minute is allowed."""
    budget = world.budget(tokens=5)
    assert budget.allows(1)
    world.wait(100)
    world.wall_ns += seconds * SECOND
    said_unknown(budget, f"the clock was set {way} by {abs(seconds):,} s")
    world.wall_ns -= seconds * SECOND
    assert budget.allows(1)


def test_a_clock_that_creeps(world):
    """Many small steps are a large one."""
    budget = world.budget(tokens=100)
    answers = []
    for _ in range(4):
        answers.append(bool(budget.allows(1)))
        world.wait(10)
        world.wall_ns += 25 * SECOND
    assert answers == [True, True, True, False]


def test_a_clock_that_went_back_over_a_reboot(world):
    """That can be seen; one that went forward cannot."""
    budget = world.budget(tokens=5)
    assert budget.allows(1)
    world.boot, world.boot_ns, world.wall_ns = "second-boot", SECOND, world.wall_ns - 3600 * SECOND
    said_unknown(budget, "the clock was set back by 3,600 s")
    world.wall_ns += 2 * 3600 * SECOND
    assert budget.allows(1)


def test_a_machine_without_names_for_its_boots(world):
    """The wall's clock is all that there is: ten minutes by it, and it must not go back."""
    world.boot, world.boot_ns = "", 0
    budget = world.budget(tokens=10)
    assert budget.allows(10)
    world.wait(599)
    world.boot_ns = 0
    assert not budget.allows(1)
    world.wall_ns += SECOND
    assert budget.allows(1)
    world.wall_ns -= 100 * SECOND
    said_unknown(budget, "the clock was set back by 100 s")


def confirm(world):
    """What a person does: `sessionlog budget reset`."""
    with open_ledger(str(world.ledger)) as book:
        return confirm_ledger(book, str(world.ledger), world.env, world.clock())


def delete_ledger(world):
    for path in world.ledger.parent.glob("ledger.sqlite*"):
        path.unlink()


@pytest.mark.parametrize("is_open", [True, False])
def test_a_ledger_that_was_deleted(world, is_open):
    """While a budget had it open, or not: what it alone knew is gone."""
    budget = world.budget(tokens=5)
    assert budget.allows(5)
    if not is_open:
        budget.close()
    delete_ledger(world)
    said_unknown(budget, "was deleted or replaced since it was last asked: `sessionlog budget reset` confirms that")
    said_unknown(world.budget(tokens=5), "was deleted or replaced")


def test_a_ledger_that_was_replaced(world, tmp_path):
    """By another one that is a ledger as well."""
    budget = world.budget(tokens=5)
    assert budget.allows(5)
    budget.close()
    delete_ledger(world)
    other = World(tmp_path / "other")
    assert other.budget(tokens=5, ledger=world.ledger).allows(1)
    said_unknown(budget, "was deleted or replaced")


def test_a_marker_that_was_deleted(world):
    """The ledger knows everything: the marker is made again."""
    budget = world.budget(tokens=5)
    assert budget.allows(1)
    [marker] = world.markers
    known = marker.read_bytes()
    marker.unlink()
    budget.close()
    assert budget.allows(1)
    assert marker.read_bytes() == known


def test_a_marker_that_was_deleted_confirms_no_clock(world):
    """Whoever makes it again has not been asked about that."""
    assert world.budget(tokens=5).allows(1)
    [marker] = world.markers
    marker.unlink()
    world.boot, world.wall_ns = "second-boot", world.wall_ns - 3600 * SECOND
    said_unknown(world.budget(tokens=5), "the clock was set back")
    said_unknown(world.budget(tokens=5), "the clock was set back")


def test_a_reservation_of_another_ledger_is_not_released(world):
    """Numbers begin anew with every ledger."""
    budget = world.budget(tokens=5)
    old = budget.allows(1)
    budget.close()
    delete_ledger(world)
    confirm(world)
    world.wait(1)
    assert budget.allows(2).reservation == old.reservation
    old.release()
    assert budget.remaining().amount == 3


def test_a_marker_that_cannot_be_made(world):
    """A deletion could not be noticed."""
    folder = world.home / ".local" / "state" / "sessionlog"
    folder.mkdir(parents=True)
    (folder / "budgets").write_text("in the way", "utf-8")
    said_unknown(world.budget(tokens=5), "")


def test_a_person_confirms(world):
    """Then the ledger and the clock are as they are."""
    budget = world.budget(tokens=5)
    assert budget.allows(5)
    budget.close()
    delete_ledger(world)
    world.wait(700)
    world.wall_ns += 3600 * SECOND
    assert [sentence.partition(" since")[0] for sentence in confirm(world)] == [
        f"the ledger {world.ledger} was deleted or replaced"
    ]
    assert budget.allows(5)
    world.wall_ns += 3600 * SECOND
    assert len(confirm(world)) == 1
    assert confirm(world) == []
    assert not budget.allows(1)


def test_nothing_is_confirmed_by_allowing_it(world):
    """The next one is told of it, too."""
    assert world.budget(tokens=5).allows(1)
    world.wall_ns += 3600 * SECOND
    assert "the clock was set" in world.budget(tokens=5, on_unknown="allow").allows(1).reason
    said_unknown(world.budget(tokens=5), "the clock was set")


def test_a_rebuild_keeps_reservations(world):
    """It reads logs anew, and of reservations no log tells."""
    world.answer(tokens=2)
    budget = world.budget(tokens=10)
    assert budget.allows(5)
    budget.close()

    rebuild(str(world.ledger), PriceBook.load(), world.surroundings)
    assert budget.remaining().amount == 3


def test_a_rebuild_of_a_damaged_ledger_is_another_ledger(world):
    """What cannot be known to be all is not known."""
    budget = world.budget(tokens=10)
    assert budget.allows(5)
    budget.close()
    connection = sqlite3.connect(world.ledger)
    [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'reservations'")
    connection.close()
    content = bytearray(world.ledger.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    world.ledger.write_bytes(content)
    assert rebuild(str(world.ledger), PriceBook.load(), world.env).damaged
    said_unknown(budget, "was deleted or replaced")


# --- threads and forks


def test_threads_share_a_budget(world):
    """Never more than there is."""
    budget = world.budget(requests=30)
    answers = []

    def ask():
        answers.extend(bool(budget.allows(1)) for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answers), sum(answers)) == (60, 30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_budget_outlives_a_fork(world):
    """The child opens the ledger for itself, and both see what the other reserved."""
    budget = world.budget(requests=3)
    assert budget.allows(1)
    assert in_child(lambda: [bool(budget.allows(1)), budget.remaining().amount]) == [True, 1]
    assert [bool(budget.allows(1)) for _ in range(2)] == [True, False]


def test_a_ledger_shared_by_threads(world):
    """Only who asks for it may use a connection in another thread."""
    world.ledger.parent.mkdir(parents=True)
    found = []
    for shared in (True, False):
        book = open_ledger(str(world.ledger), PriceBook.load(), shared=shared)

        def ask(book=book):
            try:
                found.append(book.meta("nothing"))
            except sqlite3.ProgrammingError:
                found.append("refused")

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        book.close()
    assert found == [None, "refused"]


def test_a_ledger_is_whole_after_budgets(world):
    """Reservations are written as everything else is: with the sums of their pages."""
    world.answer(tokens=2)
    budget = world.budget(tokens=10)
    answers = [budget.allows(1) for _ in range(5)]
    answers[0].release()
    verified = verify_ledger(str(world.ledger), budget_prices(), world.surroundings)
    assert (verified.is_whole, verified.compared) == (True, 1)


def budget_prices():
    """Those of the settings of the world."""
    return PriceBook.load({"acme/m": {"input": 1_000_000, "output": 0}})


def test_the_present_by_both_clocks():
    """Within one process it only goes on, and the boot is the same."""
    before, after = read_clock(), read_clock()
    assert before.boot == after.boot
    assert 0 <= after.boot_ns - before.boot_ns < 60 * SECOND
    assert before.boot_ns > 0


def test_a_process_stands_for_a_boot_without_a_name(monkeypatch):
    """What it sees itself is measured by a clock that nobody sets."""
    monkeypatch.setattr(clock, "_known", [])
    monkeypatch.setattr(clock, "_BOOT_ID", "/no/such/file")
    before, after = read_clock(), read_clock()
    assert before.boot == after.boot
    assert before.boot.startswith("process-")
    assert 0 <= after.boot_ns - before.boot_ns < 60 * SECOND
