"""Open tool calls and their results find each other."""

from sessionlog.render.replay.blocks import ToolCallBlock
from tests.render.replay.test_fold import answer, event, fold, request

CALLS = (
    {"id": "1", "name": "read", "arguments": {"path": "a"}},
    {"id": "2", "name": "read", "arguments": {"path": "b"}},
    {"id": "3", "name": "bash"},
)


def left(*events):
    """The ids of three calls that these events do not answer."""
    return [
        block.call.id
        for block in fold(answer("", *CALLS), *events)
        if isinstance(block, ToolCallBlock) and not block.answered
    ]


def ran(**data):
    """A tool.call."""
    return event("tool.call", data)


def test_a_call_is_found_by_id_then_by_arguments_then_by_name():
    """tool.call events of the Go original have no id."""
    renamed, same = ran(id="3", tool="renamed"), ran(tool="read", input={"path": "b"})
    changed = ran(tool="read", input={"path": "changed by a hook"})
    assert left(renamed) == ["1", "2"]
    assert left(same) == ["1", "3"]
    assert left(changed) == ["2", "3"]
    assert left(renamed, same, changed, ran(tool="read")) == []


def test_only_ids_find_a_call_in_a_request():
    """What is left is shown once, in the order of the answer."""
    results = request({"role": "tool", "tool_call_id": "2", "content": "b"}, {"role": "tool", "content": "none"})
    assert left(results) == ["1", "3"]
    assert left(results, request()) == ["1", "3"]
