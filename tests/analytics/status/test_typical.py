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
    found = status(book_of(*made))["typical"]
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
        ('[b]\ntokens = 75\nper = "session"', None),
    ],
)  # fmt: skip
def test_how_many_more_fit_in_what_is_left(budget, fits):
    """The tightest budget says; one that every session has anew limits no number of them."""
    found = own(book_of(session("s", record())), budget)
    assert found["typical"]["byTask"][0]["fits"] == fits
    assert ("typical.byTask.fits" in found["unavailable"]) == (fits is None)


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
