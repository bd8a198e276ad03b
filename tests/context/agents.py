"""pydantic-ai agents without a network, and how a run of theirs gets into a log."""

import asyncio
import json
from datetime import timedelta

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from sessionlog.events.envelope import Event
from sessionlog.events.times import utc_time

PROMPTS = ("Read a.py.", "And b.py?", "Thank you.")
SYSTEM, INSTRUCTIONS = "You are terse.", "Answer in English."


def plain_agent():
    """Calls each of its tools in its first turn, then repeats what they said."""
    return _with_tools(Agent(TestModel(), system_prompt=SYSTEM, instructions=INSTRUCTIONS))


def function_agent():
    """Calls both tools at once, then one, then none; most of each later prompt comes from a cache."""
    answers = iter(_answers())
    return _with_tools(
        Agent(FunctionModel(lambda messages, info: next(answers)), system_prompt=SYSTEM, instructions=INSTRUCTIONS)
    )


def _answers():
    read_a, read_b = {"path": "a.py"}, '{"path": "b.py"}'
    both = [ToolCallPart("read", read_a, "c1"), ToolCallPart("grep", {"word": "def"}, "c2")]
    parts = (
        [ThinkingPart("Two tools will do."), *both],
        [TextPart("a.py defines f.")],
        [TextPart("I look."), ToolCallPart("read", read_b, "c3")],
        [TextPart("b.py is empty.")],
        [TextPart("You are welcome.")],
    )
    cached = ((120, 0, 100), (180, 110, 40), (230, 170, 0), (260, 220, 20), (300, 250, 30))
    for index, (said, (prompt, read, written)) in enumerate(zip(parts, cached, strict=True), start=1):
        usage = RequestUsage(
            input_tokens=prompt, cache_read_tokens=read, cache_write_tokens=written, output_tokens=10 + index
        )
        yield ModelResponse(parts=list(said), usage=usage)


def _with_tools(agent):
    @agent.tool_plain
    def read(path: str) -> str:
        """Read a file."""
        return f"# {path}\n" * 3

    @agent.tool_plain
    def grep(word: str) -> dict[str, int]:
        """Count a word."""
        return {word: 1}

    return agent


def run_turns(agent):
    """Three turns of one conversation; each run's result."""
    results, history = [], None
    with asyncio.Runner() as runner:  # `run_sync` would leave its loop open
        for prompt in PROMPTS:
            results.append(runner.run(agent.run(prompt, message_history=history)))
            history = results[-1].all_messages()
    return results


def record(log, agent, messages):
    """Write a conversation as events, each request with all that it sends, at the times of the messages."""
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.function_schema.json_schema}
        for tool in agent.toolsets[0].tools.values()
    ]
    asked = None
    for index, message in enumerate(messages):
        if message.kind == "request":
            sent = [spelled for one in messages[: index + 1] for spelled in _spelled(one)]
            sent.append({"role": "system", "content": message.instructions})
            _write(log, "llm.request", message, {"model": "test", "messages": sent, "tools": tools})
            asked = message.timestamp
            for part in message.parts:
                if part.part_kind == "tool-return":
                    output = part.model_response_str()
                    data = {"tool": part.tool_name, "id": part.tool_call_id, "output": output}
                    _write(log, "tool.call", message, data)
        else:
            (said,) = _spelled(message)
            usage = message.usage
            cached = usage.cache_read_tokens + usage.cache_write_tokens
            classes = {
                "input": usage.input_tokens - cached, "output": usage.output_tokens,
                "cache_read": usage.cache_read_tokens, "cache_write": usage.cache_write_tokens,
            }  # fmt: skip
            took = (message.timestamp - asked) // timedelta(microseconds=1) / 1000
            del said["role"]
            _write(log, "llm.response", message, {**said, "usage": classes, "latency_ms": took})


def _write(log, type_, message, data):
    assert log.write(Event(session_id="", seq=0, type=type_, ts=utc_time(message.timestamp), data=data))


def _spelled(message):
    """A message as providers take it."""
    if message.kind == "response":
        calls = [
            {"id": part.tool_call_id, "function": {"name": part.tool_name, "arguments": part.args_as_json_str()}}
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        thought = "".join(part.content for part in message.parts if isinstance(part, ThinkingPart))
        said = {"content": text, "tool_calls": calls, "reasoning": thought or None}
        yield {"role": "assistant", **{key: value for key, value in said.items() if value is not None}}
        return
    for part in message.parts:
        assert not isinstance(part, RetryPromptPart)
        role = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool"}[part.part_kind]
        content = part.content if isinstance(part.content, str) else json.dumps(part.content, separators=(",", ":"))
        yield {"role": role, "content": content} | (
            {"tool_call_id": part.tool_call_id, "name": part.tool_name} if role == "tool" else {}
        )
