"""Tally: counts the tokens of a snapshot, and remembers whether any of them was estimated.

A message is counted as it is sent, inside the JSON that carries it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessionlog.context.tokens import TokenCount, count_tokens, count_tokens_json
from sessionlog.context.xray.measure import IMAGE
from sessionlog.messages.entry import Piece
from sessionlog.messages.json_value import json_text

Count = Callable[[str], int]
"""Text → tokens: a tokenizer of the caller's own. What it gives is exact, unless it is a `TokenCount` that is not."""


class Tally:
    """Counts with a model's tokenizer, or with the caller's.

    Attributes:
        estimated: Whether any count so far is an estimate.
    """

    def __init__(self, count: Count | None = None, *, model: str | None = None) -> None:
        self._count = count
        self._model = model
        self.estimated = False

    def text(self, text: str) -> int:
        """Count a text; an empty one has no tokens, surely."""
        if not text:
            return 0
        return self._noted(count_tokens(text, self._model) if self._count is None else self._count(text))

    def json(self, value: Any) -> int:
        """Count a value as JSON."""
        return self._noted(
            count_tokens_json(value, self._model) if self._count is None else self._count(json_text(value))
        )

    def part(self, part: Piece) -> int:
        """Count a piece of a message as it is sent."""
        return self._words(part) + self._pictures(part)

    def bare(self, part: Piece) -> int:
        """Count what a piece of a message says, without what carries it."""
        return self.text(part.text) + self._pictures(part)

    def _pictures(self, part: Piece) -> int:
        """Pictures have one size, the X-ray's; it is a guess."""
        self.estimated = self.estimated or bool(part.media)
        return part.media * IMAGE

    def _words(self, part: Piece) -> int:
        if part.kind in ("user", "assistant"):
            return self.json({"role": part.kind, "content": [{"type": "text", "text": part.text}]})
        if part.kind == "tool_call":
            given = {} if part.arguments in (None, "") else part.arguments
            return self.json({"id": part.call_id or "", "type": "tool_use", "name": part.name or "", "input": given})
        if part.kind == "tool_return":
            answer = {"tool_use_id": part.call_id or "", "type": "tool_result", "content": part.text}
            return self.json({**answer, "is_error": part.failed})
        return self.text(part.text)

    def _noted(self, count: int) -> int:
        if isinstance(count, TokenCount) and not count.exact:
            self.estimated = True
        return int(count)
