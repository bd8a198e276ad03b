"""What a replay is made of: one frozen value per thing worth showing, and nothing about how it looks.

The fold makes blocks of events, the layout makes lines of blocks. A block keeps the text of the log as it was logged,
hostile or not: escaping is the layout's last step.
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
        unchecked: A recorded 0 of a model that may have a list price, which nobody looked up: not called free.
    """

    nano: int
    estimated: bool = False
    partial: bool = False
    unchecked: bool = False


class Call(Struct, frozen=True, kw_only=True):
    """A tool call as the model asked for it.

    Attributes:
        id: The provider's id of the call, empty where the log has none.
        name: The tool.
        arguments: JSON value; numbers with a fraction are `Digits`, so that they are shown as logged.
        given: Whether there were arguments at all: null is one, absent is not.
    """

    id: str = ""
    name: str = ""
    arguments: Json = None
    given: bool = False


class Served(Struct, frozen=True, kw_only=True):
    """Who served a request, and what it took.

    Attributes:
        model: The model that answered.
        provider: The provider, only where it is not one that the session's head names.
        latency_ms: None where the log does not say.
        usage: Disjoint token classes; None where the log has none.
        cost: None is unknown.
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
        type: The event type that made it, or would have; `--only` selects by it.
        time_ns: When, in UTC nanoseconds since 1970; None where the log does not say.
        agent: The name of the sub-agent that did it; empty for the session's own agent.
    """

    type: str = ""
    time_ns: int | None = None
    agent: str = ""


class Opened(Block, frozen=True, kw_only=True):
    """The head of a session. `start` is None in a file that has no readable session.start."""

    type: str = "session.start"
    session_id: str
    logged_id: str
    start: SessionStart | None


class Asked(Block, frozen=True, kw_only=True):
    """A request to a model, of which the messages follow; made only where all messages are asked for."""

    messages: int
    tools: int
    model: str


class MessageShown(Block, frozen=True, kw_only=True):
    """A message of a person, a system prompt, a tool or an earlier answer.

    Attributes:
        role: As logged: system, user, assistant, tool, developer …
        text: The text, parts joined.
        calls: Tool calls of an assistant's message.
        tool: For a tool's result, the tool's name where it is known.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    tool: str = ""


class Rewritten(Block, frozen=True, kw_only=True):
    """A request whose history is not the former one continued.

    Attributes:
        left_out: Former messages that it does not have.
        kept: Former messages that it has; 0 in a conversation of its own.
    """

    left_out: int
    kept: int


class Answered(Block, frozen=True, kw_only=True):
    """A model's answer, or why there is none. Its tool calls follow as `Ran`, together with their results.

    Attributes:
        text: The answer; empty when it only called tools. Of a request that failed, what had been streamed before.
        served: By whom, and what it took.
        calls: How many tools it called.
        unfinished: A stream that broke off: the text is what had arrived.
        thought: What the model thought before it answered.
        request: The number of the request, as `context --request` takes it; 0 for one of a sub-agent.
        error: Why the request failed; empty where it did not.
    """

    type: str = "llm.response"
    text: str
    served: Served
    calls: int = 0
    unfinished: bool = False
    thought: str = ""
    request: int = 0
    error: str = ""


class Ran(Block, frozen=True, kw_only=True):
    """A tool call and its result.

    Attributes:
        call: What was asked.
        output: The result as text.
        error: Empty when it worked.
        duration_ms: None where the log does not say.
        answered: False for a call that the log never answers.
    """

    type: str = "tool.call"
    call: Call
    output: str = ""
    error: str = ""
    duration_ms: float | None = None
    answered: bool = True


class Logged(Block, frozen=True, kw_only=True):
    """A router's decision, a person's pin or a compaction of the history: its payload has all there is to show."""

    payload: Payload


class Noted(Block, frozen=True, kw_only=True):
    """Anything else worth a line: unknown types, damaged lines, gaps, stalls, plans, progress.

    Attributes:
        word: What kind of thing, one word.
        text: The line, in our words or the log's.
        data: What there is to say where there is no text: a JSON value, fractions as `Digits`.
        more: A longer text below it.
        severity: `damage` when something is missing from the log.
    """

    word: str
    text: str = ""
    data: Json = None
    more: str = ""
    severity: Severity = "info"


class Ended(Block, frozen=True, kw_only=True):
    """The end of a session, or of a log that has none (`end` is None).

    Attributes:
        start: The session.start it belongs to, empty where there is none.
        end: The payload.
        totals: How many there were of each: `request`, `failed request`, `tool`, `failed tool`, `damaged piece`.
        usage: The sum of the responses and what the end reports beyond it, or only what the end of the Go original
            reports; disjoint classes.
        cost: What the end reports, or the sum of the responses where that is more; None is unknown.
        end_cost: What the end reports where it is less.
        duration_ms: What the end reports, else the sum of the log's gaps of at most 5 minutes.
        output: The final output, only where the last answer did not already say it.
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
