"""What is done to a session's history by hand is in its log, and two sessions never write one log."""

import pytest

from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import StaleSession
from sessionlog.messages.message import Message
from tests.conversation.scripted import Scripted, events, log_in, said, types


def two_turns(folder, **more):
    """A session with two turns."""
    session = Session(Scripted("2", "4", "6", "8"), "s1", logger=log_in(folder), **more)
    session.run("1")
    session.run("3")
    return session


def logged(folder):
    """What the log tells."""
    return list(find_logged_session(folder / "s1.jsonl").messages)


@pytest.mark.parametrize(
    "step",
    [
        lambda session: session.close(),
        lambda session: session.fork(),
        lambda session: session.save(MemoryStore()),
        lambda session: session.add_message("user", "more"),
        lambda session: session.undo(),
        lambda session: session.run("5"),
    ],
)
@pytest.mark.parametrize(
    "change",
    [
        lambda conversation: conversation.add_message("user", "typed"),
        lambda conversation: conversation.pop_last_message(),
        lambda conversation: conversation.replace_messages(conversation.messages[1:]),
    ],
)
def test_what_was_done_to_the_conversation_is_told_at_the_next_step(tmp_path, step, change):
    """Whatever that is: log and session then say the same."""
    session = two_turns(tmp_path)
    change(session.conversation)
    step(session)
    assert logged(tmp_path) == session.messages


def test_a_cut_by_hand_is_an_event(tmp_path):
    """With what was dropped; the store has what is left."""
    store = MemoryStore()
    settings = ConversationSettings(max_conversation_tokens=20, truncation_keep_recent=0, auto_truncate=False)
    session = two_turns(tmp_path, store=store, settings=settings)
    cut = session.truncate()
    assert [message.text for message in cut.dropped] == ["2"]
    assert types(tmp_path)[-1] == "compaction.end"
    assert events(tmp_path)[-1][1]["dropped"] == [[1, 2]]
    assert logged(tmp_path) == session.messages
    assert len(store.load("s1")["messages"]) == 3


def test_a_stream_that_is_under_way_is_not_disturbed(tmp_path):
    """Saving and forking between two of its pieces tell the log nothing."""
    session = Session(Scripted(["It ", "is."]), "s1", logger=log_in(tmp_path))
    for _ in session.stream("1"):
        session.save(MemoryStore())
        session.fork()
    assert types(tmp_path) == ["session.start", "llm.request", "llm.delta", "llm.delta", "llm.response"]
    assert logged(tmp_path) == session.messages


@pytest.mark.parametrize(
    "step",
    [
        lambda session: session.run("5"),
        lambda session: session.add_message("user", "5"),
        lambda session: session.undo(),
        lambda session: session.clear(),
        lambda session: session.truncate(),
    ],
)
def test_a_log_that_somebody_else_has_gone_on_with_is_left_alone(tmp_path, step):
    """Nobody is asked, nothing is written or changed; a fork goes on from here, and the session can be closed."""
    session = two_turns(tmp_path)
    other = Session.resume("s1", Scripted("b"), directory=tmp_path)
    other.run("a")
    before = logged(tmp_path)
    with pytest.raises(StaleSession, match=r"s1\.jsonl"):
        step(session)
    assert len(session.messages) == 4
    assert said(session.fork().messages) == said(session.messages)
    session.close()
    assert logged(tmp_path) == before
    assert "session.end" not in types(tmp_path)


def test_a_refused_turn_leaves_the_session_free(tmp_path):
    """It is not busy for ever."""
    session = two_turns(tmp_path)
    Session.resume("s1", Scripted("b"), directory=tmp_path).run("a")
    for _ in range(2):
        with pytest.raises(StaleSession):
            session.run("5")


def test_looking_at_a_session_writes_nothing(tmp_path):
    """Resumed and closed again, its log is as it was."""
    two_turns(tmp_path).close()
    before = types(tmp_path)
    with Session.resume("s1", Scripted(), directory=tmp_path) as session:
        assert len(session.messages) == 4
    assert types(tmp_path) == before


def test_a_session_knows_its_log(tmp_path):
    """Without a logger there is none."""
    assert two_turns(tmp_path).path == str(tmp_path / "s1.jsonl")
    assert Session(Scripted()).path is None


def test_a_message_by_hand_is_a_message_only_once(tmp_path):
    """Its request repeats it, and readers know."""
    session = two_turns(tmp_path)
    session.conversation.add_message(Message.user("typed"))
    session.run()
    assert said(logged(tmp_path))[-2:] == [("user", "typed"), ("assistant", "6")]
