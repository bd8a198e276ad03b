"""What a resumed session says of its history holds for the log it stands in, also where reading left something out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.status.reader import session_status
from sessionlog.conversation import ConversationSettings, Session
from sessionlog.conversation.history.rules import last_turn, repair_history
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log.logged_session import open_log, read_logged_session
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest
from tests.conversation.log.logs import record
from tests.profiles import examples

CALLS = [ToolRequest("c", "read", {}), ToolRequest("d", "read", {})]
MESSAGES = st.sampled_from([
    Message.user("u"), Message.assistant("a"), Message.assistant("", tool_calls=CALLS[:1]), Message.tool("x", "c"),
    Message.assistant("both", tool_calls=CALLS), Message.tool("y", "nope"), Message.system("be brief"),
])  # fmt: skip
STEPS = st.lists(st.sampled_from(["undo", "add", "cut", "ask", "clear"]), max_size=3)


def reopened(path):
    """A recorder that goes on with the log, and the history as it begins."""
    found = read_logged_session(path)
    made = Recorder(open_log(found))
    made.continue_log(found)
    return made, list(found.messages)


def changed(step, recorder, history):
    """The history after a step of a session, which tells the log first what reading has changed."""
    recorder.sync(history)
    if step == "undo":
        recorder.popped(len(history) - last_turn(history))
        return history[: last_turn(history)]
    if step == "add":
        recorder.sync([*history, Message.user("more")])
        return [*history, Message.user("more")]
    if step == "cut":
        left = repair_history(history[len(history) // 2 :])
        recorder.truncated(history, left, Truncation(tuple(history[: len(history) // 2])))
        return left
    if step == "clear":
        recorder.cleared()
        return []
    history = [*history, Message.user("next")]
    recorder.request(history)
    return history


@examples(60)
@given(st.lists(MESSAGES, max_size=6), STEPS, st.booleans())
def test_live_is_log_after_every_step(tmp_path_factory, said, steps, by_request):
    """Whatever was left out of a history when it was read: after each step, the log gives what the session holds."""
    folder = tmp_path_factory.mktemp("law")
    first = Recorder(SessionLogger(folder, "s"))
    first.begin(system="be brief")
    if by_request:
        first.request(said)
    else:
        first.sync(said)
    first.close()
    path = str(folder / "s.jsonl")
    for step in steps:
        recorder, history = reopened(path)
        history = changed(step, recorder, history)
        recorder.close()
        assert list(read_logged_session(path).messages) == repair_history(history)


@pytest.mark.parametrize("way", ["added", "inherited"])
def test_a_system_message_that_was_added_stays(folder, way):
    """Also one that says what the system's text says: a session has put it there."""
    said = [Message.system("be brief"), Message.user("hi")]
    recorder = Recorder(SessionLogger(folder, "s"))
    recorder.begin(system="be brief", inherited=said if way == "inherited" else ())
    if way == "added":
        recorder.sync(said)
    recorder.request(said)
    assert list(read_logged_session(str(folder / "s.jsonl")).messages) == said


def test_messages_are_counted_one_by_one_in_a_log_that_a_program_began(folder):
    """A logged message with results of tools inside is several here; taking the last one back leaves the others."""
    blocks = [{"type": "tool_result", "tool_use_id": "c", "content": "x"}, {"type": "text", "text": "and?"}]
    call = {"type": "tool_use", "id": "c", "name": "read", "input": {}}
    with SessionLogger(folder, "s") as log:
        log.llm_request([
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]},
            {"role": "user", "content": blocks},
        ])  # fmt: skip
    recorder, history = reopened(str(folder / "s.jsonl"))
    assert len(history) == 4
    recorder.popped(1)
    assert list(read_logged_session(str(folder / "s.jsonl")).messages) == history[:3]


def test_an_undone_turn_does_not_come_back(folder):
    """Not after a resume that left a result without its call out."""
    recorder, said = record(folder), []
    for text in ("one", "two"):
        said = [*said, Message.user(text)]
        recorder.request(said)
        said = [*said, Message.assistant(f"re {text}")]
        recorder.response(said[-1])
    said = [*said, Message.tool("x", "nope")]
    recorder.request(said)
    recorder.response(Message.assistant("re x"))
    path = str(folder / "s.jsonl")
    recorder, history = reopened(path)
    assert len(history) == 5
    changed("undo", recorder, history)
    assert list(read_logged_session(path).messages) == said[:2]


@pytest.mark.parametrize("at", [0, 3])
def test_a_fork_that_is_resumed_has_no_turns_of_its_parent(folder, at):
    """Prompts that it repeats after a truncation are told as its parent's, also by the process that goes on."""
    short = ConversationSettings(max_conversation_tokens=300, truncation_keep_recent=4)
    parent = Session(lambda messages: "so it is " * 9, logger=SessionLogger(folder, "p"), settings=short)
    for n in range(6):
        parent.run(f"parent {n}")
    fork = parent.fork("f")
    for n in range(8):
        if n == at:
            fork.close()
            fork = Session.resume(folder / "f.jsonl", parent.agent, settings=short)
        fork.run(f"mine {n}")
    fork.close()
    assert session_status(str(folder / "f.jsonl")).to_dict()["usage"]["session"]["turns"] == 8
    assert list(read_logged_session(str(folder / "f.jsonl")).messages) == fork.messages
