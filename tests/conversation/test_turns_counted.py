"""Turns of sessions whose history was inherited, cut or taken back: a prompt is counted once, however often it is told."""

import pytest

from sessionlog.analytics.status.reader import session_status
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.session import Session
from sessionlog.logger.session_logger import SessionLogger

SHORT = ConversationSettings(max_conversation_tokens=600, truncation_keep_recent=4)


def echo(messages):
    """Answers with words enough to fill a budget."""
    return f"You said {messages[-1].text[:9]}, and this is what there is to say of it. " * 2


def turns_of(session):
    """What `status` says of its log."""
    session.close()
    return session_status(session.path).to_dict()["usage"]["session"]["turns"]


@pytest.mark.parametrize("inherited", [0, 2, 12])
def test_a_history_that_is_cut_again_and_again(tmp_path, inherited):
    """A fork repeats what is left of its parent's prompts after each cut; they are not its turns, and its own are once."""
    session = Session(echo, logger=SessionLogger(tmp_path, "parent"), settings=SHORT)
    for n in range(inherited):
        session.run(f"parent {n}")
    session = session.fork("fork") if inherited else session
    cuts = sum(session.run(f"mine {n}").truncation is not None for n in range(15))
    assert cuts > 1
    assert turns_of(session) == 15


@pytest.mark.parametrize("is_fork", [False, True])
def test_turns_that_are_taken_back_were_turns(tmp_path, is_fork):
    """Each was asked, answered and paid for."""
    session = Session(echo, logger=SessionLogger(tmp_path, "parent"))
    session.run("first")
    session = session.fork("fork") if is_fork else session
    for n in range(6):
        session.run(f"mine {n}")
        session.undo()
    session.run("last")
    assert turns_of(session) == 7 + (not is_fork)
