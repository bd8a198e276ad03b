"""Pieces: what an agent gives while it answers, and what a stream passes on.

An agent gives, for each answer of its model, texts as they come and then one `Reply`; an agent that runs its tools
itself gives a `ToolReturned` for each and goes on with the next answer. A stream passes on texts and tools, and
ends with one `Done`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sessionlog.conversation.history.truncation import Truncation
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
    """A tool that the model has asked for is about to run."""

    request: ToolRequest
    type: Literal["tool_called"] = "tool_called"


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """What a tool has returned.

    Attributes:
        request: The call.
        message: The result as it enters the history, of role `tool`.
        error: Why it failed, None if it did not.
        duration_ms: How long it ran; None where it was not measured.
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
    """An agent that runs its tools itself asks its model again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One whole answer of a model.

    Attributes:
        message: Its text and tool calls, of role `assistant`.
        usage: Tokens in disjoint classes (input is what touched no cache); None where it is unknown.
        model: The model that answered.
        provider: Who served it.
        cost_usd: What it cost, if the provider says so; None is unknown.
        finish_reason: Why it stopped, in the provider's word.
        output: The structured answer, where the agent has parsed it itself.
        has_output: Whether it has.
    """

    message: Message
    usage: TokenUsage | None = None
    model: str | None = None
    provider: str | None = None
    cost_usd: float | None = None
    finish_reason: str | None = None
    output: Any = None
    has_output: bool = False

    def __post_init__(self) -> None:
        _check("message", self.message, Message, "a Message: Message.assistant(text)")
        if self.usage is not None:
            _check("usage", self.usage, TokenUsage, "a TokenUsage: TokenUsage(input=10, output=2)")


def _check(name: str, value: object, kind: type, meant: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"Reply({name}=...) is {type(value).__name__}; it is {meant}")


Piece = TextDelta | Reply | ToolCalled | ToolReturned | NextRequest
"""What an agent gives."""

StreamPiece = TextDelta | ToolCalled | ToolReturned | Done
"""What a stream passes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """What an agent is asked.

    Attributes:
        messages: The history to answer, the newest last; without the session's own system text.
        system: The session's system text.
        tools: What may be called.
        schema: What a structured answer has to be: a type, or a JSON schema; None for text.
        options: `temperature`, `max_tokens`, `metadata` and the like, those that were given.
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
        messages: All that the turn added to the history, the user's message first.
        usage: Tokens of all its requests, in disjoint classes; None where the agent reported none.
        usage_is_partial: Some of its requests reported no usage.
        cost_usd: Their recorded cost; None is unknown.
        output: The structured answer of `json`, None elsewhere.
        model: The model that answered last, as far as known.
        finish_reason: Why it stopped, in the provider's word.
        status: `success`, or `cancelled` after `Session.cancel`.
        requests: How often a model was asked, retries not counted.
        duration_ms: Wall time.
        truncation: How the history was cut before, and how that went: its `warning` says that it is still
            over budget, or that a summary failed, also where nothing was dropped. None if it was not cut, and all is
            well.
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
        """What the last message says."""
        return self.message.text
