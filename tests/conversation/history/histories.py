"""Histories for the tests: short words for messages, and what hypothesis draws."""

from hypothesis import strategies as st

from sessionlog.messages.message import ContentPart, Message, ToolRequest

SYSTEM, USER, ASSISTANT = Message.system("Be brief."), Message.user("question"), Message.assistant("answer")


def asks(*ids, text=""):
    """An assistant that asks for tools."""
    return Message.assistant(text, tool_calls=[ToolRequest(one, "look", {"of": one}) for one in ids])


def result(id_, text="found"):
    """What a tool says."""
    return Message("tool", text, tool_call_id=id_)


def weigh(message):
    """A count of tokens that is easy to add up: the length of the text."""
    return len(message.text)


_ids = st.sampled_from(["a", "b", "c"])
_texts = st.integers(1, 40).map(lambda size: "x" * size)

any_message = st.one_of(
    st.builds(Message.system, _texts),
    st.builds(Message.user, _texts),
    st.builds(lambda text: Message("user", text, extra={"summary": True}), _texts),
    st.builds(Message.assistant, _texts),
    st.builds(lambda ids, text: asks(*ids, text=text), st.lists(_ids, min_size=1, max_size=3), _texts | st.just("")),
    st.builds(result, _ids | st.none() | st.just(""), _texts),
)
any_history = st.lists(any_message, max_size=24)
"""Orphans, open calls, repeated ids and older summaries anywhere."""


@st.composite
def _group(draw):
    ids = draw(st.lists(_ids, min_size=1, max_size=3, unique=True))
    answers = [result(one, draw(_texts)) for one in draw(st.permutations(ids))]
    return [asks(*ids, text=draw(_texts | st.just(""))), *answers]


@st.composite
def _valid(draw):
    plain = st.one_of(*(st.builds(make, _texts).map(lambda one: [one]) for make in (Message.system, Message.user)))
    pieces = draw(st.lists(plain | st.builds(Message.assistant, _texts).map(lambda one: [one]) | _group(), max_size=16))
    history = [message for piece in pieces for message in piece]
    if draw(st.booleans()):
        history += draw(_group())[: draw(st.integers(1, 4))]  # an interrupted turn: its last calls are open
    return history


valid_history = _valid()

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_extra = st.dictionaries(st.sampled_from(["summary", "cache_control", "source", "", "index", "ü"]), _json, max_size=2)
_text = st.text(max_size=12)

_pieces = st.one_of(
    st.builds(ContentPart.of_text, _text),
    st.builds(ContentPart.of_image, st.binary(max_size=20), st.sampled_from(["image/png", "audio/wav"])),
    st.builds(ContentPart.of_image_url, _text),
    st.builds(ContentPart, type=st.sampled_from(["thinking", "image", "file"]), text=st.none() | _text, extra=_extra),
    st.builds(ContentPart, type=st.just("sealed"), extra=st.fixed_dictionaries({"data": _json})),
)
_calls = st.lists(st.builds(ToolRequest, _text, _text, _json, extra=_extra), max_size=2)
_rest = {"name": st.none() | _text, "partial": st.none() | _text, "extra": _extra}
saved_message = st.one_of(
    st.builds(
        Message, st.sampled_from(["system", "user", "tool"]), _text | st.lists(_pieces, max_size=3),
        tool_call_id=st.none() | _text, **_rest,
    ),
    st.builds(Message, st.just("assistant"), _text | st.lists(_pieces, max_size=3), tool_calls=_calls, **_rest),
)  # fmt: skip
"""Messages with whatever may be in one."""
