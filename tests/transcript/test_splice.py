"""An element that is a role and a text is the same whether it is read or not."""

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.messages.read import read_entry
from sessionlog.transcript.digests import digests_of, has_content
from sessionlog.transcript.splice import Added, answer_entry, plain_answer
from tests.profiles import examples

_ROLES = st.sampled_from(["user", "assistant", "system", "developer", "tool", "model", "", None, 1, ["user"]])
_TEXTS = st.sampled_from(["", " \n", "hello", "a\r\nb", '{"a": 1}', "\ud83d\ude00", "x\ud800", None, 5, ["hello"], {}])
_ELEMENTS = st.dictionaries(st.sampled_from(["role", "content", "name", "summary"]), st.none(), max_size=4).flatmap(
    lambda keys: st.fixed_dictionaries(
        {key: _ROLES if key == "role" else _TEXTS if key == "content" else st.sampled_from(["x", True]) for key in keys}
    )
)
_ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "content": _TEXTS,
        "tool_calls": st.sampled_from([None, [], 2, [{"id": "c", "name": "f", "arguments": {}}]]),
        "reasoning": st.sampled_from([None, "", "hm"]),
        "partial": st.sampled_from([None, "cancelled"]),
        "message": st.sampled_from([None, "x", {"role": "user", "content": "hello"}]),
        "usage": st.just({"input": 1}),
    },
)


@examples(200)
@given(_ELEMENTS)
def test_a_plain_element_is_digested_as_if_it_were_read(raw):
    """Its digest, its prompt and its new messages are those of the message."""
    entry, one = read_entry(raw), Added(raw)
    assert one.digests == digests_of(entry)
    found = tuple(filter(has_content, entry.messages))
    if found:
        one.mark_new()
    assert one.is_new_prompt == (any(message.role == "user" for message in found) and entry.is_prompt)
    assert one.new == found
    if one.role:
        assert [message.role for message in entry.messages] == [one.role]
        assert bool(found) == bool(one.text.strip())


@examples(200)
@given(_ANSWERS, st.sampled_from(["", "streamed"]))
def test_an_answer_that_is_a_text_is_digested_as_if_it_were_read(data, streamed):
    """Only where nothing but its text is logged."""
    entry, text = answer_entry(data, streamed), plain_answer(data, streamed)
    one = Added(data, lambda payload: answer_entry(payload, streamed), answer=text)
    assert one.digests == digests_of(entry)
    if text is not None:
        assert [(message.role, message.tool_calls) for message in entry.messages] == [("assistant", ())]
