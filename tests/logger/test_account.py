"""Account: the sums of one logger, and the hole that its log does not tell of yet."""

from sessionlog.logger.account import Account
from sessionlog.logger.notices import Notices


def account():
    """One that says nothing aloud."""
    return Account("/log", Notices(lambda text: None))


def test_a_gap_grows_until_it_is_told():
    """It has the first and the last number, and the newest cause."""
    one = account()
    assert one.gap_data() is None
    one.widen_gap(4, "ENOSPC")
    one.widen_gap(5, "EIO")
    assert one.gap_data() == {"events": 2, "from_seq": 4, "to_seq": 5, "reason": "EIO"}
    one.forget_gap(one.gap)
    assert one.gap_data() is None


def test_what_is_lost_while_a_gap_is_written_stays():
    """A signal handler's loss comes between the line and its being told."""
    one = account()
    one.widen_gap(4, "ENOSPC")
    one.widen_gap(5, "ENOSPC")
    told = one.gap
    one.widen_gap(7, "EIO")
    one.forget_gap(told)
    assert one.gap_data() == {"events": 1, "from_seq": 6, "to_seq": 7, "reason": "EIO"}
    one.forget_gap(None)
    assert one.gap_data() == {"events": 1, "from_seq": 6, "to_seq": 7, "reason": "EIO"}


def test_what_was_broken_off_is_lost():
    """Neither written, dropped nor waiting: an exception that is not ours to catch came between."""
    one = account()
    one.emitted, one.written = 10, 5
    one.drop("ENOSPC")
    health = one.health(waiting=1, unlocked=False)
    assert (health.emitted, health.written, health.dropped, health.deferred) == (10, 5, 4, 1)
    assert health.dropped_by == {"ENOSPC": 1, "interrupted": 3}
