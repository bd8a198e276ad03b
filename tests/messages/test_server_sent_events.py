"""`messages.server_sent_events`: what is parsed, and what would take too much time and memory."""

import json

import pytest

from sessionlog.messages import server_sent_events
from sessionlog.messages.server_sent_events import parse_json


@pytest.fixture(autouse=True)
def _few_values(monkeypatch):
    """A limit of 100 values, in place of a million."""
    monkeypatch.setattr(server_sent_events, "MAX_VALUES", 100)


MANY = [
    "[" + "[]," * 200 + "[]]", "[" + "{}," * 200 + "{}]", "[" * 101 + "]" * 101, "[" + '"",' * 200 + "1]",
    "[" + '"\\\\",' * 200 + "1]", "[" + "1," * 200 + "NaN]", "[" + "1," * 200, '{"a": "x", "b": [' + "1," * 200 + "1]}",
]  # fmt: skip


@pytest.mark.parametrize("text", MANY, ids=range(len(MANY)))
def test_a_text_of_many_values_is_not_parsed(text):
    """Whether or not it is JSON in the end."""
    with pytest.raises(ValueError, match="more than 100 values"):
        parse_json(text.encode())


WORDS = ["a, b" * 500, "[{,\\" * 500, '"[],' * 500, '\\"' * 500, "\\" * 501 + ",[" * 500]


@pytest.mark.parametrize("word", WORDS, ids=range(len(WORDS)))
def test_what_is_within_texts_is_not_counted(word):
    """A text is one value, however many commas, brackets, quotes and escapes it has."""
    value = {"messages": [{"role": "user", "content": word}, word, {word: [1, word]}]}
    assert parse_json(json.dumps(value).encode()) == value
