"""What messages of all providers' shapes are made of, and what counts how much."""

import pytest

from sessionlog.context.tokens import count_tokens
from sessionlog.context.xray import measure
from sessionlog.context.xray.measure import IMAGE, SizedMessage, measure_message, measure_tool, measure_tools
from tests.context.xray.sized import _letters, result, said, user  # noqa: F401

PICTURE = {"type": "image", "source": {"type": "base64", "data": "A" * 100_000}}


def shown(message, **options):
    """Its pieces, in short."""
    return [(piece.role, piece.kind, piece.tokens) for piece in measure_message(message, "m", **options)]


@pytest.mark.usefixtures("_letters")
@pytest.mark.parametrize(
    ("message", "pieces"),
    [
        (user("four"), [("user", "text", 4)]),
        ({"role": "developer", "content": "four"}, [("system", "text", 4)]),
        ({"role": "model", "content": "four"}, [("assistant", "text", 4)]),
        ({"role": "user", "content": ["ab", {"type": "text", "text": "cd"}]}, [("user", "text", 2)] * 2),
        ({"role": "user", "content": [PICTURE]}, [("user", "image", IMAGE)]),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, [("user", "image", IMAGE)]),
        ({"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "four"}}]},
         [("user", "text", 4)]),
        ({"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": "A" * 999}}]},
         [("user", "image", IMAGE)]),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hmm", "signature": "A" * 999}]},
         [("assistant", "reasoning", 3)]),
        ({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "A" * 600}]},
         [("assistant", "reasoning", 100)]),
        ({"role": "assistant", "content": "a", "reasoning_content": "hmm"},
         [("assistant", "reasoning", 3), ("assistant", "text", 1)]),
        ({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"}, [("assistant", "call", 4)]),
        ({"type": "function_call_output", "call_id": "c", "output": "four"}, [("tool", "result", 4)]),
        (result("c", "four"), [("tool", "result", 4)]),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [PICTURE]}]},
         [("tool", "result", IMAGE)]),
        (said("", ("c", "ls", "{}")), [("assistant", "call", 4)]),
        (said("a", ("c", "ls", "{}")), [("assistant", "text", 1), ("assistant", "call", 4)]),
        ("four", [("unknown", "text", 4)]),
        (None, [("unknown", "text", 0)]),
        ({"role": "user"}, [("user", "text", 0)]),
        ({"role": "user", "parts": [1]}, [("user", "text", 3)]),
        ({"role": "user", "parts": [{"text": "abc"}, {"inlineData": {"data": "A" * 9000}}]},
         [("user", "text", 3), ("user", "image", IMAGE)]),
        ({"role": "user", "content": [{"kind": "binary", "data": "A" * 9000}]}, [("user", "image", IMAGE)]),
        ({"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}}]}, [("assistant", "call", 4)]),
        ({"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": "abc"}}]}, [("tool", "result", 3)]),
    ],
)  # fmt: skip
def test_every_shape_is_understood(message, pieces):
    """The bytes of a picture or a signature never count."""
    assert shown(message) == pieces


@pytest.mark.usefixtures("_letters")
def test_words_beside_results_are_no_prompt():
    """An agent adds them, not its user."""
    content = [{"type": "tool_result", "tool_use_id": "c", "content": "r"}, {"type": "text", "text": "note"}]
    assert shown({"role": "user", "content": content}) == [("tool", "result", 1), ("system", "text", 4)]


@pytest.mark.usefixtures("_letters")
def test_a_line_may_stand_for_a_picture():
    """So it is in what is made from other agents' logs, and nowhere else."""
    message = user("look\n[image]\n[image]")
    assert shown(message, placeholders=True)[1:] == [("user", "image", 2 * IMAGE)]
    assert len(shown(message)) == 1


@pytest.mark.parametrize(
    ("tool", "given", "target", "is_read"),
    [
        ("read", {"path": "src/a.py"}, "src/a.py", True),
        ("Read", {"file_path": "a.py", "limit": 5}, "a.py", True),
        ("ReadFile", '{"filePath":"a.py"}', "a.py", True),
        ("write", {"path": "a.py"}, "a.py", False),
        ("bash", {"command": "cat a.py\nls"}, "cat a.py…", False),
        ("spread", {"path": "a.py"}, "a.py", False),
        ("read", {"path": "d/" * 60 + "a.py"}, "…", True),
        ("bash", "{torn", "", False),
        ("bash", ["x"], "", False),
    ],
)
def test_a_call_is_known_by_what_it_is_about(tool, given, target, is_read):
    """A path, a command; only a tool that reads reads a file. Paths are known by their whole names."""
    call = measure_message(said("", ("c", tool, given)), None)[0]
    assert (call.target[: len(target) or 1], call.is_read) == (target, is_read)
    assert len(call.target) <= 80
    other = measure_message(said("", ("c", tool, {"path": "e/" + "d/" * 60 + "a.py"})), None)[0]
    assert call.digest != other.digest


def test_a_definition_counts_as_it_is_sent():
    """With the wrapper that templates print, and once what the provider says about calling."""
    tool = {"name": "read", "description": "Read a file", "parameters": {"type": "object"}}
    assert measure_tool(tool, None).tokens == measure_tool({"type": "function", "function": tool}, None).tokens
    assert measure_tool(tool, None).name == "read"
    assert [piece.kind for piece in measure_tools([tool, 3], None)] == ["tool", "tool", "instructions"]
    assert measure_tools([], None) == measure_tools(None, None) == measure_tools("x", None) == ()


def test_framing_counts():
    """An empty message is not free."""
    assert measure_message(user(""), None)[0].tokens == measure.MESSAGE
    assert measure_message(result("c", ""), None)[0].tokens == measure.MESSAGE + measure.RESULT


def test_a_text_is_counted_once():
    """Then it is let go."""
    one = SizedMessage(user("some words"), None, placeholders=False)
    assert one.uncounted == one.size > 0
    assert one.pieces() is one.pieces()
    assert one.uncounted == 0
    assert one.pieces()[0].tokens == count_tokens("some words") + measure.MESSAGE
    assert SizedMessage(user("a" * 100), None, placeholders=False).size == pytest.approx(100, abs=50)


def test_results_in_results_without_end_are_sized_by_their_length():
    """No provider was sent them."""
    message = {"role": "user", "content": "x"}
    for _ in range(5000):
        message = {"type": "tool_result", "role": "user", "content": [message]}
    assert SizedMessage(message, None, placeholders=False).pieces()[0].tokens >= 0
