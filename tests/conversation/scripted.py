"""An agent whose answers are written down, and what a log says."""

import json
from pathlib import Path

from sessionlog.conversation.turns.pieces import Reply
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import Message, ToolRequest


class Scripted:
    """Gives one answer after the other: a text, a message, a reply, pieces in a list, or an exception to raise.

    In a list, an exception is raised behind the pieces before it. `asked` has the messages of every question, `options`
    what came with them.
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.options = []

    def __call__(self, messages, **options):
        self.asked.append(list(messages))
        self.options.append(options)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return self._pieces(answer) if isinstance(answer, list) else answer

    @staticmethod
    def _pieces(pieces):
        for piece in pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece


class ScriptedAsync(Scripted):
    """The same, to be awaited."""

    async def __call__(self, messages, **options):
        answer = super().__call__(messages, **options)
        return _async(answer) if hasattr(answer, "__next__") else answer


async def _async(pieces):
    for piece in pieces:
        yield piece


def reply(text, **more):
    """An answer that says what it used."""
    more.setdefault("usage", TokenUsage(input=10, output=2))
    return Reply(message=Message.assistant(text), **more)


def calls(*requests, text=""):
    """An answer that asks for tools: each a name and its arguments, with the ids c1, c2 and so on."""
    made = [ToolRequest(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(requests, 1)]
    return Message.assistant(text, tool_calls=made)


def said(messages):
    """The role and the text of each."""
    return [(message.role, message.text) for message in messages]


def log_in(folder, session_id="s1"):
    """A logger of a session."""
    return SessionLogger(folder, session_id)


def events(folder, session_id="s1"):
    """The events of a session's log, as (type, data)."""
    lines = (Path(folder) / f"{session_id}.jsonl").read_text("utf-8").splitlines()
    return [(event["type"], event["data"]) for event in map(json.loads, lines)]


def types(folder, session_id="s1"):
    """The types of a log's events."""
    return [type_ for type_, _ in events(folder, session_id)]
