"""Running totals → what each response used."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.codex.rows import Counted, advance, read_vector, tokens_of
from tests.profiles import examples

count = st.integers(0, 10**9)
vectors = st.tuples(count, count, count, count, count)
TOTAL = (100_000, 60_000, 5000, 1000, 0)


def held(value):
    """A counter as a row holds it."""
    return convert(value, Counted)


def plus(a, b):
    """The total after one more response."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


@examples(200)
@given(st.lists(vectors, min_size=1, max_size=20), st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_the_uses_add_up_to_the_last_total(shares, repeats):
    """However often a total is repeated, and whichever rows are lost, nothing is counted twice or not at all."""
    total, before, used = (0, 0, 0, 0, 0), None, (0, 0, 0, 0, 0)
    for share, repeat in zip(shares, repeats, strict=False):
        total = plus(total, share)
        for _ in range(repeat):
            before, told = advance(before, total, share)
            used = plus(used, told or (0, 0, 0, 0, 0))
    before, told = advance(before, total, shares[-1])
    assert plus(used, told or (0, 0, 0, 0, 0)) == total


def test_an_older_total_is_passed_over():
    """Within two responses, or two percent, of the total it is a row that was written late."""
    near = (99_000, 60_000, 5000, 1000, 0)
    assert advance(TOTAL, near, (1, 0, 0, 0, 0)) == (TOTAL, None)
    far = (91_000, 60_000, 5000, 1000, 0)
    assert advance(TOTAL, far, (9000, 0, 0, 0, 0)) == (TOTAL, None)


def test_a_total_that_begins_anew_gives_the_last_share():
    """After a restart the total is no sum of ours; the share is."""
    fresh, share = (900, 0, 90, 0, 0), (400, 0, 40, 0, 0)
    assert advance(TOTAL, fresh, share) == (fresh, share)
    assert advance(TOTAL, fresh, None) == (fresh, fresh)


def test_an_inherited_total_is_not_used():
    """A fork's first total holds its parent's; only the share is the fork's."""
    assert advance(None, TOTAL, (7, 0, 1, 0, 0), inherits=True) == (TOTAL, (7, 0, 1, 0, 0))
    assert advance(None, TOTAL, (7, 0, 1, 0, 0)) == (TOTAL, TOTAL)


def test_a_share_alone_counts_and_moves_the_total():
    """A row without a total is not told again by the next one."""
    before, used = advance(None, None, (10, 0, 1, 0, 0))
    assert (before, used) == ((10, 0, 1, 0, 0), (10, 0, 1, 0, 0))
    assert advance(before, (30, 0, 3, 0, 0), None)[1] == (20, 0, 2, 0, 0)
    assert advance(before, None, None) == (before, None)


def test_a_field_that_is_no_count_keeps_its_last_value():
    """What is wrong is said; what is missing is not."""
    data = held({"input_tokens": 5.0, "cached_input_tokens": -1, "output_tokens": "7", "reasoning_output_tokens": None})
    vector, issues = read_vector(data, (1, 2, 3, 4, 5))
    assert vector == (5, 2, 7, 4, 5)
    assert issues == ("cached_input_tokens: a negative count",)
    assert read_vector(data)[0] == (5, 0, 7, 0, 0)


def test_what_is_no_counter_says_so():
    """Nothing is nothing; another shape is damage."""
    assert read_vector(held(None)) == (None, ())
    for value in ([], "5", 5, {}, {"tokens": 1}):
        assert read_vector(held(value))[0] is None
        assert read_vector(held(value))[1]


@examples(100)
@given(vectors)
def test_classes_are_disjoint(vector):
    """Input, cache reads and writes are the prompt, never more; reasoning is never more than the output."""
    usage = tokens_of(vector).usage
    assert usage.input + usage.cache_read + usage.cache_write == vector[0]
    assert usage.output == vector[2]
    assert usage.reasoning <= usage.output


def test_cached_and_written_tokens_leave_the_input():
    """The input of the log includes both."""
    usage = TokenUsage(input=10, cache_read=60, cache_write=30, output=9, reasoning=4)
    assert tokens_of((100, 60, 9, 4, 30)).usage == usage


def test_a_process_that_resumes_a_thread_counts_from_nothing():
    """Its first total is the share; the first total of the process before is only a late row."""
    first = (6000, 5000, 100, 0, 0)
    for resumed in ((6200, 5200, 110, 0, 0), (20_000, 15_000, 900, 0, 0)):
        assert advance((12_050, 10_100, 205, 0, 0), resumed, resumed, first=first) == (resumed, resumed)
    assert advance((6100, 5000, 110, 0, 0), first, first, first=first) == ((6100, 5000, 110, 0, 0), None)
