"""One agent in four makes: a function, an async generator, and two pydantic-ai agents, one that streams.

They answer by the same rules from what they are sent, so that an answer shows what a session remembered.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from sessionlog.conversation import Agent, Message, Reply, TextDelta, ToolRequest
from sessionlog.events.tokens import TokenUsage

MAKES = ("function", "async function", "pydantic-ai", "pydantic-ai streamed")
USAGE = TokenUsage(input=30, output=20, cache_read=60, cache_write=10, reasoning=5)
"""Of every answer, but of those that are streamed by pydantic-ai's own model, which counts words."""


class City(BaseModel):
    """A city."""

    name: str
    population: int


def weather(city: str) -> str:
    """Say what the weather is like."""
    return f"sunny in {city}"


def population(city: str) -> dict[str, Any]:
    """Count the people of a city."""
    if city == "Atlantis":
        raise LookupError("it sank")
    return {"city": city, "people": 2_800_000}


@dataclass
class Brain:
    """What all of them think: from the texts that were said, who said them, and what tools have answered."""

    asked: int = 0

    def think(
        self, said: Sequence[tuple[str, str]], *, wants_city: bool = False
    ) -> str | list[tuple[str, str, dict[str, str]]]:
        """Return a text, or calls of tools: id, name and arguments."""
        self.asked += 1
        everything = " ".join(text for _, text in said)
        last_role, last = said[-1]
        name = re.search(r"My name is (\w+)", everything)
        if wants_city:
            return City(name="Rome", population=2_800_000).model_dump_json()
        if last_role == "tool":
            return f"{sum(role == 'tool' for role, _ in said)} results, the last: {last}"
        if last.startswith("Compare"):
            cities = last.split()[1:]
            calls = [(f"w{self.asked}-{city}", "weather", {"city": city}) for city in cities]
            return [*calls, (f"p{self.asked}", "population", {"city": cities[-1]})]
        if "my name" in last:
            return f"You are {name[1]}." if name else "I do not know."
        if last.startswith("Plan"):
            return f"plan {sum(text.startswith('Plan') for _, text in said)}: by {last.split()[-1]}"
        return f"Nice to meet you, {name[1]}!" if name else f"heard {len(said)}"


def make_agent(make: str, *, system: str | None = None) -> Agent:
    """Make an agent of one of the makes, with both tools."""
    maker: Callable[[], Any] = {
        "function": _function, "async function": _async_function,
        "pydantic-ai": lambda: _pydantic(streams=False), "pydantic-ai streamed": lambda: _pydantic(streams=True),
    }[make]  # fmt: skip
    return Agent(maker(), system, () if make.startswith("pydantic-ai") else (weather, population))


def _reply(thought: Any) -> Reply:
    calls = [] if isinstance(thought, str) else [ToolRequest(*call) for call in thought]
    message = Message.assistant(thought if isinstance(thought, str) else "", tool_calls=calls)
    return Reply(message=message, usage=USAGE, model="scripted", provider="test")


def _said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(one.role, one.text) for one in messages if one.role != "system"]


def _function() -> Any:
    brain = Brain()

    def answer(messages: list[Message], schema: Any = None) -> Reply:
        return _reply(brain.think(_said(messages), wants_city=schema is not None))

    return answer


def _async_function() -> Any:
    brain = Brain()

    async def answer(messages: list[Message], schema: Any = None) -> Any:
        thought = brain.think(_said(messages), wants_city=schema is not None)
        for word in re.findall(r"\S+\s*", thought) if isinstance(thought, str) else ():
            await asyncio.sleep(0)
            yield TextDelta(word)
        yield _reply(thought)

    return answer


def _pydantic(*, streams: bool) -> Any:
    brain = Brain()

    def think(messages: Any, info: Any) -> Any:
        said = []
        for part in (part for one in messages for part in one.parts):
            if isinstance(part, UserPromptPart):
                said.append(("user", str(part.content)))
            elif isinstance(part, TextPart):
                said.append(("assistant", part.content))
            elif isinstance(part, ToolReturnPart):
                said.append(("tool", part.model_response_str()))
        thought = brain.think(said, wants_city=bool(info.output_tools))
        if info.output_tools:
            return [(f"o{brain.asked}", info.output_tools[0].name, json.loads(thought))]
        return thought

    def answer(messages: Any, info: Any) -> ModelResponse:
        thought = think(messages, info)
        called = [] if isinstance(thought, str) else [ToolCallPart(name, given, one) for one, name, given in thought]
        usage = RequestUsage(
            input_tokens=USAGE.prompt, output_tokens=USAGE.output, cache_read_tokens=USAGE.cache_read,
            cache_write_tokens=USAGE.cache_write, output_reasoning_tokens=USAGE.reasoning,
        )  # fmt: skip
        return ModelResponse(parts=[TextPart(thought)] if isinstance(thought, str) else called, usage=usage)

    async def answer_streamed(messages: Any, info: Any) -> Any:
        thought = think(messages, info)
        if isinstance(thought, str):
            for word in re.findall(r"\S+\s*", thought):
                yield word
        else:
            yield {
                n: DeltaToolCall(name, json.dumps(given), tool_call_id=one)
                for n, (one, name, given) in enumerate(thought)
            }

    given = {"stream_function": answer_streamed} if streams else {"function": answer}
    agent = PydanticAgent(FunctionModel(**given, model_name="scripted"))
    agent.tool_plain(weather)
    agent.tool_plain(population)
    return agent
