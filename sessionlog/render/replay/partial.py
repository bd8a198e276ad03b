"""The pieces of a streamed answer, kept only until its llm.response makes them superfluous.

They are shown when no response follows: a killed agent, a broken connection. What is kept is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from sessionlog.events.payloads import LLMDelta
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Answered, Block, Call, Ran, Served
from sessionlog.sources import values

_KEPT = 1_000_000  # characters
_CALLS = 256


@dataclass(slots=True)
class Partial:
    """An answer under way.

    Attributes:
        model: The model, as far as the stream has named it; so are the other attributes.
        provider: The provider.
        usage: As logged.
        error: Why it broke off.
        calls: The tool calls that have arrived, by id; arguments may be half a JSON text.
    """

    model: str = ""
    provider: str = ""
    usage: TokenUsage | None = None
    error: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
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
        """The text that has arrived."""
        return "".join(self._pieces)

    def blocks(self, served: Served) -> Iterator[Block]:
        """What there is of an answer that never came: its text, or its error, and the calls it had begun."""
        if self._pieces or self.calls or self.error:
            yield Answered(
                text=self.text, served=served, calls=len(self.calls), unfinished=not self.error, error=self.error
            )
        for call in self.calls.values():
            yield Ran(call=call, answered=False)

    def _add_call(self, delta: LLMDelta) -> None:
        key = delta.tool_call_id or next(reversed(self.calls), "")
        if not (delta.tool_call_id or delta.tool_call_name or delta.tool_call_args) or len(self.calls) > _CALLS:
            return
        call = self.calls.get(key) or Call(id=key, arguments="")
        if delta.tool_call_args and self._has_room(delta.tool_call_args):
            call = replace(call, arguments=call.arguments + delta.tool_call_args, given=True)
        self.calls[key] = replace(call, name=delta.tool_call_name or call.name)

    def _has_room(self, piece: str) -> bool:
        self._kept += len(piece) + 50  # a list of one-letter pieces weighs more than its letters
        return self._kept <= _KEPT
