"""Inherited history: what a fork goes on from stands before its own events, wherever it is logged."""

import json
from types import SimpleNamespace

import pytest

from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.sources.find import log_at
from sessionlog.sources.protocol import Parent
from sessionlog.transcript.inherited import NOT_LOGGED, read_session
from tests.context.reports import xray

PARENT, FORK, GRANDCHILD = (f"019a0000-000{n}-7000-8000-000000000001" for n in (1, 2, 3))


def row(ordinal, kind, **payload):
    return {"timestamp": f"2026-11-10T10:00:{ordinal:02}.000Z", "ordinal": ordinal, "type": kind, "payload": payload}


def meta(ordinal, thread, **more):
    return row(ordinal, "session_meta", id=thread, cwd="/w", cli_version="0.169.0", model_provider="openai", **more)


def said(ordinal, role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return row(ordinal, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def turn(ordinal, prompt, answer):
    """A prompt and its answer, with its count."""
    total = {"input_tokens": 10 * ordinal, "output_tokens": ordinal}
    return [
        row(ordinal, "turn_context", model="gpt-5", cwd="/w"),
        said(ordinal + 1, "user", prompt),
        said(ordinal + 2, "assistant", answer),
        row(ordinal + 3, "event_msg", type="token_count", info={"total_token_usage": total, "last_token_usage": total}),
    ]


@pytest.fixture
def home(tmp_path):
    """A Codex home, and how a thread is written into it."""

    def write(thread, rows, folder="sessions/2026/11/10"):
        path = tmp_path / ".codex" / folder / f"rollout-2026-11-10T10-00-00-{thread}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
        return str(path)

    return write


def forked(thread, parent, ordinal, *turns):
    return [meta(ordinal, thread, forked_from_id=parent, forked_from_ordinal_exclusive=ordinal), *turns]


def inherited(path):
    """The event that holds what is inherited, and its texts."""
    [event] = [one for one in read_session(log_at(path)) if not isinstance(one, Problem) and one.seq == NOT_LOGGED]
    return event, [message["content"] for message in event.data["messages"]]


def test_a_fork_goes_on_from_the_rows_before_its_own(home):
    """Not from what its parent has said since; the parent may be archived."""
    home(PARENT, [meta(0, PARENT), *turn(1, "a", "b"), *turn(5, "later", "too late")], "archived_sessions")
    path = home(FORK, forked(FORK, PARENT, 5, *turn(6, "c", "d")))
    event, texts = inherited(path)
    assert texts == ["a", "b"]
    assert (event.type, event.data["reason"], event.data["parent"]["session"]) == ("history.add", "fork", PARENT)
    assert "missing" not in event.data["parent"]
    remembered = find_logged_session(path)
    assert [message.text for message in remembered.messages] == ["a", "b", "c", "d"]
    assert [message.text for message in remembered.inherited] == ["a", "b"]
    assert (remembered.turns, remembered.requests) == (1, 1)


def test_a_fork_of_a_fork_inherits_from_both(home):
    """Oldest first."""
    home(PARENT, [meta(0, PARENT), *turn(1, "a", "b")])
    home(FORK, forked(FORK, PARENT, 5, *turn(6, "c", "d")))
    path = home(GRANDCHILD, forked(GRANDCHILD, FORK, 10, *turn(11, "e", "f")))
    assert inherited(path)[1] == ["a", "b", "c", "d"]


def test_a_parent_whose_log_is_gone_is_named(home):
    """Nothing is inherited, and that is said."""
    path = home(FORK, forked(FORK, PARENT, 5, *turn(6, "c", "d")))
    event, texts = inherited(path)
    assert texts == []
    assert event.data["parent"] == {"session": PARENT, "missing": "its log is gone"}
    assert [message.text for message in find_logged_session(path).messages] == ["c", "d"]


def test_forks_of_each_other_come_to_an_end(home):
    """Threads that name each other are damage, and no endless loop."""
    home(PARENT, forked(PARENT, FORK, 5, *turn(6, "a", "b")))
    path = home(FORK, forked(FORK, PARENT, 50, *turn(56 - 50, "c", "d")))
    assert len(inherited(path)[1]) < 100


def test_the_window_of_a_fork_holds_what_it_inherits(home):
    """The answer in it is the parent's: the fork's only request has none of its own."""
    home(PARENT, [meta(0, PARENT), *turn(1, "a", "b")])
    path = home(FORK, forked(FORK, PARENT, 5, *turn(6, "c", "d")))
    assert "assistant" in {part["name"] for part in xray(path).to_dict()["parts"]}


def test_a_log_that_is_whole_inherits_nothing(home):
    """Its events are its own."""
    path = home(PARENT, [meta(0, PARENT), *turn(1, "a", "b")])
    assert all(one.seq >= 0 for one in read_session(log_at(path)) if not isinstance(one, Problem))


def test_of_a_long_parent_the_end_is_inherited(home, monkeypatch):
    """What is left out is said, and is not held while it is read."""
    monkeypatch.setattr("sessionlog.transcript.inherited._MAX_SIZE", 3000)
    turns = [row for n in range(10) for row in turn(1 + 4 * n, f"{n} " * 200, f"answer {n}")]
    home(PARENT, [meta(0, PARENT), *turns])
    path = home(FORK, forked(FORK, PARENT, 50, *turn(51, "c", "d")))
    event, texts = inherited(path)
    assert texts[-1] == "answer 9"
    assert 0 < len(texts) < 20
    assert event.data["parent"]["missing"] == f"its first {20 - len(texts):,} messages"


def test_what_a_parent_has_summed_up_is_not_missing(monkeypatch):
    """Only what is left out of the conversation at its end."""
    monkeypatch.setattr("sessionlog.transcript.inherited._MAX_SIZE", 3000)

    def event(seq, kind, **data):
        return Event(session_id="p", seq=seq, type=kind, ts="", data=data)

    def parent_events():
        for n in range(10):
            yield event(n, "llm.request", messages=[{"role": "user", "content": f"{n} " * 500}])
        yield event(10, "compaction.end", success=True, summary="short")
        yield event(11, "llm.request", messages=[{"role": "user", "content": "go on"}])

    parent = Parent(session="p", path="/p", read=parent_events)
    source = SimpleNamespace(
        id="codex", parent_of=lambda path: parent if path == "/f" else None, read=lambda *_: [event(0, "session.start")]
    )
    _, found = read_session(SimpleNamespace(source=source, path="/f"))
    assert [message["content"] for message in found.data["messages"]] == ["short", "go on"]
    assert "missing" not in found.data["parent"]
