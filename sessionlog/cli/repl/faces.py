"""How a chat is told: to a pipe, whose stdout is what was answered, and to a program, in lines of JSON.

The face for a person is in `terminal`. Whatever a model, a tool or an error says is escaped, here or by JSON.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any, Protocol, TextIO

from sessionlog.cli.output import note
from sessionlog.conversation.turns.pieces import Response, ToolReturned
from sessionlog.events.encode import encode_object
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.render.chat import outcome, tool_line
from sessionlog.render.escape import one_line
from sessionlog.render.flow import Flow
from sessionlog.render.replay.lines import View

SCHEMA = "sessionlog.chat/1"
TYPED = "go on"
"""The name of a fact that is a command, to be typed as it is."""

_NAME = 60
_FACT = 4_000

Rows = Sequence[tuple[str, str]]


class Face(Protocol):
    """Tells what happens.

    Attributes:
        is_interactive: A person is there, who may stop an answer and go on.
        wants_json: What commands report is wanted as JSON.
    """

    is_interactive: bool
    wants_json: bool

    def opened(self, session_id: str, path: str, agent: str, model: str, /) -> None:
        """A session is at hand: a new one, one that goes on, or a fork."""

    def before(self, messages: Sequence[Message], speaker: str, /) -> None:
        """What was said last in a session that goes on."""

    def asking(self, speaker: str, /) -> None:
        """Somebody is asked now."""

    def text(self, text: str, /) -> None:
        """The next piece of the answer."""

    def called(self, request: ToolRequest, /) -> None:
        """A tool begins."""

    def returned(self, piece: ToolReturned, /) -> None:
        """A tool has ended."""

    def done(self, response: Response, /) -> None:
        """The turn is over."""

    def stopped(self) -> None:
        """A person has stopped the turn."""

    def failed(self, text: str, /) -> None:
        """A turn or a command failed."""

    def say(self, text: str, /) -> None:
        """A sentence of our own."""

    def facts(self, title: str, rows: Rows, /) -> None:
        """Names, and what belongs to each."""

    def report(self, name: str, command: Callable[[], None], /) -> None:
        """What a command of the program prints."""


class PlainFace:
    """Answers on stdout, everything else beside them on stderr; no colours, and nothing is wrapped."""

    is_interactive = wants_json = False

    def __init__(self) -> None:
        self._out = sys.stdout  # what the agent itself prints may go elsewhere
        self._flow = Flow(None)

    def opened(self, session_id: str, path: str, _agent: str, _model: str) -> None:
        """Say where it is recorded."""
        note(f"session {session_id}: {path}")

    def before(self, messages: Sequence[Message], speaker: str) -> None:
        """A pipe knows what was said."""

    def asking(self, speaker: str) -> None:
        """A pipe knows who is asked."""

    def text(self, text: str) -> None:
        """Write the text, made harmless."""
        write(self._out, self._flow.feed(text))

    def called(self, _request: ToolRequest) -> None:
        """It is told when it has returned."""
        write(self._out, self._flow.end())

    def returned(self, piece: ToolReturned) -> None:
        """Tell it in one line."""
        view = View(exact=False)
        figures = outcome(view, piece.error, piece.duration_ms, piece.message.text)
        for line in tool_line(view, piece.request.name, piece.request.arguments, figures):
            note("".join(part.text for part in line).strip())

    def done(self, _response: Response) -> None:
        """End the answer's last line."""
        write(self._out, self._flow.end())

    def stopped(self) -> None:
        """End the line."""
        write(self._out, self._flow.end())

    def failed(self, text: str) -> None:
        """Say what went wrong."""
        write(self._out, self._flow.end())
        note(f"sessionlog: {text}")

    def say(self, text: str) -> None:
        """Say it beside the answers."""
        note(text)

    def facts(self, _title: str, rows: Rows) -> None:
        """Say one in each line."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            note(f"{one_line(name, _NAME):<{width}}  {one_line(text, _FACT)}")

    def report(self, _name: str, command: Callable[[], None]) -> None:
        """It prints to stdout, too."""
        with redirect_stdout(self._out):
            command()


class JsonFace:
    """One JSON object a line: every piece as it comes, and what else there is to say."""

    is_interactive = False
    wants_json = True

    def __init__(self) -> None:
        self._out = sys.stdout  # as above

    def opened(self, session_id: str, path: str, agent: str, model: str) -> None:
        """Tell the schema first."""
        known = {"agent": agent, "model": model or None}
        self._put("session", schema=SCHEMA, session_id=session_id, path=path, **known)

    def before(self, messages: Sequence[Message], speaker: str) -> None:
        """The log has it."""

    def asking(self, speaker: str) -> None:
        """Nothing was said yet."""

    def text(self, text: str) -> None:
        """Tell the piece."""
        self._put("text_delta", text=text)

    def called(self, request: ToolRequest) -> None:
        """Tell what was asked for."""
        self._put("tool_called", id=request.id, name=request.name, arguments=request.arguments)

    def returned(self, piece: ToolReturned) -> None:
        """Tell what the tool said."""
        self._put(
            "tool_returned", id=piece.request.id, name=piece.request.name, output=piece.message.text,
            error=piece.error, duration_ms=piece.duration_ms,
        )  # fmt: skip

    def done(self, response: Response) -> None:
        """Tell what the turn came to."""
        cut = response.truncation
        self._put(
            "done", status=response.status, text=response.text, model=response.model,
            finish_reason=response.finish_reason, usage=None if response.usage is None else response.usage.to_dict(),
            usage_is_partial=response.usage_is_partial, cost_usd=response.cost_usd, requests=response.requests,
            duration_ms=response.duration_ms, truncated_messages=0 if cut is None else int(cut),
        )  # fmt: skip

    def stopped(self) -> None:
        """Tell it."""
        self._put("stopped")

    def failed(self, text: str) -> None:
        """Tell what went wrong."""
        self._put("failed", error=text)

    def say(self, text: str) -> None:
        """Tell a sentence."""
        self._put("note", text=text)

    def facts(self, title: str, rows: Rows) -> None:
        """Tell them as one object."""
        self._put("facts", title=title, facts=dict(rows))

    def report(self, name: str, command: Callable[[], None]) -> None:
        """Tell the document that it prints."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            command()
        if printed.getvalue():
            self._put("report", report=name, document=json.loads(printed.getvalue()))

    def _put(self, kind: str, **fields: Any) -> None:
        value = json.loads(encode_object({"type": kind, **fields}))  # whatever a tool was asked with becomes JSON
        write(self._out, json.dumps(value).replace("\x7f", "\\u007f") + "\n")


def write(out: TextIO, text: str) -> None:
    """Write finished text at once: whoever reads along waits for it."""
    if text:
        out.write(text)
        out.flush()
