"""What was heard: a request repeats the conversation, and only what is new in it is told."""

from sessionlog.analytics.diff.heard import Heard, meaning_of
from sessionlog.analytics.diff.said import make_called, make_said


def ask(heard, *words, earlier=None):
    """What is new in a request; a word that begins with a blank is an answer."""
    messages = [[make_said("assistant" if word.startswith(" ") else "user", word)] if word else [] for word in words]
    new = heard.new([meaning_of(message) for message in messages], messages.__getitem__, earlier)
    return [said.text for said in new]


def answer(heard, text):
    heard.expect(make_said("assistant", text))


def test_a_request_repeats_what_was_sent_and_answered():
    """Only the new prompt is new."""
    heard = Heard()
    assert ask(heard, "a") == ["a"]
    answer(heard, " b")
    assert ask(heard, "a", " b", "c") == ["c"]
    assert ask(heard, "a", " b", "c") == []


def test_the_same_words_said_twice_are_two_messages():
    """A place counts, not a text."""
    heard = Heard()
    assert ask(heard, "go on") == ["go on"]
    answer(heard, " ok")
    assert ask(heard, "go on", " ok", "go on") == ["go on"]
    answer(heard, " ok")
    assert ask(heard, "go on", " ok", "go on", " ok", "go on") == ["go on"]


def test_a_request_may_hold_only_what_is_new():
    """Behind what came before; answers are repeated in it."""
    heard = Heard()
    assert ask(heard, "a", earlier=0) == ["a"]
    answer(heard, " b")
    assert ask(heard, " b", "a", earlier=1) == ["a"]
    assert ask(heard, earlier=3) == []
    answer(heard, " d")
    assert ask(heard, "a", " b", "a", " d", "e") == ["e"]


def test_a_history_that_was_cut_brings_nothing_back():
    """What is left of it was said before; the summary is new."""
    heard = Heard()
    ask(heard, "a")
    answer(heard, " b")
    ask(heard, "a", " b", "c")
    answer(heard, " d")
    assert ask(heard, "a", "summary", "c", " d", "e") == ["summary", "e"]


def test_a_conversation_beside_is_not_the_end_of_the_main_one():
    """A title is asked for between two turns."""
    heard = Heard()
    ask(heard, "a")
    answer(heard, " b")
    assert ask(heard, "make a title") == ["make a title"]
    answer(heard, " t")
    assert ask(heard, "a", " b", "c") == ["c"]


def test_what_was_taken_back_may_be_said_again():
    """The same prompt after an undo is new, and so is everything after a clear."""
    heard = Heard()
    ask(heard, "a")
    answer(heard, " b")
    heard.drop(2)
    assert ask(heard, "a") == ["a"]
    answer(heard, " b")
    heard.drop()
    assert ask(heard, "a", " b") == ["a", " b"]


def test_what_is_told_beside_requests_is_known_to_them():
    """A fork's inheritance is counted among the earlier messages."""
    heard = Heard()
    inherited = [[make_said("user", "a")], [make_said("assistant", " b")]]
    new = heard.retold([meaning_of(message) for message in inherited], inherited.__getitem__)
    assert [said.text for said in new] == ["a", " b"]
    assert ask(heard, "c", earlier=2) == ["c"]
    assert ask(heard, "a", " b", "c", "d") == ["d"]


def test_an_id_survives_a_text_that_was_cut():
    """A result is known by its call, an answer by those that it makes."""
    heard = Heard()
    heard.expect(make_said("tool", "a long result", call_id="1"))
    heard.expect(make_said("assistant", "x ", calls=[make_called("f", {"a": 1}, "2")]))
    repeated = [
        [make_said("tool", "a long…", call_id="1")],
        [make_said("assistant", "x", calls=[make_called("f", {"a": 1.0}, "2")])],
    ]
    assert heard.new([meaning_of(message) for message in repeated], repeated.__getitem__, 0) == []
