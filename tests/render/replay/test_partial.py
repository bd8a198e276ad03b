"""A stream under way, bounded, and shown only where no response follows."""

from sessionlog.events.payloads import LLMDelta
from sessionlog.render.replay import partial
from sessionlog.render.replay.blocks import ResponseBlock, Served, ToolCallBlock
from sessionlog.render.replay.partial import Partial


def stream(*deltas):
    """A partial answer of some deltas."""
    part = Partial()
    for delta in deltas:
        part.add(delta)
    return part


def test_text_and_calls_are_put_together():
    """Pieces of arguments without an id belong to the call before them."""
    part = stream(
        LLMDelta(content="he"),
        LLMDelta(content="llo", model="m", attempt={"provider_name": "p"}),
        LLMDelta(tool_call_id="1", tool_call_name="read"),
        LLMDelta(tool_call_args='{"a":'),
        LLMDelta(tool_call_id="2", tool_call_name="bash", tool_call_args="{}"),
        LLMDelta(tool_call_id="1", tool_call_args="1}"),
    )
    assert (part.text, part.model, part.provider) == ("hello", "m", "p")
    assert [(call.name, call.arguments) for call in part.calls] == [("read", '{"a":1}'), ("bash", "{}")]
    assert [type(block) for block in part.blocks(Served())] == [ResponseBlock, ToolCallBlock, ToolCallBlock]


def test_a_stream_that_ended_in_an_error_is_a_failure():
    """The last delta may say why it broke."""
    [block] = stream(LLMDelta(content="he"), LLMDelta(err="reset")).blocks(Served())
    assert (block.error, block.text, block.unfinished) == ("reset", "he", False)


def test_an_empty_stream_is_nothing():
    """Deltas without content show nothing."""
    part = stream(LLMDelta(), LLMDelta(model="m"))
    assert list(part.blocks(Served())) == []


def test_what_is_kept_is_bounded(monkeypatch):
    """A stream of gigabytes is not a gigabyte in memory."""
    monkeypatch.setattr(partial, "_KEPT", 1000)
    part = stream(*(LLMDelta(content="x" * 100) for _ in range(100)))
    assert len(part.text) <= 1000
