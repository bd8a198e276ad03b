"""Open tool calls and their results find each other."""

from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.fold import Pending

CALLS = [
    Call(id="1", name="read", arguments={"path": "a"}),
    Call(id="2", name="read", arguments={"path": "b"}),
    Call(id="3", name="bash"),
]


def open_calls():
    """Three calls of one answer."""
    pending = Pending()
    pending.calls += CALLS
    return pending


def test_a_call_is_found_by_id_then_by_arguments_then_by_name():
    """tool.call events of the Go original have no id."""
    pending = open_calls()
    assert pending.take(Call(id="3", name="renamed")).name == "bash"
    assert pending.take(Call(name="read", arguments={"path": "b"})).id == "2"
    assert pending.take(Call(name="read", arguments={"path": "changed by a hook"})).id == "1"
    assert pending.take(Call(name="read")) is None
    assert pending.calls == []


def test_only_ids_that_are_known_find_a_call():
    """What is left stays in the order of the answer."""
    pending = open_calls()
    assert pending.take_id("2").name == "read"
    assert pending.take_id("") is None
    assert [call.id for call in pending.calls] == ["1", "3"]
