"""The snapshot is a value: its sums are computed, its JSON is camelCase."""

import pytest

from sessionlog.context import (
    ContextSnapshot,
    FullContextSnapshot,
    MessageDetailSnapshot,
    MessageSnapshot,
    PromptSnapshot,
    RequestUsageSnapshot,
    SessionUsage,
    ToolDetailSnapshot,
    ToolSnapshot,
    TurnUsage,
    record_steps_from_snapshot,
)

SNAPSHOT = ContextSnapshot(
    agent_id="a",
    system_prompts=("Be brief.",),
    system_prompt_tokens=1,
    tools=(ToolSnapshot(name="read", description=None, parameters_tokens=1, total_tokens=2),),
    history_user_tokens=4,
    history_assistant_tokens=8,
    history_tool_call_tokens=16,
    history_tool_return_tokens=32,
    current_user_tokens=64,
    current_assistant_tokens=128,
    current_tool_call_tokens=256,
    current_tool_return_tokens=512,
    messages=(MessageSnapshot(role="user", content="x" * 201, estimated_tokens=64),),
    per_request_usage=(
        RequestUsageSnapshot(request_num=1, input_tokens=5, output_tokens=6, turn_id=1),
        RequestUsageSnapshot(request_num=2, input_tokens=7, output_tokens=8, turn_id=2),
    ),
    context_window=2048,
    turn_usage=TurnUsage(requests=1),
    session_usage=SessionUsage(turns=2),
)


def test_sums():
    """Each is what its name says, and the total is everything."""
    assert SNAPSHOT.tool_tokens == 2
    assert SNAPSHOT.history_tokens == 4 + 8
    assert SNAPSHOT.get_history_total() == 4 + 8 + 16 + 32
    assert SNAPSHOT.current_message_tokens == 64
    assert SNAPSHOT.user_message_tokens == 4 + 64
    assert SNAPSHOT.assistant_message_tokens == 8 + 128
    assert SNAPSHOT.tool_call_tokens == 16 + 256
    assert SNAPSHOT.tool_return_tokens == 32 + 512
    assert SNAPSHOT.total_tokens == SNAPSHOT.get_context_total() == 1023
    assert SNAPSHOT.get_context_percentage() == 1023 / 2048 * 100
    assert (SNAPSHOT.sum_response_input_tokens, SNAPSHOT.sum_response_output_tokens) == (12, 14)
    assert [step.request_num for step in SNAPSHOT.turn_steps] == [2]


def test_an_unknown_window_has_no_percentage():
    """Nothing is divided by nothing."""
    assert ContextSnapshot(agent_id="a", context_window=0).get_context_percentage() == 0


def test_json():
    """Long messages are cut, usage is there or null, and empty parts of the distribution are left out."""
    said = SNAPSHOT.to_dict()
    assert said["messages"][0]["content"] == "x" * 200 + "..."
    assert said["sessionUsage"]["turns"] == 2
    assert [child["name"] for child in said["distribution"]["children"]] == [
        "System Prompts", "Tool Definitions", "User Messages", "Assistant Messages", "Tool Usage",
    ]  # fmt: skip
    empty = ContextSnapshot(agent_id="a").to_dict()
    assert (empty["turnUsage"], empty["sessionUsage"], empty["distribution"]["children"]) == (None, None, [])
    assert empty.keys() == said.keys()


def test_a_snapshot_is_a_value():
    """It cannot be changed, and an equal one is equal."""
    with pytest.raises(AttributeError):
        SNAPSHOT.context_window = 1
    assert ContextSnapshot(agent_id="a") == ContextSnapshot(agent_id="a")


def test_its_steps_as_rows():
    """Under the agent's name, or another; a step that knows no turn is of the first."""
    assert [(row.session_id, row.turn_id) for row in record_steps_from_snapshot(SNAPSHOT)] == [("a", 1), ("a", 2)]
    loose = ContextSnapshot(
        agent_id="a", per_request_usage=(RequestUsageSnapshot(request_num=1, input_tokens=0, output_tokens=0),)
    )
    (row,) = record_steps_from_snapshot(loose, "s")
    assert (row.session_id, row.turn_id) == ("s", 1)


def test_the_full_snapshot_sums_up():
    """What no longer fits is history, and is not of the total."""
    full = FullContextSnapshot(
        agent_id="a",
        context_window=100,
        system_prompts=(PromptSnapshot(content="p", tokens=1),),
        tools=(
            ToolDetailSnapshot(name="t", description=None, parameters_schema={}, parameters_tokens=0, total_tokens=2),
        ),
        messages=(
            MessageDetailSnapshot(role="user", content="old", estimated_tokens=4, in_context=False),
            MessageDetailSnapshot(role="user", content="new", estimated_tokens=8),
        ),
        memory_tokens=16,
    )
    assert full.to_dict()["tokenSummary"] == {
        "systemPrompts": 1, "tools": 2, "memory": 16, "history": 4, "current": 8, "total": 27, "contextWindow": 100,
        "contextWindowKnown": True, "usagePercent": 27.0, "estimated": True,
    }  # fmt: skip
    assert FullContextSnapshot(agent_id="a", context_window=0).usage_percent == 0
