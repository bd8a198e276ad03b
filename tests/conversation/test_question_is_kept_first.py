"""A question is in the history, the log and the store before anything that may fail or take long."""

import pytest

from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.log.logged_session import find_logged_session
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from tests.conversation.scripted import Scripted, calls, log_in, said, types

WORDS = "word " * 80


def settings(summary=None, **more):
    """A budget that two turns fill; with a summary, what is cut is summed up."""
    if summary is not None:
        more = {"truncation_strategy": "summarise", "summary": summary, **more}
    return ConversationSettings(max_conversation_tokens=200, truncation_keep_recent=2, **more)


def failing(messages):
    """A summary that fails, as a model may."""
    raise ConnectionError("no line")


class Killed(BaseException):
    """The process ends here: nothing behind it is done."""


class DyingStore(MemoryStore):
    """A store whose process is killed behind a save."""

    is_dying = False

    def save(self, session_id, data):
        version = super().save(session_id, data)
        if self.is_dying:
            raise Killed
        return version


def test_a_question_is_in_the_log_before_it_is_in_the_store(tmp_path):
    """Killed between the two, it is in the log, which is the session."""
    logged = []

    class Looking(MemoryStore):
        """Looks into the log when it is to save."""

        def save(self, session_id, data):
            logged.append([message.text for message in find_logged_session(tmp_path / "s1.jsonl").messages])
            return super().save(session_id, data)

    Session(Scripted("2"), "s1", store=Looking(), logger=log_in(tmp_path)).run("1")
    assert logged == [["1"], ["1", "2"]]


def test_a_log_alone_tells_a_question_once(tmp_path):
    """The request tells it; so do those of a cut history that is not cut."""
    session = Session(Scripted("2", "4"), logger=log_in(tmp_path))
    session.run("1")
    session.run("3")
    assert types(tmp_path) == ["session.start", *["llm.request", "llm.response"] * 2]


def test_a_summary_is_asked_for_when_the_question_is_safe(tmp_path):
    """In the history, the store and the log: it may take long, and the program may end meanwhile."""
    store, found = MemoryStore(), []

    def summary(messages):
        logged = find_logged_session(tmp_path / "s1.jsonl").messages
        found.append((said(session.messages)[-1], logged[-1].text, store.load("s1")["messages"][-1]["content"]))
        return "Words."

    agent = Scripted(WORDS, WORDS, "Yes.")
    session = Session(agent, "s1", store=store, logger=log_in(tmp_path), settings=settings(summary))
    for question in "123":
        session.run(question)
    assert found == [(("user", "3"), "3", "3")]
    assert find_logged_session(tmp_path / "s1.jsonl").messages == tuple(session.messages)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_summary_keeps_the_question(tmp_path, kind):
    """As an interrupted answer does: the turn is cancelled."""

    def summary(messages):
        raise kind

    agent = Scripted(WORDS, WORDS, "Yes.", "Yes.")
    session = Session(agent, logger=log_in(tmp_path), settings=settings(summary))
    session.run("1")
    session.run("2")
    with pytest.raises(kind):
        session.run("3")
    assert (said(session.messages)[-1], session.state, len(agent.asked)) == (("user", "3"), "cancelled", 2)
    found = find_logged_session(tmp_path / "s1.jsonl")
    assert (list(found.messages), found.state) == (session.messages, "cancelled")


def test_a_failing_summary_is_done_without(tmp_path):
    """The oldest messages are dropped, the agent is asked, and the response says why."""
    session = Session(Scripted(WORDS, WORDS, "Yes."), logger=log_in(tmp_path), settings=settings(failing))
    session.run("1")
    session.run("2")
    response = session.run("3")
    assert response.text == "Yes."
    assert response.truncation.warning == (
        "the summary failed: ConnectionError: no line; the oldest were dropped without one"
    )
    assert (int(response.truncation), response.truncation.strategy) == (1, "drop_oldest")
    assert said(response.messages) == [("user", "3"), ("assistant", "Yes.")]
    assert session.settings.truncation_strategy == "summarise"
    assert find_logged_session(tmp_path / "s1.jsonl").messages == tuple(session.messages)


@pytest.mark.parametrize(
    ("own", "why"),
    [(lambda *_: 1 / 0, "ZeroDivisionError: division by zero"), (lambda *_: [], "InvalidHistory: own dropped the new")],
)
def test_a_failing_strategy_of_ones_own_is_done_without(own, why):
    """It is named, whether it raises or gives what cannot be used."""
    own.__name__ = "own"
    session = Session(Scripted(WORDS, WORDS, "Yes."), settings=settings(truncation_strategy=own))
    session.run("1")
    session.run("2")
    warning = session.run("3").truncation.warning
    assert warning.startswith(f"own failed: {why}")
    assert warning.endswith("; the oldest were dropped instead")


def test_a_failing_summary_asked_for_by_hand_raises():
    """Who cuts by hand can do something about it; the history is as it was."""
    session = Session(Scripted(WORDS, WORDS), settings=settings(failing, auto_truncate=False))
    session.run("1")
    session.run("2")
    before = session.messages
    with pytest.raises(ConnectionError):
        session.truncate()
    assert session.messages == before


def test_the_question_counts(tmp_path):
    """A long one makes room for itself; what is over budget all the same is said, also where nothing was dropped."""
    session = Session(Scripted("2", "4", "6"), logger=log_in(tmp_path), settings=settings())
    session.run("1")
    response = session.run(f"3 {WORDS * 3}")
    assert response.truncation is not None
    assert "still over budget" in response.truncation.warning
    assert said(response.messages)[0][1].startswith("3 ")
    first = Session(Scripted("2"), settings=settings()).run(WORDS * 3).truncation
    assert (int(first), first.is_over_budget) == (0, True)


def test_a_history_that_fits_has_no_truncation():
    """Also where it has reached the threshold, but no message can go, and none must."""
    session = Session(Scripted("2"), settings=settings())
    assert session.run("word " * 155).truncation is None


def test_a_store_that_refuses_takes_closed_calls_back_too(tmp_path):
    """Nothing of the turn is left in history and log, so that `undo` takes back the turn that is meant."""
    store = DyingStore()
    session = Session(Scripted("1", calls(("look", {}))), "s1", store=store, logger=log_in(tmp_path))
    session.run("one")
    session.run("call")
    before = session.messages
    store.save("s1", {**store.load("s1")})  # somebody else
    with pytest.raises(RuntimeError, match="saved by another writer"):
        session.run("lost")
    assert session.messages == before
    assert find_logged_session(tmp_path / "s1.jsonl").messages == tuple(before)


def test_killed_between_store_and_request_the_question_is_there(tmp_path):
    """Reopened with both, and with the log alone."""
    store = DyingStore()
    session = Session(Scripted("re"), "s1", store=store, logger=log_in(tmp_path))
    session.run("first")
    store.is_dying = True
    with pytest.raises(Killed):
        session.run("second")
    store.is_dying = False
    again = Session(Scripted("re"), "s1", store=store, logger=log_in(tmp_path))
    assert said(again.messages)[-1] == ("user", "second")
    assert said(find_logged_session(tmp_path / "s1.jsonl").messages)[-1] == ("user", "second")
