"""What is known is gathered once from all that is given, and knows the window of the model that answers."""

import pytest

from sessionlog.context import DEFAULT_CONTEXT_WINDOW, get_model_context_window
from sessionlog.context.snapshots.gather import gather
from sessionlog.events.envelope import Event


def log(start, request, served):
    """A session with one answer."""
    answer = {"content": "Hi", "model": served, "usage": {"input": 1, "output": 1}}
    events = (
        ("session.start", {"v": 1, **start}),
        ("llm.request", {"messages": [], **request}),
        ("llm.response", answer),
    )
    return [Event(session_id="s", seq=n, type=kind, ts="", data=data) for n, (kind, data) in enumerate(events)]


@pytest.mark.parametrize("request_", [{"model": "an-alias"}, {}])
def test_a_model_is_known_by_who_answered(request_):
    """Where the name that was asked for says nothing, or none was asked for."""
    size = get_model_context_window("claude-sonnet-4-5")
    assert size != DEFAULT_CONTEXT_WINDOW
    found = gather(None, "", log=log({"provider": "anthropic"}, request_, "claude-sonnet-4-5"))
    assert (found.window, found.is_window_known) == (size, True)
    assert found.model == request_.get("model", "claude-sonnet-4-5")


def test_who_was_asked_goes_first():
    """And the caller's word before both."""
    asked = gather(None, "", log=log({}, {"model": "gpt-4"}, "claude-sonnet-4-5"))
    assert asked.window == get_model_context_window("gpt-4") != get_model_context_window("claude-sonnet-4-5")
    assert gather(None, "", log=log({}, {"model": "gpt-4"}, "x"), context_window=7).window == 7
    unknown = gather(None, "", log=log({}, {"model": "an-alias"}, "another"))
    assert (unknown.window, unknown.is_window_known) == (DEFAULT_CONTEXT_WINDOW, False)
