"""What the provider counted, as in the context report."""

import pytest

from sessionlog.context.snapshots.logged import read_logged_session
from sessionlog.context.xray.history import fold_history
from tests.context.xray.sized import answer, ask, event, start, user

ITEMS = (
    start(), ask(user("a")), answer(prompt=10), ask(user("b")), answer(prompt=7, agent="scout"), answer(prompt=30),
    ask(user("c")), ask(user("c")), answer(error="overloaded"),
)  # fmt: skip


def counts(items, request=None):
    """Prompt and output tokens that the provider counted."""
    read = read_logged_session(items, request=request)
    return read.prompt_tokens, read.output_tokens


@pytest.mark.parametrize("request_", [1, 2, 3])
def test_it_is_the_number_of_the_x_ray(request_):
    """At each request; a sub-agent answers none, and what was never answered is none."""
    sample = fold_history(ITEMS, request=request_).samples[request_ - 1]
    assert counts(ITEMS, request_) == (sample.reported, None if sample.reported is None else 1)


def test_by_default_it_is_the_last_that_was_counted():
    """A request that failed tells nothing of the window; nothing at all is known of an empty log."""
    assert counts(ITEMS) == counts(ITEMS, 2) == (30, 1)
    assert counts([]) == counts([], 1) == counts(ITEMS, 0) == (None, None)


def test_how_a_provider_counts_shows_in_all_its_answers():
    """The Go dialect's input holds what was cached, unless another answer shows that it does not."""
    usage = {"input": 100, "output": 1, "cache_read": 40}
    items = [start(v=None), ask(user("go")), event("llm.response", content="a", usage=usage)]
    assert counts(items, 1) == (100, 1)
    items += [ask(user("go")), event("llm.response", content="a", usage=usage | {"input": 10})]
    assert counts(items, 1) == (140, 1)
