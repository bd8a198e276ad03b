"""What is not known of a budget is not allowed, and says why; unless that is asked for."""

import os
import sqlite3

import pytest

from sessionlog import files
from sessionlog.analytics.budgets import ledger as budget_ledger
from sessionlog.errors import LogNotReadable
from sessionlog.events.times import format_time
from tests.analytics.budgets.budget_world import said_unknown
from tests.ledger.entries import SECOND
from tests.sources.logs import answered, ended, start, write_log


@pytest.fixture
def impatient(monkeypatch):
    """Nobody is waited for."""
    monkeypatch.setattr(budget_ledger, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr("sessionlog.ledger.opening.WAIT_SECONDS", 0.02)


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
    connection.execute("DROP TABLE quarter_hours")
    connection.commit()
    connection.close()
    said_unknown(budget, "no such table: quarter_hours")


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
    said_unknown(
        world.budget(usd=5),
        "there is no price for acme/mystery (requests: 1), so at least $0.00 was used; `sessionlog pricing acme/mystery`",
    )
    assert world.budget(tokens=5).allows(1)
    assert world.budget(usd=5, model="m").allows(1)
    yes = world.budget(usd=5, on_unknown="allow").allows(5)
    assert (bool(yes), "acme/mystery" in yes.reason) == (True, True)


def test_what_is_known_to_be_too_much(world):
    """Is no, whatever else is unknown, and whatever is allowed then."""
    world.answer(model="mystery")
    world.answer("t", tokens=5)
    no = world.budget(usd=5, on_unknown="allow").allows(1)
    assert (bool(no), no.reason) == (False, "$5.00 used of $5.00 per 5h")
    assert world.budget(usd=5).remaining().amount == 0


def test_a_log_that_cannot_be_read_any_more(world, monkeypatch):
    """What is in it now is not known, until it can be read again."""
    path = world.answer()
    budget, other = world.budget(requests=5), world.budget(requests=5, source="codex")
    assert budget.allows(1)
    world.answer()
    opened = files.open_log

    def refuse(name, **how):
        if str(name) == str(path):
            raise LogNotReadable(f"{name}: permission denied")
        return opened(name, **how)

    monkeypatch.setattr(files, "open_log", refuse)
    said_unknown(budget, f"{path} cannot be read")
    assert other.allows(1)
    monkeypatch.undo()
    assert budget.remaining().amount == 2


def test_a_log_that_could_never_be_read(world, monkeypatch):
    """Whose it is nobody knows; once it can be read, all is known again."""
    world.answer("t")
    budget = world.budget(requests=5)
    path = world.answer("u")
    opened = files.open_log

    def refuse(name, **how):
        if str(name) == str(path):
            raise LogNotReadable(f"{name}: permission denied")
        return opened(name, **how)

    monkeypatch.setattr(files, "open_log", refuse)
    said_unknown(budget, f"{path} cannot be read (permission denied)")
    monkeypatch.undo()
    assert budget.remaining().amount == 3


def test_a_response_that_told_no_usage(world):
    """It has used something: neither dollars nor tokens are known then, and its model is not blamed."""
    world.answer(tokens=0)
    world.answer(tokens=1)
    said_unknown(world.budget(usd=5), "1 response has no usage in the log (session s; `exclude`")
    said_unknown(world.budget(tokens=5), "1 response has no usage in the log")
    assert "no price" not in world.budget(usd=5).allows(1).reason
    assert world.budget(requests=5).allows(1)


def test_sessions_without_usage_can_be_left_out(world):
    """They are named, and a budget that excludes them knows what the others used."""
    for session in ("mock-1", "mock-2", "mock-3", "mock-4"):
        world.answer(session, tokens=0)
    world.answer("s", tokens=1)
    named = "4 responses have no usage in the log (sessions mock-1, mock-2, mock-3 and 1 more; "
    said_unknown(world.budget(usd=5), named)
    assert world.budget(usd=5, exclude="MOCK-*").remaining().amount == 4
    said_unknown(world.budget(usd=5, exclude=["mock-1", "mock-2", "mock-4"]), "1 response has no usage")
    assert world.budget(usd=5, exclude="*").remaining().amount == 5


def test_a_session_that_is_excluded_may_do_anything(world):
    """It reserves nothing, so it takes nothing away from the others either."""
    world.answer("s", tokens=1)
    mine = world.budget(tokens=5, session_id="test-1", exclude="TEST-*")
    assert (bool(mine.allows(60)), mine.allows(3).reservation) == (True, None)
    assert "test-1 is excluded" in mine.allows(3).reason
    assert world.budget(tokens=5, session_id="s", exclude="TEST-*").allows(4)


def test_an_unreadable_log_of_an_excluded_session_alone(world, monkeypatch):
    """Leaves nothing open."""
    path, _ = world.answer("test-1"), world.answer("s")
    assert world.budget(requests=5).remaining().amount == 3
    opened = files.open_log

    def refuse(name, **how):
        if str(name) == str(path):
            raise LogNotReadable(f"{name}: permission denied")
        return opened(name, **how)

    monkeypatch.setattr(files, "open_log", refuse)
    world.answer("test-1")
    said_unknown(world.budget(requests=5), f"{path} cannot be read")
    assert world.budget(requests=5, exclude="test-*").remaining().amount == 4


def test_a_response_without_a_time(world):
    """May be of any time since its log was written to."""
    path = world.home / ".local" / "state" / "sessionlog" / "sessions" / "s.jsonl"
    write_log(path, start("", provider="acme", model="m"), answered("", model="m", usage={"input": 50}))
    os.utime(path, ns=(world.wall_ns, world.wall_ns))
    said_unknown(world.budget(usd=3), "1 response has no time in the log")
    os.utime(path, ns=(world.wall_ns - 6 * 3600 * SECOND,) * 2)
    assert world.budget(usd=3).remaining().amount == 3


def test_totals_without_a_price(world):
    """Of a session's end, without a request."""
    path = world.home / ".local" / "state" / "sessionlog" / "sessions" / "s.jsonl"
    now = format_time(world.wall_ns)
    write_log(path, start(now, provider="acme", model="mystery"), ended(now, tokens={"input": 5_000_000}))
    said_unknown(world.budget(usd=3), "there is no price for acme/mystery")
