"""A replay behind an agent of openai-agents: recorded once on the wire, run again whole, streamed, and on another API."""

import asyncio

import httpx2
import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool

from sessionlog.testing import ReplayModel
from sessionlog.testing.replay.recorder import Recorder
from tests.integrations import wire

QUIET = RunConfig(tracing_disabled=True)
TEXT = {"type": "output_text", "text": "It prints 1.", "annotations": []}
LAST = {
    **wire.RESPONSE,
    "output": [{"type": "message", "id": "m2", "role": "assistant", "status": "completed", "content": [TEXT]}],
}


@function_tool
def read(path: str) -> str:
    """Read a file."""
    return f"print({len(path)})"


async def run(transport, model=OpenAIResponsesModel, *, streamed=False):
    """The output of a run of an agent with a tool."""
    async with openai.AsyncOpenAI(api_key="-", http_client=httpx2.AsyncClient(transport=transport)) as client:
        agent = Agent(
            name="x", instructions="Be brief.", tools=[read], model=model(model="gpt-5", openai_client=client)
        )
        if not streamed:
            return (await Runner.run(agent, "What does a.py do?", run_config=QUIET)).final_output
        result = Runner.run_streamed(agent, "What does a.py do?", run_config=QUIET)
        async for _ in result.stream_events():
            pass
        return result.final_output


@pytest.fixture
def recorded(tmp_path):
    """The log of a run with a tool."""
    left = iter([wire.RESPONSE, LAST])
    recorder = Recorder(tmp_path / "s.jsonl")
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, json=next(left)))
    assert asyncio.run(run(recorder.transport(server))) == "It prints 1."
    recorder.save()
    recorder.discard()
    return tmp_path / "s.jsonl"


@pytest.mark.parametrize("options", [{}, {"streamed": True}, {"model": OpenAIChatCompletionsModel}], ids=str)
def test_an_agent_runs_again_from_its_log(recorded, options):
    """All that was recorded is asked for, and nothing else."""
    with ReplayModel(recorded, strict_end=True) as replay:
        assert asyncio.run(run(replay.transport(), **options)) == "It prints 1."
