"""What is usual: medians by task, and how many such sessions fit in what is left."""

import pytest

from sessionlog.analytics.status.typical import NEWEST, median
from tests.analytics.status.statuses import own, status
from tests.ledger.entries import NOON, book_of, record, session


def test_typical_is_the_median_by_task():
    """Of finished sessions; those without a task are a group; the commonest comes first."""
    made = [
        session(f"fix-{n}", record(input=n), metadata={"task": "fix"}) for n in (10, 20, 999_999)
    ] + [session("plain", record(input=1)), session("open", record(), status=None)]  # fmt: skip
    found = status(book_of(*made), everything=True)["typical"]
    assert found["sessions"] == 4
    fix, plain = found["byTask"]
    assert (fix["task"], fix["sessions"], fix["totalTokens"], fix["requests"]) == ("fix", 3, 25, 1)
    assert fix["cost"] == pytest.approx(40e-6)
    assert (plain["task"], plain["totalTokens"]) == (None, 6)


@pytest.mark.parametrize(
    ("budget", "fits"),
    [
        ('[b]\ntokens = 75\nperiod = "day"', 4), ('[b]\nrequests = 3\nperiod = "day"', 2),
        ('[b]\nusd = 0.0001\nperiod = "day"', 2), ('[b]\ntokens = 10\nperiod = "day"', 0),
        ('[b]\ntokens = 75\nperiod = "day"\n[c]\nrequests = 2\nperiod = "day"', 1),
        ('[b]\ntokens = 75\nper = "session"', None), ('[b]\ntokens = 150\nstop = 50\nperiod = "day"', 4),
        ('[b]\ntokens = 1\nperiod = "day"\nmodel = "gpt-*"', None), ('[b]\ntokens = 30\nperiod = "day"\nmodel = "M"', 1),
    ],
)  # fmt: skip
def test_how_many_more_fit_in_what_is_left(budget, fits):
    """The tightest budget says; one that every session has anew limits no number of them."""
    found = own(book_of(session("s", record())), budget)
    assert found["typical"]["byTask"][0]["fits"] == fits
    assert ("typical.byTask.fits" in found["unavailable"]) == (fits is None)
    assert found["typical"]["byTask"][0]["limitedBy"] == (None if fits is None else "c" if "[c]" in budget else "b")


def test_a_tenth_fits_ten_times_into_one():
    """And not nine times, as a float would have it."""
    book = book_of(session("s", record(cost_nano=100_000_000)))
    assert own(book, '[b]\nusd = 1.1\nperiod = "day"')["typical"]["byTask"][0]["fits"] == 10


def test_a_budget_limits_by_what_such_sessions_use_of_it():
    """One of a dear model lets pass as many as its use of that model allows."""
    mixed = record(model="dear", input=20), record(model="cheap", input=500)
    book = book_of(*(session(f"s{n}", *mixed) for n in range(2)), session("t", record(model="cheap")))
    [task] = own(book, '[b]\ntokens = 150\nperiod = "day"\nmodel = "dear"')["typical"]["byTask"]
    assert (task["fits"], task["limitedBy"]) == (4, "b")


def test_the_sessions_own_task_comes_first():
    """However rare it is; one without a finished session is named."""
    made = [session(f"fix-{n}", record(), metadata={"task": "fix"}) for n in range(3)]
    made.append(session("rare", record(), metadata={"task": "rare"}, last_ns=NOON + 1))
    first, second = status(book_of(*made))["typical"]["byTask"]
    assert (first["task"], first["ofThisTask"], second["task"], second["ofThisTask"]) == ("rare", True, "fix", False)
    made.append(session("open", record(), metadata={"task": "new"}, last_ns=NOON + 2, status=None))
    assert status(book_of(*made))["unavailable"]["typical.ofThisTask"] == "no finished session with task new yet"


def test_what_cannot_be_priced_is_not_said_to_fit():
    """A budget in dollars might have room for none."""
    found = own(book_of(session("s", record(provider="none", model="none"))), '[b]\nusd = 1\nperiod = "day"')
    assert found["typical"]["byTask"][0]["fits"] is None


def test_only_recent_sessions_are_usual():
    """What an agent took a thousand sessions ago says little."""
    old = [session(f"old-{n:03}", record(), last_ns=NOON - 1) for n in range(3)]
    new = [session(f"new-{n:03}", record()) for n in range(NEWEST)]
    assert status(book_of(*old, *new))["typical"]["sessions"] == NEWEST


def test_the_median_is_exact():
    """A whole number stays one."""
    assert [median(values) for values in ([], [3], [1, 3], [1, 2], [0.5, 1.5])] == [None, 3, 2, 1.5, 1.0]
