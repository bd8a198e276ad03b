"""The blocks of a replay: a frozen value for each thing that is shown, without its appearance.

`fold` turns events into blocks, `layout` turns blocks into lines. Blocks keep text as logged, hostile or not; only the
layout escapes it, in its last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sessionlog.errors import Severity
from sessionlog.events.payloads import Payload, SessionEnd, SessionStart
from sessionlog.events.tokens import TokenUsage

Json = Any


class Cost(Struct, frozen=True, kw_only=True):
    """Money of one response or session, in nano-dollars.

    Attributes:
        nano: The amount; 0 is free.
        estimated: Whether it comes from a price table and not from the log.
        partial: Whether it is the known part of a sum of which another part is unknown.
        unchecked: Whether it is a recorded 0 that was not compared with a list price: it is not shown as free.
    """

    nano: int
    estimated: bool = False
    partial: bool = False
    unchecked: bool = False


class Call(Struct, frozen=True, kw_only=True):
    """A tool call as the model requested it.

    Attributes:
        id: The provider's id of the call, empty where the log has none.
        name: The tool.
        arguments: A JSON value; fractional numbers are `Digits`, so that they are shown as logged.
        given: Whether the call has arguments; null is one.
    """

    id: str = ""
    name: str = ""
    arguments: Json = None
    given: bool = False


class Picture(Struct, frozen=True, kw_only=True):
    """A picture in a message or a result, or another file that the log holds as a whole.

    Attributes:
        media_type: As logged.
        data: Its bytes.
    """

    media_type: str
    data: bytes


class Served(Struct, frozen=True, kw_only=True):
    """The figures of a response.

    Attributes:
        model: The model that answered.
        provider: The provider, unless session.start names it.
        latency_ms: None where it is not logged.
        usage: Disjoint token classes; None where the log has none.
        cost: None where it is unknown.
        finish_reason: As logged.
        attempt: Counts from 1.
    """

    model: str = ""
    provider: str = ""
    latency_ms: float | None = None
    usage: TokenUsage | None = None
    cost: Cost | None = None
    finish_reason: str = ""
    attempt: int = 1


class Block(Struct, frozen=True, kw_only=True):
    """Base of the blocks.

    Attributes:
        type: The event type by which `--only` selects it.
        time_ns: UTC nanoseconds since 1970; None where it is not logged.
        agent: The name of the sub-agent that did it; empty for the session's own agent.
    """

    type: str = ""
    time_ns: int | None = None
    agent: str = ""


class SessionStartBlock(Block, frozen=True, kw_only=True):
    """The head of a session; `start` is None for a log without a readable session.start."""

    type: str = "session.start"
    session_id: str
    logged_id: str
    start: SessionStart | None


class RequestBlock(Block, frozen=True, kw_only=True):
    """A request to a model, followed by its messages; only where all messages are requested."""

    messages: int
    tools: int
    model: str


class MessageBlock(Block, frozen=True, kw_only=True):
    """A message: of a person, a system prompt, a tool or an earlier answer.

    Attributes:
        role: As logged: system, user, assistant, tool, developer …
        text: The text, parts joined.
        calls: Tool calls of an assistant's message.
        tool: For a tool's result, the tool's name where it is known.
        pictures: Those that the log holds; the text has their places.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    tool: str = ""
    pictures: tuple[Picture, ...] = ()


class RewriteBlock(Block, frozen=True, kw_only=True):
    """A request whose history does not continue that of the request before.

    Attributes:
        left_out: Earlier messages that it lacks.
        kept: Earlier messages that it has; 0 for a new conversation.
    """

    left_out: int
    kept: int


class ResponseBlock(Block, frozen=True, kw_only=True):
    """A model's answer, or its error. Its tool calls follow as `ToolCallBlock`, with their results.

    Attributes:
        text: The answer, empty if it only called tools; for a failed request, what was streamed before.
        served: Its figures.
        calls: The number of its tool calls.
        unfinished: Whether the stream broke off; the text is what had arrived.
        thought: The reasoning before the answer.
        request: The number of the request for `context --request`; 0 for a sub-agent.
        error: Why the request failed, "" for success.
    """

    type: str = "llm.response"
    text: str
    served: Served
    calls: int = 0
    unfinished: bool = False
    thought: str = ""
    request: int = 0
    error: str = ""


class ToolCallBlock(Block, frozen=True, kw_only=True):
    """A tool call and its result.

    Attributes:
        call: The call.
        output: The result as text.
        error: Why it failed, "" for success.
        duration_ms: None where it is not logged.
        answered: Whether the log has its result.
        pictures: Those in the result.
    """

    type: str = "tool.call"
    call: Call
    output: str = ""
    error: str = ""
    duration_ms: float | None = None
    answered: bool = True
    pictures: tuple[Picture, ...] = ()


class PayloadBlock(Block, frozen=True, kw_only=True):
    """A router's decision, a person's pin or a compaction of the history, shown from its payload alone."""

    payload: Payload


class NoteBlock(Block, frozen=True, kw_only=True):
    """A line on anything else: unknown types, damaged lines, gaps, stalls, progress.

    Attributes:
        kind: Its kind, one word.
        text: The line.
        data: A JSON value that is shown where there is no text, fractions as `Digits`.
        more: A longer text below the line.
        severity: `damage` if something is missing from the log.
    """

    kind: str
    text: str = ""
    data: Json = None
    more: str = ""
    severity: Severity = "info"


class SessionEndBlock(Block, frozen=True, kw_only=True):
    """The end of a session, or of a log without a session.end (`end` is None).

    The last end has the totals of the session, as reports have them. Another one, after which the session went on, has
    only what it reports itself.

    Attributes:
        start: The session.start, empty if there is none.
        end: The session.end.
        totals: Counts of `tool`, `failed tool` and `damaged piece` so far, and of `request` and `failed request`.
        usage: The tokens of the session in disjoint classes.
        cost: The cost of the session; None is unknown.
        end_cost: What the end reports where it is less.
        duration_ms: How long the session took; None where it is not known.
        output: The final output, unless it equals the last answer.
    """

    type: str = "session.end"
    start: SessionStart
    end: SessionEnd | None
    totals: Mapping[str, int]
    usage: TokenUsage
    cost: Cost | None
    duration_ms: float | None
    end_cost: Cost | None = None
    output: str = ""
