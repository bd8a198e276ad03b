"""The outputs of a chat: plain text for a pipe, whose stdout has the answers only, and JSON lines for a program.

The output for a person is in `terminal`. All text of models, tools and errors is escaped, here or by JSON.
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
RESUME_FACT = "go on"
"""The name of the fact that is a command; it must be shown in one piece, so that it can be copied."""

_MAX_NAME, _MAX_VALUE = 60, 4_000

Rows = Sequence[tuple[str, str]]


class Output(Protocol):
    """Shows the events of a chat.

    Attributes:
        is_interactive: A person may stop an answer and continue.
        wants_json: Reports of slash commands are wanted as JSON.
    """

    is_interactive: bool
    wants_json: bool

    def opened(self, session_id: str, path: str, agent: str, model: str, /) -> None:
        """A session was opened: a new one, a resumed one, or a fork."""

    def last_turn(self, messages: Sequence[Message], speaker: str, /) -> None:
        """The last turn of a resumed session."""

    def turn_started(self, speaker: str, /) -> None:
        """A message was sent to the agent."""

    def text(self, text: str, /) -> None:
        """The next piece of the answer."""

    def tool_called(self, request: ToolRequest, /) -> None:
        """A tool call begins."""

    def tool_returned(self, piece: ToolReturned, /) -> None:
        """A tool call has ended."""

    def done(self, response: Response, /) -> None:
        """The turn has ended."""

    def stopped(self) -> None:
        """A person has stopped the turn."""

    def failed(self, text: str, /) -> None:
        """A turn or a command failed."""

    def note(self, text: str, /) -> None:
        """A message of sessionlog itself."""

    def facts(self, title: str, rows: Rows, /) -> None:
        """Names and values."""

    def report(self, name: str, command: Callable[[], None], /) -> None:
        """A slash command's report; `command` prints it."""


class PlainOutput:
    """Answers on stdout, everything else on stderr; no colours, no wrapping."""

    is_interactive = wants_json = False

    def __init__(self) -> None:
        self._out = sys.stdout  # what the agent prints is redirected to stderr
        self._flow = Flow(None)

    def opened(self, session_id: str, path: str, _agent: str, _model: str) -> None:
        """Note where the session is recorded."""
        note(f"session {session_id}: {path}")

    def last_turn(self, messages: Sequence[Message], speaker: str) -> None:
        """Show nothing: stdout has new answers only."""

    def turn_started(self, speaker: str) -> None:
        """Show nothing: stdout has answers only."""

    def text(self, text: str) -> None:
        """Write the text, escaped."""
        write(self._out, self._flow.feed(text))

    def tool_called(self, _request: ToolRequest) -> None:
        """End the answer's line; the call is shown when it returns."""
        write(self._out, self._flow.end())

    def tool_returned(self, piece: ToolReturned) -> None:
        """Show the call and its outcome in one line."""
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
        """Show the error."""
        write(self._out, self._flow.end())
        note(f"sessionlog: {text}")

    def note(self, text: str) -> None:
        """Show it on stderr."""
        note(text)

    def facts(self, _title: str, rows: Rows) -> None:
        """Show one per line."""
        width = max((len(name) for name, _ in rows), default=0)
        for name, text in rows:
            note(f"{one_line(name, _MAX_NAME):<{width}}  {one_line(text, _MAX_VALUE)}")

    def report(self, _name: str, command: Callable[[], None]) -> None:
        """Print the report to stdout."""
        with redirect_stdout(self._out):
            command()


class JsonOutput:
    """One JSON object per line for every event."""

    is_interactive = False
    wants_json = True

    def __init__(self) -> None:
        self._out = sys.stdout  # what the agent prints is redirected to stderr

    def opened(self, session_id: str, path: str, agent: str, model: str) -> None:
        """Write the session, with the schema of all lines."""
        known = {"agent": agent, "model": model or None}
        self._put("session", schema=SCHEMA, session_id=session_id, path=path, **known)

    def last_turn(self, messages: Sequence[Message], speaker: str) -> None:
        """Write nothing: the log has the last turn."""

    def turn_started(self, speaker: str) -> None:
        """Write nothing: the first piece follows."""

    def text(self, text: str) -> None:
        """Write the piece."""
        self._put("text_delta", text=text)

    def tool_called(self, request: ToolRequest) -> None:
        """Write the call."""
        self._put("tool_called", id=request.id, name=request.name, arguments=request.arguments)

    def tool_returned(self, piece: ToolReturned) -> None:
        """Write the result."""
        self._put(
            "tool_returned", id=piece.request.id, name=piece.request.name, output=piece.message.text,
            error=piece.error, duration_ms=piece.duration_ms,
        )  # fmt: skip

    def done(self, response: Response) -> None:
        """Write the turn's result."""
        cut = response.truncation
        self._put(
            "done", status=response.status, text=response.text, model=response.model,
            finish_reason=response.finish_reason, usage=None if response.usage is None else response.usage.to_dict(),
            usage_is_partial=response.usage_is_partial, cost_usd=response.cost_usd, requests=response.requests,
            duration_ms=response.duration_ms, truncated_messages=0 if cut is None else int(cut),
        )  # fmt: skip

    def stopped(self) -> None:
        """Write that the turn was stopped."""
        self._put("stopped")

    def failed(self, text: str) -> None:
        """Write the error."""
        self._put("failed", error=text)

    def note(self, text: str) -> None:
        """Write the message."""
        self._put("note", text=text)

    def facts(self, title: str, rows: Rows) -> None:
        """Write them as one object."""
        self._put("facts", title=title, facts=dict(rows))

    def report(self, name: str, command: Callable[[], None]) -> None:
        """Write the document that the command prints."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            command()
        if printed.getvalue():
            self._put("report", report=name, document=json.loads(printed.getvalue()))

    def _put(self, kind: str, **fields: Any) -> None:
        value = json.loads(encode_object({"type": kind, **fields}))  # a tool's arguments may be no JSON
        write(self._out, json.dumps(value).replace("\x7f", "\\u007f") + "\n")


def write(out: TextIO, text: str) -> None:
    """Write escaped text and flush, as the reader follows the answer live."""
    if text:
        out.write(text)
        out.flush()
