"""An estimate counts what a provider will be sent, and pictures by no length of theirs."""

from sessionlog.context.tokens import count_tokens
from sessionlog.context.xray.measure import IMAGE
from sessionlog.conversation.history.weight import IMAGE_TOKENS, estimate_tokens
from sessionlog.messages.message import ContentPart, Message, ToolRequest


def test_texts_names_and_arguments_count():
    """And four for the frame of each message."""
    assert estimate_tokens(Message.user("")) == 4
    assert estimate_tokens(Message.user("Who is there?", name="Ada")) == 4 + count_tokens(
        "Who is there?"
    ) + count_tokens("Ada")
    asked = Message.assistant(
        "So", tool_calls=[ToolRequest("c1", "look", {"a": [1]}), ToolRequest("c2", "look", "{bro")]
    )
    wanted = 4 + sum(map(count_tokens, ("So", "look", '{"a":[1]}', "look", "{bro")))
    assert estimate_tokens(asked) == wanted


def test_a_picture_is_a_picture():
    """A megabyte of it is no more than an address."""
    for picture in (
        ContentPart.of_image(b"\x00" * 1_000_000),
        ContentPart.of_image_url("http://x"),
        ContentPart(type="image", extra={"source": {"data": "A" * 1_000_000}}),
    ):
        assert estimate_tokens(Message.user(["look", picture])) == 4 + count_tokens("look") + 1500
    assert IMAGE_TOKENS == IMAGE


def test_what_nobody_knows_counts_as_json():
    """A piece of a provider's own is sent, too."""
    part = ContentPart(type="thinking", extra={"thinking": "so it is"})
    assert estimate_tokens(Message.assistant([part])) == 4 + count_tokens('{"thinking":"so it is"}')
