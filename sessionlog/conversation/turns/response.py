"""Response: what a turn came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.conversation.history.truncation import Truncation
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to one `run`.

    Attributes:
        message: The last message of the turn.
        messages: All that the turn added to the history, the user's message first.
        usage: Tokens of all its requests, in disjoint classes; None where the agent told none.
        usage_is_partial: Some of its requests told no usage.
        cost_usd: Their recorded cost; None is unknown.
        output: The structured answer of `json`, None elsewhere.
        model: The model that answered last, as far as known.
        finish_reason: Why it stopped, in the provider's word.
        status: `success`, or `cancelled` after `Session.cancel`.
        requests: How often a model was asked, retries not counted.
        duration_ms: Wall time.
        truncation: How the history was cut before, and what is to be said of it: its `warning` says that it is still
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
