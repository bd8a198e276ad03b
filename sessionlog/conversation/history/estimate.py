"""How many tokens a message takes, before any provider has counted it: an estimate of the house's own."""

from __future__ import annotations

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.messages.message import ContentPart, Message

_AROUND = 4
"""What a provider's template adds to each message."""

PICTURE = 1500
"""What one picture takes, the same as where logs are measured; that module would bring all that reads logs."""


def estimate_tokens(message: Message) -> int:
    """Estimate the tokens of a message: its texts, names and arguments, 1,500 for each picture, 4 for its frame."""
    tokens = _AROUND + (count_tokens(message.name) if message.name else 0)
    if isinstance(message.content, str):
        tokens += count_tokens(message.content)
    else:
        tokens += sum(_piece(part) for part in message.content)
    for call in message.tool_calls:
        arguments = call.arguments
        tokens += count_tokens(call.name)
        tokens += count_tokens(arguments) if isinstance(arguments, str) else count_tokens_json(arguments)
    return int(tokens)


def _piece(part: ContentPart) -> int:
    if part.data is not None or part.image_url is not None or part.type == "image":
        return PICTURE
    rest = count_tokens_json(dict(part.extra)) if part.extra else 0
    return count_tokens(part.text or "") + rest
