"""A conversation is put together from requests that hold all of it, or only what is new."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.context.snapshots.talk import Talk
from sessionlog.messages.read import read_entry
from tests.profiles import examples

_WORDS = st.sampled_from("abc")
_MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": _WORDS}), max_size=4
)
_MOVES = st.lists(
    st.tuples(st.just("listen"), _MESSAGES, st.integers(0, 6)) | st.tuples(st.just("add"), _WORDS) | st.tuples(st.just("compact"), _WORDS),
    max_size=8,
)  # fmt: skip


def fresh(messages):
    """The prompts behind the last answer, looked for in all that was said."""
    answers = [place for place, message in enumerate(messages) if message.is_response]
    behind = messages[answers[-1] + 1 if answers else 0 :]
    return [part.text for message in behind if message.is_prompt for part in message.pieces]


@examples(200)
@given(_MOVES)
def test_a_talk_is_what_was_said_last(moves):
    """After each request its messages behind those it does not repeat, and the prompts that no answer has followed."""
    talk = Talk()
    for move in moves:
        before = [message.pieces for message in talk.messages]
        if move[0] == "listen":
            talk.listen(move[1], move[2], None)
            new = [read_entry(message).pieces for message in move[1]]
            assert [message.pieces for message in talk.messages] == before[: move[2]] + new
            assert talk.fresh_prompts() == fresh(talk.messages)
        elif move[0] == "add":
            talk.add(read_entry({"role": "assistant", "content": move[1]}))
        else:
            talk.compact(move[1])
    assert talk.fresh_prompts() == fresh(talk.messages)


def words(talk):
    """What is said."""
    return [part.text for message in talk.messages for part in message.pieces]


def user(text):
    return {"role": "user", "content": text}


def test_what_is_inherited_takes_the_place_of_what_was_only_heard():
    """It stands behind what requests have sent; nobody has asked it just now."""
    talk = Talk()
    talk.listen([user("a")], 0, None)
    talk.add(read_entry({"role": "assistant", "content": "b"}))
    talk.inherit([user("c"), user("d")], None)
    assert words(talk) == ["a", "c", "d"]
    assert talk.fresh_prompts() == []


def test_the_last_messages_are_taken_back():
    """More than there are is all of them."""
    talk = Talk()
    talk.listen([user("a"), user("b"), user("c")], 0, None)
    talk.take_back(1)
    assert words(talk) == ["a", "b"]
    talk.take_back(9)
    assert words(talk) == []


def test_a_cut_drops_spans_and_puts_messages_in():
    """Odd spans and odd messages mean nothing."""
    talk = Talk()
    talk.listen([user(text) for text in "abcde"], 0, None)
    added = [{"at": 0, "message": user("x")}, {"at": "?"}, 7]
    talk.cut([[1, 3], [4, 99], ["a"], None, [-5, 0]], added)
    assert words(talk) == ["x", "a", "d"]
