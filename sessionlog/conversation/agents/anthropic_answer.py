"""What Anthropic's messages answer, heard event by event.

The client puts the message together; what it holds besides text and tool calls, as thinking, is kept and sent back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessionlog.conversation.agents.spelling import content_of, count_of
from sessionlog.conversation.history.message import ContentPart, Message, ToolRequest
from sessionlog.conversation.turns.pieces import Piece, Reply, TextDelta
from sessionlog.events.tokens import TokenUsage


class AnthropicAnswer:
    """Hears one message."""

    def __init__(self, provider: str | None) -> None:
        self._provider = provider
        self._message: Any = None

    def hear(self, event: Any) -> Iterator[Piece]:
        """Take an event of `messages.stream`."""
        if event.type == "text" and event.text:
            yield TextDelta(event.text)
        elif event.type == "message_stop":
            self._message = event.message

    def reply(self) -> Reply:
        """Give the whole message."""
        answered = self._message
        if answered is None:
            raise ConnectionError("the stream ended before the answer did")
        calls = [
            ToolRequest(block.id, block.name, block.input) for block in answered.content if block.type == "tool_use"
        ]
        parts = [_part(block) for block in answered.content if block.type != "tool_use"]
        return Reply(
            message=Message.assistant(content_of(parts), tool_calls=calls),
            usage=usage_of(answered.usage),
            model=answered.model,
            provider=self._provider,
            finish_reason=answered.stop_reason,
        )


def usage_of(usage: Any) -> TokenUsage:
    """Return a `Usage` as ours: its input touches no cache already."""
    kept = getattr(usage, "cache_creation", None)
    written, output = count_of(usage, "cache_creation_input_tokens"), count_of(usage, "output_tokens")
    return TokenUsage(
        input=count_of(usage, "input_tokens"),
        output=output,
        cache_read=count_of(usage, "cache_read_input_tokens"),
        cache_write=written,
        reasoning=min(output, count_of(getattr(usage, "output_tokens_details", None), "thinking_tokens")),
        cache_write_1h=min(written, count_of(kept, "ephemeral_1h_input_tokens")),
    )


def _part(block: Any) -> ContentPart:
    if block.type == "text":
        return ContentPart.of_text(block.text)
    return ContentPart(type=block.type, extra={key: value for key, value in block.to_dict().items() if key != "type"})
