"""Sessions say what seed 003's say, or differ by a rule that says why.

A case that the table lists must differ exactly as it says there; whatever it does not list is the same in both.
"""

import pytest

from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.conversation.stores.sqlite import SQLiteStore
from sessionlog.conversation.turns.pieces import TextDelta
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from tests.conformance.data import VARIABLE, document, is_here

COUNT = 13

REASONS = {
    "the question is sent with the history": "one list has all that the agent hears, so the tool loop cannot lose the "
    "question; the original hands it over beside the history",
    "pictures are saved": "a picture that is lost cannot be looked at again",
    "our own errors": "whoever catches errors of sessionlog catches this one too; it is a ValueError, as the original's",
    "stores copy": "what a caller does with its own dict afterwards is not saved",
}

DIFFERENCES = {
    "two turns": ("the question is sent with the history", {"last_request_messages": 3}),
    "multipart: inline image bytes are lost": (
        "pictures are saved",
        {"image": {"data": "UE5H", "media_type": "image/png"}},
    ),
    "from_dict bad role": ("our own errors", {"raises": "InvalidHistory"}),
    "memory store keeps a reference": ("stores copy", {"load": {"a": 1}}),
}
"""Case → the rule by which ours differs, and what ours says."""


def session(*answers, session_id="sid", system="Be brief.", **keywords):
    """A session of an agent with these answers, and how many messages it was sent each time."""
    sent, left = [], list(answers)

    class Counting:
        """Answers, and counts what it is asked."""

        def answer(self, ask):
            sent.append(len(ask.messages))
            yield from left.pop(0)

    return Session(Agent(Counting(), system=system), session_id, **keywords), sent


def texts(*given):
    """An answer in pieces."""
    return [TextDelta(text) for text in given]


def two_turns(tmp_path):
    """The document's first example."""
    talk, sent = session(texts("Nice to meet you!"), texts("Alice."))
    talk.run("My name is Alice")
    talk.run("What's my name?")
    return {"to_dict": talk.to_dict(), "last_request_messages": sent[-1]}


def fork(tmp_path):
    """One more message in the fork."""
    talk, _ = session(texts("1"), texts("2"))
    talk.run("a")
    talk.run("b")
    forked = talk.fork("fork-id")
    forked.add_message("user", "c")
    return {
        "original_len": len(talk.messages), "fork_len": len(forked.messages), "fork_id": forked.session_id,
        "fork_system": forked.system,
    }  # fmt: skip


def fork_without_id(tmp_path):
    """A new one each time."""
    talk, _ = session()
    made = talk.fork().session_id
    return {"differs": made != talk.session_id, "length": len(made)}


def round_trip(tmp_path):
    """Through JSON and back."""
    talk, _ = session(texts("1"))
    talk.run("a")
    return {"equal": Session.from_dict(talk.to_dict(), talk.agent).to_dict() == talk.to_dict()}


def cleared(tmp_path):
    """After a turn."""
    talk, _ = session(texts("1"))
    talk.run("a")
    talk.clear()
    return {"to_dict": talk.to_dict()}


def multipart(tmp_path):
    """A text, a picture by its address, and one by its bytes."""
    pieces = ["look", ContentPart.of_image_url("http://x/y.png"), ContentPart.of_image(b"PNG")]
    talk, _ = session(session_id="mp", system=None, messages=[Message.user(pieces)])
    said = talk.to_dict()
    image = said["messages"][0]["content"][2]
    return {"to_dict": said, "image": {key: image.pop(key) for key in ("data", "media_type") if key in image}}


def tool_messages(tmp_path):
    """A call and its result."""
    messages = [Message.assistant(tool_calls=[ToolRequest("c1", "f")]), Message.tool("ok", "c1", name="f")]
    talk, _ = session(session_id="x", system=None, messages=messages)
    return {"to_dict": talk.to_dict()}


def raised_by(**message):
    """The error for a saved message: its name, or that of the builtin that it is."""

    def read(tmp_path):
        with pytest.raises(ValueError) as caught:
            Session.from_dict({"session_id": "x", "messages": [message]}, lambda messages: "")
        return {"raises": "KeyError" if isinstance(caught.value, KeyError) else caught.type.__name__}

    return read


def streamed(tmp_path):
    """To its end."""
    talk, _ = session(texts("stream", "ed"))
    for _ in talk.stream("q"):
        pass
    return {"roles": [one.role for one in talk.messages], "texts": [one.text for one in talk.messages]}


def memory_store(tmp_path):
    """The dict is changed after it was saved."""
    store, data = MemoryStore(), {"a": 1}
    store.save("k", data)
    data["a"] = 2
    return {
        "load": store.load("k"), "missing": store.load("none"), "delete_missing": store.delete("none"),
        "list": store.list_sessions(), "len": len(store), "exists": store.exists("k"),
    }  # fmt: skip


def sqlite_store(tmp_path):
    """Two sessions, the first one saved again."""
    with SQLiteStore(tmp_path / "store.db") as store:
        store.save("k", {"v": 1})
        store.save("m", {"v": 1})
        store.save("k", {"v": 2})
        said = {"load": store.load("k"), "list": store.list_sessions(), "missing": store.load("none")}
        said |= {"exists": store.exists("k"), "delete": store.delete("k")}
        return said | {"delete_again": store.delete("k")}


OURS = {
    "two turns": two_turns,
    "fork is independent": fork,
    "fork without id gets a new uuid": fork_without_id,
    "round trip": round_trip,
    "clear keeps system and id": cleared,
    "multipart: inline image bytes are lost": multipart,
    "tool messages survive": tool_messages,
    "from_dict missing content": raised_by(role="user"),
    "from_dict missing role": raised_by(content="x"),
    "from_dict bad role": raised_by(role="robot", content="x"),
    "stream consumed": streamed,
    "memory store keeps a reference": memory_store,
    "sqlite upsert": sqlite_store,
}


def cases():
    """A test for every case, or one skipped test that says how many there are."""
    if not is_here():
        mark = pytest.mark.skip(reason=f"{VARIABLE} is not set: {COUNT} session cases not compared")
        return [pytest.param({}, marks=mark, id=f"{COUNT}-session-cases")]
    return [pytest.param(case, id=case["name"]) for case in document("session_cases.json")["cases"]]


@pytest.mark.parametrize("case", cases())
def test_a_session_says_what_the_seeds_says(case, tmp_path):
    """Or differs by a rule, exactly as the table says."""
    theirs = {name: said for name, said in case.items() if name != "name"}
    _, changes = DIFFERENCES.get(case["name"], ("", {}))
    assert OURS[case["name"]](tmp_path) == theirs | changes
    assert all(theirs.get(name) != said for name, said in changes.items()), "a difference that is none"


@pytest.mark.skipif(not is_here(), reason=f"{VARIABLE} is not set: {COUNT} session cases not counted")
def test_every_case_is_compared():
    """And every difference is that of a case."""
    names = [case["name"] for case in document("session_cases.json")["cases"]]
    assert names == list(OURS)
    assert len(names) == COUNT
    assert DIFFERENCES.keys() <= set(names)


def test_every_rule_has_a_reason_and_a_case():
    """A rule for nothing is no rule."""
    assert {rule for rule, _ in DIFFERENCES.values()} == REASONS.keys()
    assert all(REASONS.values())
