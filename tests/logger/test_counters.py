"""Counters: the sums of one logger, and the gap that is not in its log yet."""

from sessionlog.logger.counters import Counters
from sessionlog.logger.notices import Notices


def counters():
    """Counters whose notices are dropped."""
    return Counters("/log", Notices(lambda text: None))


def test_a_gap_grows_until_it_is_logged():
    """It has the first and the last number, and the newest cause."""
    one = counters()
    assert one.gap_data() is None
    one.widen_gap(4, "ENOSPC")
    one.widen_gap(5, "EIO")
    assert one.gap_data() == {"events": 2, "from_seq": 4, "to_seq": 5, "reason": "EIO"}
    one.forget_gap(one.gap)
    assert one.gap_data() is None


def test_what_is_lost_while_a_gap_is_written_stays():
    """A signal handler loses an event between the gap's line and `forget_gap`."""
    one = counters()
    one.widen_gap(4, "ENOSPC")
    one.widen_gap(5, "ENOSPC")
    logged = one.gap
    one.widen_gap(7, "EIO")
    one.forget_gap(logged)
    assert one.gap_data() == {"events": 1, "from_seq": 6, "to_seq": 7, "reason": "EIO"}
    one.forget_gap(None)
    assert one.gap_data() == {"events": 1, "from_seq": 6, "to_seq": 7, "reason": "EIO"}


def test_what_was_broken_off_is_lost():
    """Neither written, dropped nor waiting: interrupted by an exception that the logger does not catch."""
    one = counters()
    one.emitted, one.written = 10, 5
    one.drop("ENOSPC")
    health = one.health(waiting=1, unlocked=False)
    assert (health.emitted, health.written, health.dropped, health.deferred) == (10, 5, 4, 1)
    assert health.dropped_by == {"ENOSPC": 1, "interrupted": 3}
