"""What was used adds up and is saved."""

import pytest

from sessionlog.conversation.history.conversation import TokenCounter
from sessionlog.errors import InvalidHistory
from sessionlog.events.tokens import TokenUsage


def test_requests_add_up():
    """Also one of which nobody told the tokens."""
    counter = TokenCounter()
    counter.add(TokenUsage(input=10, output=2, cache_read=5))
    counter.add(None)
    counter.add(TokenUsage(output=1))
    assert (counter.usage, counter.requests) == (TokenUsage(input=10, output=3, cache_read=5), 3)
    assert counter.to_dict() == {"input": 10, "output": 3, "cache_read": 5, "total": 18, "requests": 3}


def test_it_comes_back():
    """None is nothing."""
    counter = TokenCounter(TokenUsage(input=10, output=3, reasoning=1), 3)
    read = TokenCounter.from_dict(counter.to_dict())
    assert (read.usage, read.requests) == (counter.usage, 3)
    assert TokenCounter.from_dict(None).to_dict() == TokenCounter().to_dict()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "token_usage: usage is a list"),
        ({"input": -1, "output": "x"}, "token_usage: input: a negative count; output: 'x' is not a count"),
        ({"input": 1, "requests": 1.5}, "token_usage: requests: 1.5 is not a whole number"),
    ],
)
def test_wrong_numbers_are_named(value, says):
    """A sum of guesses would be none."""
    with pytest.raises(InvalidHistory) as raised:
        TokenCounter.from_dict(value)
    assert str(raised.value).startswith(says)


def test_names_of_the_original_and_of_providers_are_read():
    """What another program has saved is restored, too."""
    assert TokenCounter.from_dict({"prompt_tokens": 7, "completion_tokens": 3}).usage.total == 10
