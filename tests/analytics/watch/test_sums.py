"""The sums of a watch are those of `usage`, whatever was used when."""

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import fold_usage
from sessionlog.analytics.watch.snapshot import Pace, window_start
from sessionlog.analytics.watch.sums import Window, find_running, paces_of
from sessionlog.analytics.window import UsageWindow
from sessionlog.ledger.schema import RUNNING_NS
from tests.ledger.entries import NOON, SECOND, book_of, record, session
from tests.profiles import examples

RECORDS = st.builds(
    lambda seconds, tokens, cost, failed: record(
        time_ns=NOON - seconds * SECOND // 2, input=tokens, cache_read=tokens * 3, cost_nano=cost, failed=failed
    ),
    st.integers(-100, 1500), st.integers(0, 10**6), st.none() | st.integers(0, 10**12), st.booleans(),
)  # fmt: skip
SESSIONS = st.lists(
    st.tuples(st.lists(RECORDS, max_size=5), st.sampled_from([None, "success"]), st.integers(0, 1500)), max_size=5
)


@examples(40)
@given(SESSIONS, st.integers(0, 59))
def test_sums_are_those_of_usage_whatever_was_used_when(drawn, second):
    """And the steps add up; who is running is who has not ended and was heard of in ten minutes."""
    now_ns = NOON + second * SECOND
    book = book_of(
        *(
            session(f"s-{n}", *records, status=status, last_ns=NOON - quiet * SECOND)
            for n, (records, status, quiet) in enumerate(drawn)
        )
    )
    window = Window(start_ns=window_start(now_ns), now_ns=now_ns, filters={})
    paces, of_future = paces_of(book.query, window)
    span = UsageWindow(start_ns=window.start_ns, end_ns=now_ns)
    totals = fold_usage(book, Selection(window=span, by=(), filters={}, zone=UTC, now_ns=now_ns)).totals
    known = [pace.cost_nano for pace in paces.values() if pace.cost_nano is not None]
    assert sum(pace.requests for pace in paces.values()) == totals.requests
    assert sum(pace.failed_requests for pace in paces.values()) == totals.failed_requests
    assert sum(pace.total_tokens for pace in paces.values()) == totals.total_tokens
    costs = [cost for cost in (totals.known_nano, totals.estimated_nano) if cost is not None]
    assert (sum(known) if known else None) == (sum(costs) if costs else None)
    assert all(sum(pace.steps) == pace.total_tokens for pace in paces.values())
    times = [one.time_ns for records, _, _ in drawn for one in records]
    assert of_future == any(time_ns >= now_ns for time_ns in times)
    assert {one.session for one in find_running(book.query, window)} == {
        f"s-{n}"
        for n, (records, status, quiet) in enumerate(drawn)
        if records and status is None and NOON - quiet * SECOND > now_ns - RUNNING_NS
    }
    book.close()


def test_a_pace_of_nothing_has_a_cost_of_nothing_known():
    """Not one of 0."""
    assert (Pace().tokens_per_minute, Pace().cost_per_minute) == (0.0, None)
