"""Agents by their id: what is recorded from any thread is whole, and a log is read as it stands."""

import threading
from types import SimpleNamespace

import pytest

from sessionlog.context import (
    AgentRecorder,
    get_agent_context_snapshot,
    get_agent_full_context_snapshot,
    get_model_context_window,
    register_agent,
    unregister_agent,
)
from sessionlog.errors import LogNotReadable
from sessionlog.logger.session_logger import SessionLogger
from tests.context.talks import tool_loop


@pytest.fixture(autouse=True)
def _forgotten():
    """No agent outlives its test."""
    yield
    unregister_agent("a")


def test_an_unknown_agent():
    """Has no snapshot, and can be forgotten."""
    unregister_agent("nobody")
    assert get_agent_context_snapshot("nobody") is None
    assert get_agent_full_context_snapshot("nobody") is None


def test_an_agent_is_known_until_it_is_forgotten():
    """Under its id, with the model that is told of it."""
    register_agent("a", SimpleNamespace(_system_prompts=("Be brief.",), toolsets=[]), {"model": "gpt-4"})
    snapshot = get_agent_context_snapshot("a")
    assert (snapshot.agent_id, snapshot.context_window) == ("a", get_model_context_window("gpt-4"))
    assert get_agent_full_context_snapshot("a").system_prompts[0].content == "Be brief."
    unregister_agent("a")
    assert get_agent_context_snapshot("a") is None


def test_a_window_of_ones_own():
    """Goes before the model's."""
    register_agent("a", None, {"model": "gpt-4", "context_window": 99})
    assert get_agent_context_snapshot("a").context_window == 99


@pytest.mark.parametrize("wrong", [-5, 0, True, "99", 9.5, None])
def test_a_window_that_is_none_does_not_count(wrong):
    """Only whole numbers above 0 are windows; else the model's holds."""
    register_agent("a", None, {"model": "gpt-4", "context_window": wrong})
    assert get_agent_context_snapshot("a").context_window == get_model_context_window("gpt-4")


@pytest.mark.parametrize("wrong", ["12", -5, float("nan"), float("inf"), True, [1]])
def test_a_duration_that_is_none_is_not_known(wrong):
    """Whatever a caller gives, the turns can be summed."""
    recorder = register_agent("a", None)
    recorder.record_request({"input_tokens": 1}, duration_ms=wrong)
    recorder.record_request({"input_tokens": 1}, duration_ms=12)
    snapshot = get_agent_context_snapshot("a")
    assert [step.duration_ms for step in snapshot.per_request_usage] == [None, 12.0]
    assert snapshot.session_usage.input_tokens == 2


def test_what_is_recorded():
    """Requests with their turns; several that were only counted together count as many."""
    recorder = register_agent("a", None, recorder=AgentRecorder(clock=lambda: 10**18))
    recorder.begin_turn()
    recorder.record_request({"input_tokens": 10, "requests": 3, "tool_calls": 2}, duration_ms=100)
    recorder.begin_turn()
    recorder.record_request({"input_tokens": 20}, tool_names=["read"], timestamp="2026-11-21T10:00:00+01:00")
    snapshot = get_agent_context_snapshot("a")
    assert (snapshot.turn_usage.requests, snapshot.turn_usage.tool_calls) == (1, 1)
    session = snapshot.session_usage
    assert (session.turns, session.requests, session.tool_calls, session.input_tokens) == (2, 4, 3, 30)
    assert [step.timestamp for step in snapshot.per_request_usage] == [
        "2001-09-09T01:46:40.000000Z", "2026-11-21T09:00:00.000000Z",
    ]  # fmt: skip


def test_a_turn_that_has_begun():
    """Is the last turn before anything is recorded for it."""
    recorder = register_agent("a", None)
    recorder.record_request({"input_tokens": 10})
    recorder.begin_turn()
    recorder.begin_turn()
    snapshot = get_agent_context_snapshot("a")
    assert (snapshot.turn_usage.requests, snapshot.session_usage.turns, snapshot.turn_steps) == (0, 2, ())


def test_kept_messages_are_a_copy():
    """What the agent does to its history afterwards is not seen; without records their usage tells."""
    talk = tool_loop()
    recorder = register_agent("a", None)
    recorder.keep_messages(talk)
    talk[0].parts.clear()
    talk.clear()
    snapshot = get_agent_context_snapshot("a")
    assert [message.content for message in snapshot.messages] == ["First?", "One.", "Second?", "Two."]
    assert snapshot.session_usage.turns == 2


def test_an_agents_log(tmp_path):
    """Is read anew for each snapshot, and a lost one is told."""
    with SessionLogger(tmp_path, "s") as log:
        register_agent("a", None, log=log.path)
        log.llm_request("Go")
        log.llm_response("Yes", usage={"input": 5, "output": 1})
        assert get_agent_context_snapshot("a").session_usage.requests == 1
        log.llm_response("Again", usage={"input": 6, "output": 1})
        assert get_agent_context_snapshot("a").session_usage.requests == 2
    register_agent("a", None, log=tmp_path / "nothing.jsonl")
    with pytest.raises(LogNotReadable):
        get_agent_context_snapshot("a")


def test_threads_lose_nothing():
    """Eight record while one looks: every snapshot is whole, and at the end everything is there."""
    recorder = register_agent("a", None)
    start = threading.Barrier(9)

    def work():
        start.wait()
        for _ in range(50):
            recorder.record_request({"input_tokens": 2, "output_tokens": 1}, tool_names=["read"])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    torn = []
    while any(thread.is_alive() for thread in threads):
        seen = get_agent_context_snapshot("a")
        if seen.session_usage is not None:
            usage, steps = seen.session_usage, len(seen.per_request_usage)
            is_whole = usage.requests == usage.tool_calls == steps and usage.input_tokens == 2 * steps
            torn += [] if is_whole else [usage]
    for thread in threads:
        thread.join()
    assert torn == []
    session = get_agent_context_snapshot("a").session_usage
    assert (session.requests, session.tool_calls, session.input_tokens) == (400, 400, 800)
    numbers = [step.request_num for step in get_agent_context_snapshot("a").per_request_usage]
    assert numbers == list(range(1, 401))
