"""Pieces: what an agent yields while it answers, and what a stream yields to the caller.

For each answer of its model, an agent yields texts as they come and then one `Reply`; an agent that runs its tools
itself yields a `ToolReturned` for each, then the next answer. A stream yields texts and tools, and ends with one
`Done`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sessionlog.conversation.history.truncation import Truncation
from sessionlog.events.billing import read_whole
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import Message, ToolRequest

if TYPE_CHECKING:
    from sessionlog.conversation.turns.tool import Tool


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text."""

    text: str
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool that the model has called is about to run."""

    request: ToolRequest
    type: Literal["tool_called"] = "tool_called"


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """The result of a tool call.

    Attributes:
        request: The call.
        message: The result for the history, of role `tool`.
        error: Why the tool failed; None if it did not.
        duration_ms: How long it ran; None if not measured.
    """

    request: ToolRequest
    message: Message
    error: str | None = None
    duration_ms: float | None = None
    type: Literal["tool_returned"] = "tool_returned"


@dataclass(frozen=True, slots=True)
class Done:
    """The last piece of every stream."""

    response: Response
    type: Literal["done"] = "done"


@dataclass(frozen=True, slots=True)
class NextRequest:
    """An agent that runs its tools itself sends the next request to its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One whole answer of a model.

    Attributes:
        message: Its text and tool calls, of role `assistant`.
        usage: Tokens in disjoint classes (input is what touched no cache); None where it is unknown.
        model: The model that answered.
        provider: The provider.
        billed: What has a price beside the tokens, under the names of an SDK's usage object: `service_tier`,
            `inference_geo`, `server_tool_use`, `iterations`.
        cost_usd: The cost reported by the provider; None is unknown.
        finish_reason: Why it stopped, as the provider names it.
        output: The structured answer, if the agent has parsed it.
        has_output: Whether the agent has.
    """

    message: Message
    usage: TokenUsage | None = None
    model: str | None = None
    provider: str | None = None
    billed: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float | None = None
    finish_reason: str | None = None
    output: Any = None
    has_output: bool = False

    @property
    def used(self) -> TokenUsage | None:
        """Its tokens, with those of the responses inside it."""
        if self.usage is None or not self.billed:
            return self.usage
        return read_whole({**self.usage.to_dict(), **self.billed})[0]

    def __post_init__(self) -> None:
        _check("message", self.message, Message, "a Message: Message.assistant(text)")
        if self.usage is not None:
            _check("usage", self.usage, TokenUsage, "a TokenUsage: TokenUsage(input=10, output=2)")


def _check(name: str, value: object, kind: type, meant: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"Reply({name}=...) is {type(value).__name__}; it is {meant}")


Piece = TextDelta | Reply | ToolCalled | ToolReturned | NextRequest
"""What an agent yields."""

StreamPiece = TextDelta | ToolCalled | ToolReturned | Done
"""What a stream yields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A request to an agent.

    Attributes:
        messages: The history to answer, the newest last; without the session's own system text.
        system: The session's system text.
        tools: The tools that may be called.
        schema: The type or JSON schema of a structured answer; None for text.
        options: The given options, such as `temperature`, `max_tokens` and `metadata`.
    """

    messages: Sequence[Message]
    system: str | None = None
    tools: Sequence[Tool] = ()
    schema: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to one `run`.

    Attributes:
        message: The last message of the turn.
        messages: All messages that the turn added to the history, the user's first.
        usage: Tokens of all requests, in disjoint classes; None if the agent reported none.
        usage_is_partial: Some requests reported no usage.
        cost_usd: The reported cost; None is unknown.
        output: The structured answer of `json`, None elsewhere.
        model: The model of the last answer; None if unknown.
        finish_reason: Why it stopped, as the provider names it.
        status: `success`, or `cancelled` after `Session.cancel`.
        requests: The number of requests to a model, without retries.
        duration_ms: Wall time.
        truncation: The truncation before the first request. Its `warning` is set if the history is still over budget or
            a summary failed, even if nothing was dropped. None if nothing was truncated and there is no warning.
    """

    message: Message
    messages: tuple[Message, ...]
    usage: TokenUsage | None = None
    usage_is_partial: bool = False
    cost_usd: float | None = None
    output: Any = None
    model: str | None = None
    finish_reason: str | None = None
    status: Literal["success", "cancelled"] = "success"
    requests: int = 1
    duration_ms: float = 0.0
    truncation: Truncation | None = None

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.message.text
