"""Collect the pieces of a streamed answer, which are shown only if no llm.response follows.

That happens to a killed agent or a broken connection. The collected size is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sessionlog.events.payloads import LLMDelta
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Block, Call, ResponseBlock, Served, ToolCallBlock
from sessionlog.sources import values

_KEPT = 1_000_000  # characters
_CALLS = 256


@dataclass(slots=True)
class Partial:
    """An answer that is being streamed.

    Attributes:
        model: The model. This and the other attributes are empty until the stream names them.
        provider: The provider.
        usage: As logged.
        error: Why the stream broke off.
    """

    model: str = ""
    provider: str = ""
    usage: TokenUsage | None = None
    error: str = ""
    _names: dict[str, str] = field(default_factory=dict)  # of the tools that are called, by the call's id
    _arguments: dict[str, list[str]] = field(default_factory=dict)
    _pieces: list[str] = field(default_factory=list)
    _kept: int = 0

    def add(self, delta: LLMDelta) -> None:
        """Add one piece."""
        if delta.content and self._has_room(delta.content):
            self._pieces.append(delta.content)
        self._add_call(delta)
        self.model = delta.model or self.model
        self.error = delta.err or self.error
        self.usage = delta.usage or self.usage
        self.provider = values.text(delta.attempt, "provider_name") or self.provider

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def calls(self) -> list[Call]:
        """The tool calls so far; arguments may be half a JSON text."""
        return [
            Call(id=key, name=self._names[key], arguments="".join(pieces), given=bool(pieces))
            for key, pieces in self._arguments.items()
        ]

    def blocks(self, served: Served) -> Iterator[Block]:
        """Yield the blocks of an answer without a response: its text, or its error, and its calls."""
        calls = self.calls
        if self._pieces or calls or self.error:
            yield ResponseBlock(
                text=self.text, served=served, calls=len(calls), unfinished=not self.error, error=self.error
            )
        for call in calls:
            yield ToolCallBlock(call=call, answered=False)

    def _add_call(self, delta: LLMDelta) -> None:
        key = delta.tool_call_id or next(reversed(self._arguments), "")
        if not (delta.tool_call_id or delta.tool_call_name or delta.tool_call_args) or len(self._arguments) > _CALLS:
            return
        pieces = self._arguments.setdefault(key, [])
        self._names[key] = delta.tool_call_name or self._names.get(key, "")
        if delta.tool_call_args and self._has_room(delta.tool_call_args):
            pieces.append(delta.tool_call_args)

    def _has_room(self, piece: str) -> bool:
        self._kept += len(piece) + 50  # a list of one-letter pieces weighs more than its letters
        return self._kept <= _KEPT
