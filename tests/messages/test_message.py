"""A message is a value that cannot be wrong."""

import pytest

from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import ContentPart, Message, ToolRequest


def test_the_helpers_make_each_role():
    """System, user, assistant and tool."""
    call = ToolRequest("c1", "look", {"path": "a.py"})
    assert Message.system("Be brief.") == Message("system", "Be brief.")
    assert Message.user("hi", name="Ada") == Message("user", "hi", name="Ada")
    assert Message.assistant(tool_calls=[call], partial="failed").tool_calls == (call,)
    assert Message.tool("found", "c1", name="look").tool_call_id == "c1"


def test_a_content_of_pieces_has_a_text():
    """That of its texts; pictures say nothing, and None is an empty text."""
    message = Message.user(["look ", ContentPart.of_image(b"\x89PNG"), ContentPart.of_text("here")])
    assert message.text == "look here"
    assert Message.user(ContentPart.of_text("alone")).content == (ContentPart.of_text("alone"),)
    assert Message("assistant", None).content == ""


def test_empty_says_and_asks_for_nothing():
    """A call is something."""
    assert Message.assistant().is_empty
    assert not Message.assistant(tool_calls=[ToolRequest("c1", "look")]).is_empty
    assert not Message.user("x").is_empty


def test_lists_that_were_given_are_not_held():
    """What the caller does with them later changes no message."""
    pieces, calls, extra = [ContentPart.of_text("a")], [ToolRequest("c1", "look")], {"k": 1}
    message = Message.assistant(pieces, tool_calls=calls)
    marked = Message("user", "x", extra=extra)
    pieces.clear(), calls.clear(), extra.clear()
    assert (len(message.content), len(message.tool_calls), marked.extra) == (1, 1, {"k": 1})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Message("robot", "x"), "unknown role 'robot'; a message is of system, user, assistant, tool"),
        (lambda: Message("user", 5), "content is int"),
        (lambda: Message("user", [5]), "a piece of content is int"),
        (lambda: Message("user", "x", name=5), "name is int; it must be a text"),
        (lambda: Message("tool", "x", tool_call_id=5), "tool_call_id is int"),
        (lambda: Message("assistant", "", tool_calls=["c1"]), "a tool call is str"),
        (lambda: Message("assistant", "", tool_calls="c1"), "tool_calls is str"),
        (lambda: Message("user", "x", tool_calls=[ToolRequest("c", "n")]), "only an assistant message has them"),
        (lambda: Message("user", "x", extra={"role": "tool"}), "extra has 'role', which is the name of a field"),
        (lambda: Message("user", "x", extra={5: 1}), "a key of extra is int"),
        (lambda: Message("user", "x", extra=[]), "extra is list; it must be a mapping"),
        (lambda: ToolRequest(None, "look"), "id of a tool call is NoneType"),
        (lambda: ToolRequest("c1", "look", extra={"name": "x"}), "extra has 'name'"),
        (lambda: ContentPart(type=""), "a piece of content without a type"),
        (lambda: ContentPart(type="text", text=5), "text is int"),
        (lambda: ContentPart(type="image", data="abc", media_type="image/png"), "data is str; it must be bytes"),
        (lambda: ContentPart(type="image", data=b"abc"), "data without its media_type"),
        (lambda: ContentPart(type="image", media_type="image/png", extra={"data": 1}), "extra has 'data'"),
    ],
)
def test_a_wrong_message_cannot_be_made(make, says):
    """The error names the field and what it is."""
    with pytest.raises(InvalidHistory) as raised:
        make()
    assert says in str(raised.value)
