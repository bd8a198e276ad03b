"""A conversation is put together from requests that hold all of it, or only what is new."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.context.snapshots.messages import read_message
from sessionlog.context.snapshots.talk import Talk

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
    return [part.text for message in behind if message.is_prompt for part in message.parts]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(_MOVES)
def test_a_talk_is_what_was_said_last(moves):
    """After each request its messages behind those it does not repeat, and the prompts that no answer has followed."""
    talk = Talk()
    for move in moves:
        before = [message.parts for message in talk.messages]
        if move[0] == "listen":
            talk.listen(move[1], move[2], None)
            new = [read_message(message).parts for message in move[1]]
            assert [message.parts for message in talk.messages] == before[: move[2]] + new
            assert talk.fresh_prompts() == fresh(talk.messages)
        elif move[0] == "add":
            talk.add(read_message({"role": "assistant", "content": move[1]}))
        else:
            talk.compact(move[1])
    assert talk.fresh_prompts() == fresh(talk.messages)
