"""What is not known of a budget is not allowed, and says why; unless that is asked for."""

import sqlite3

import pytest

from sessionlog import files
from sessionlog.analytics.budgets import book as budget_book
from sessionlog.errors import LogNotReadable
from tests.analytics.budgets.budget_world import said_unknown


@pytest.fixture
def impatient(monkeypatch):
    """Nobody is waited for."""
    monkeypatch.setattr(budget_book, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr("sessionlog.ledger.store.WAIT_SECONDS", 0.02)


def test_a_ledger_that_cannot_be_opened(world):
    """No, with the reason; or yes, with the reason, where that is asked for."""
    world.ledger.parent.mkdir(parents=True)
    world.ledger.write_bytes(b"this is no database, but somebody's letter" * 100)
    said_unknown(world.budget(usd=5), "file is not a database")
    yes = world.budget(usd=5, on_unknown="allow").allows(1)
    assert (bool(yes), yes.reservation) == (True, None)
    assert "file is not a database" in yes.reason
    yes.release()


def test_a_ledger_with_odd_rows(world):
    """Whatever a damaged row brings up is a reason, not an exception."""
    budget = world.budget(usd=5)
    assert budget.allows(1)
    connection = sqlite3.connect(world.ledger)
    connection.execute("DROP TABLE cells")
    connection.commit()
    connection.close()
    said_unknown(budget, "no such table: cells")


@pytest.mark.usefixtures("impatient")
def test_another_process_writes_for_too_long(world):
    """It is waited for, but not for ever."""
    budget = world.budget(usd=5)
    assert budget.allows(1)
    connection = sqlite3.connect(world.ledger, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    assert "another process has been writing to the ledger for too long" in budget.allows(1).reason
    world.answer()
    assert "another process has been writing to the ledger for too long" in budget.allows(1).reason
    left = budget.remaining()
    assert (left.amount, "another sessionlog is reading new logs" in left.reason) == (None, True)
    connection.execute("ROLLBACK")
    connection.close()
    assert budget.allows(1)


def test_a_model_without_a_price(world):
    """A budget in dollars does not know what it cost; one in tokens does."""
    world.answer(model="mystery")
    said_unknown(world.budget(usd=5), "there is no price for acme/mystery (requests: 1), so at least $0.00 was used")
    assert world.budget(tokens=5).allows(1)
    assert world.budget(usd=5, model="m").allows(1)
    yes = world.budget(usd=5, on_unknown="allow").allows(5)
    assert (bool(yes), "acme/mystery" in yes.reason) == (True, True)


def test_what_is_known_to_be_too_much(world):
    """Is no, whatever else is unknown, and whatever is allowed then."""
    world.answer(model="mystery")
    world.answer("t", tokens=5)
    no = world.budget(usd=5, on_unknown="allow").allows(1)
    assert (bool(no), no.reason) == (False, "budget 'budget': $5.00 used of $5.00 per 5h")
    assert world.budget(usd=5).remaining().amount == 0


def test_a_log_that_cannot_be_read_any_more(world, monkeypatch):
    """What is in it now is not known, until it can be read again."""
    path = world.answer()
    budget, other = world.budget(requests=5), world.budget(requests=5, source="codex")
    assert budget.allows(1)
    world.answer()
    opened = files.open_log

    def refuse(name):
        if str(name) == str(path):
            raise LogNotReadable(f"{name}: permission denied")
        return opened(name)

    monkeypatch.setattr(files, "open_log", refuse)
    said_unknown(budget, f"{path} cannot be read")
    assert other.allows(1)
    monkeypatch.undo()
    assert budget.remaining().amount == 2
