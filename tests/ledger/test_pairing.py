"""Pairing: rows that look alike are paired in time order, as many as possible, and of as many the nearest."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.ledger.pairing import NEAR_BY_ID_NS, NEAR_NS, Call, distance_ns, pair_calls
from tests.ledger.entries import SECOND
from tests.profiles import examples


def call(second, number=0, *, took=0, tokens=(1, 0, 0, 1), response_id=None, source="", model="m", failed=False):
    """A request that ended so many seconds after the start of the day."""
    end_ns = int(second * SECOND)
    return Call(
        begin_ns=end_ns - int(took * SECOND), end_ns=end_ns, tokens=tokens, failed=failed, response_id=response_id,
        names=(model, model), source=source, order=(end_ns, number), row=(number,),
    )  # fmt: skip


def numbers(wire, logs):
    """The pairs by the numbers of their rows, in order."""
    return sorted((pair.wire.row[0], pair.log.row[0]) for pair in pair_calls(wire, logs))


def test_a_row_is_no_distance_away_while_the_request_lasts():
    """Agents log its start, its end, or an instant between."""
    request = call(60, took=30)
    assert [distance_ns(request, call(second)) // SECOND for second in (20, 30, 45, 60, 65)] == [10, 0, 0, 0, 5]


def test_equal_ids_are_paired_before_equal_tokens():
    """Although another row with equal tokens is nearer."""
    wire = [call(10, 0, response_id=7)]
    assert numbers(wire, [call(10, 0), call(40, 1, tokens=(9, 9, 9, 9), response_id=7)]) == [(0, 1)]


def test_ids_that_come_again_are_paired_with_the_nearest():
    """Some servers have few ids, and use them for months."""
    wire = [call(0, 0, response_id=7), call(5000, 1, response_id=7)]
    assert numbers(wire, [call(5001, 0, response_id=7)]) == [(1, 0)]
    assert numbers(wire[:1], [call(NEAR_BY_ID_NS // SECOND + 1, 0, response_id=7)]) == []


def test_a_named_source_comes_before_any():
    """Who may take any row takes what is left."""
    wire = [call(10, 0, source=""), call(10, 1, source="codex")]
    assert numbers(wire, [call(10, 0, source="codex"), call(12, 1, source="pi")]) == [(0, 1), (1, 0)]


def test_a_failed_request_is_no_success():
    """Both may have no tokens."""
    assert numbers([call(1, tokens=(0, 0, 0, 0), failed=True)], [call(1, tokens=(0, 0, 0, 0))]) == []


SECONDS = st.lists(st.integers(0, 40), max_size=5)


@examples(200)
@given(SECONDS, SECONDS, st.integers(0, 12))
def test_no_other_pairs_in_order_are_better(wired, logged, took):
    """As if every set of pairs in order were tried: the most pairs, and of these the least distance."""
    wire = [call(second, number, took=took) for number, second in enumerate(sorted(wired))]
    logs = [call(second, number) for number, second in enumerate(sorted(logged))]
    found = numbers(wire, logs)
    assert [log for _, log in found] == sorted(log for _, log in found)
    best = max(
        (
            (count, -sum(distance_ns(wire[i], logs[j]) for i, j in zip(some, others, strict=True)))
            for count in range(min(len(wire), len(logs)) + 1)
            for some in combinations(range(len(wire)), count)
            for others in combinations(range(len(logs)), count)
            if all(distance_ns(wire[i], logs[j]) <= NEAR_NS for i, j in zip(some, others, strict=True))
        ),
        default=(0, 0),
    )
    assert (len(found), -sum(distance_ns(wire[i], logs[j]) for i, j in found)) == best
