"""The search for secrets takes linear time, whatever it searches; how fast that is, `benchmarks/bench_secrets.py` prints."""

import time

import pytest

from sessionlog.events.redact import redact_line
from tests.events.adversarial import adversarial
from tests.turns import by_turns

SHORT, TIMES, GENEROUS, ROUNDS = 12_000, 8, 3, 12


@pytest.fixture(scope="module")
def texts():
    """Each text in both lengths: 40 MB, which the test process does not hold for ever."""
    return adversarial(SHORT), adversarial(SHORT * TIMES)


def seconds(text):
    """This thread's own time; but for a floor below which a clock says nothing."""
    before = time.thread_time()
    redact_line(text)
    return max(time.thread_time() - before, 0.0002)


@pytest.mark.parametrize("name", by_turns(adversarial(1), 4))
def test_p17_eight_times_the_text_takes_eight_times_the_time(name, texts):
    """A square would take 64 times as long. Rounds are repeated until the fastest say so: a busy machine only delays it."""
    short_text, long_text = (some[name] for some in texts)
    redact_line(short_text)
    short = long = float("inf")
    for _ in range(ROUNDS):
        short = min(short, seconds(short_text))
        long = min(long, seconds(long_text))
        if long <= short * TIMES * GENEROUS:
            return
    pytest.fail(f"{short * 1000:.2f} ms for {SHORT:,} bytes, {long * 1000:.2f} ms for {TIMES} times as many")


@pytest.mark.parametrize("end", ["(", "[", "{", "$"])
@pytest.mark.parametrize("name", ["api_key=", "some_key=", "password=", "secret="])
def test_p17_a_long_value_that_turns_out_to_be_a_call_is_given_up_at_once(name, end):
    """Each letter was given back and what follows was read again: 48 KB took three seconds."""
    text = (name + "aB1" * 100_000 + end).encode()
    started = time.thread_time()
    redact_line(text)
    assert time.thread_time() - started < 5


def test_p17_texts_are_the_same_in_every_run():
    """Drawn from a fixed seed, so that a failure can be repeated."""
    assert adversarial(2000) == adversarial(2000)
    assert all(len(text) < 40_000 for text in adversarial(2000).values())
