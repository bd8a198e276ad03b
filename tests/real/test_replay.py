"""Logs that real clients left stand in for the model: what was asked is asked again, and gets what the API answered.

The truth of the stub is compared: each answer has a number of its own.
"""

import asyncio
import json
import socket
from contextlib import nullcontext, suppress

import pytest
from pydantic_ai import Agent, Tool

from sessionlog.errors import AgentError, InvalidHistory, ReplayMiss
from sessionlog.sources.discover import discover
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import all_sources
from sessionlog.testing import ReplayModel
from tests.real.data import HOMES, VARIABLE, home_names, is_here, load_home, needs_homes

WITHOUT_COUNTS = {"codex-0.20.0"}
"""Clients whose logs hold no token counts: their answers are pieces without a response, which a replay does not read."""


def replays_of(name):
    """A replay of each session of a home that holds an answer."""
    env = {"HOME": str(load_home(name).folder)}
    for log in discover(env, all_sources()):
        for session in log.source.name_sessions(log.path) if isinstance(log, Log) else ():
            with suppress(InvalidHistory):
                yield ReplayModel(log.path, session)


@pytest.fixture
def no_network(monkeypatch):
    """No connection is opened, and no name looked up."""

    def refuse(*arguments, **options):
        raise AssertionError(f"the network is asked: {arguments[1:] or arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


HOME_NAMES = home_names() or [
    pytest.param("", marks=pytest.mark.skip(reason=f"{VARIABLE} is not set: {HOMES} homes not compared (replay)"))
]


@pytest.mark.parametrize("name", HOME_NAMES)
def test_every_session_answers_what_it_was_asked(name):
    """Each recorded request gets its own answer, the first of equal ones first; the log holds the conversation alone."""
    replays = [*replays_of(name)]
    for replay in replays:
        assert replay.left_out == ("system", "tools", "parameters")
        for one in replay.recordings:
            with pytest.raises(AgentError) if one.error else nullcontext():
                answer = replay(one.request.messages, model=one.request.model)
                assert answer.message.text == one.answer.text
        assert (replay.unused, replay.misses) == ((), ())
    assert bool(replays) == (name not in WITHOUT_COUNTS)


def prompts_and_results(replay):
    """The prompts of a session in order, and the results of its tools by name and arguments."""
    last = replay.recordings[-1].request.messages
    calls = {call["id"]: call for message in last for call in message.get("tool_calls", ())}
    results = {}
    for message in last:
        if message["role"] == "tool":
            call = calls[message["tool_call_id"]]
            results.setdefault((call["name"], json.dumps(call["arguments"], sort_keys=True)), []).append(
                message["content"]
            )
    return [message["content"] for message in last if message["role"] == "user"], results


def make_tool(name, results):
    """A tool that gives what the session's tool of that name gave for the same arguments."""
    given = [json.loads(arguments) for tool, arguments in results if tool == name]
    schema = {"type": "object", "properties": {key: {} for arguments in given for key in arguments}}

    def run(**arguments):
        return results[name, json.dumps(arguments, sort_keys=True)].pop(0)

    return Tool.from_schema(run, name, None, schema)


def claude_session():
    """The Claude Code session of the home with the most recordings without an error."""
    replays = [replay for replay in replays_of("claude") if not any(one.error for one in replay.recordings)]
    return max(replays, key=lambda replay: len(replay.recordings))


@needs_homes("claude")
@pytest.mark.usefixtures("no_network")
def test_a_session_of_claude_code_is_run_again_as_an_agent_of_pydantic_ai():
    """Its prompts are asked in turn; tools with its tools' results run; the answers are those of the API then."""
    replay = claude_session()
    prompts, results = prompts_and_results(replay)
    agent = Agent(tools=[make_tool(name, results) for name in {name for name, _ in results}])
    history, texts = [], []
    with ReplayModel(replay.path, strict_end=True) as fresh:
        for prompt in prompts:
            result = asyncio.run(agent.run(prompt, model=fresh.pydantic_ai(), message_history=history))
            history = result.all_messages()
            texts.append(result.output)
    assert len(prompts) >= 2
    assert len(replay.recordings) >= 5
    assert texts == [
        one.answer.text for one in replay.recordings if not one.answer.calls
    ]  # the last answer of each turn is the text that the stub numbered
    assert all(text.startswith("Answer ") for text in texts)


@needs_homes("claude")
@pytest.mark.usefixtures("no_network")
def test_a_changed_prompt_of_claude_code_fails_as_a_person_understands_it():
    """The prompt as it was recorded and as it was sent; what the log lacks is named."""
    replay = claude_session()
    prompts, _ = prompts_and_results(replay)
    with pytest.raises(ReplayMiss) as miss:
        asyncio.run(Agent(replay.pydantic_ai()).run(prompts[0].replace("read notes", "read the notes")))
    count = len(replay.recordings)
    assert str(miss.value) == (
        f"{replay.path} has no recording of this request: 'First session: read the notes. STEPS[read,bash,text]'\n"
        f"  nearest is recording 1 of {count}: 'First session: read notes. STEPS[read,bash,text]'\n"
        "  messages[0].content: recorded 'First session: read notes. STEPS[read,bash,text]' · "
        "sent 'First session: read the notes. STEPS[read,bash,text]'\n"
        "  not compared: model, system, tools, parameters\n"
        "  if the change is meant, record the log again (pytest --sessionlog-record)"
    )


@pytest.mark.skipif(is_here(), reason="the homes are there")
def test_without_homes_the_skips_say_how_many():
    """As those of the other checks."""
    assert str(HOMES) in HOME_NAMES[0].marks[0].kwargs["reason"]
