"""Logs of sessions, written and spoilt."""

from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.pieces import Reply
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message

USER, ANSWER, MORE = Message.user("hi"), Message.assistant("ho"), Message.user("more")
HALF = Message.assistant("half", partial="interrupted")


def record(folder, session_id="s", **options):
    """A recorder of a session in the folder that has begun."""
    made = Recorder(SessionLogger(folder, session_id, **options))
    made.begin(system="be brief")
    return made


def turn(recorder, history, text, answer="ho"):
    """One turn; returns the history after it."""
    history = [*history, Message.user(text)]
    recorder.request(history)
    said = Message.assistant(answer)
    recorder.response(said, reply=Reply(message=said, usage=TokenUsage(input=2, output=1)))
    return [*history, said]


def lines(folder, session_id="s"):
    """The log's lines."""
    return (folder / f"{session_id}.jsonl").read_bytes().splitlines(keepends=True)


def rewrite(folder, content, session_id="s"):
    """Put other bytes into the log."""
    (folder / f"{session_id}.jsonl").write_bytes(content if isinstance(content, bytes) else b"".join(content))
