"""The pieces of a streamed answer, kept only until its llm.response makes them superfluous.

They are shown when no response follows: a killed agent, a broken connection. What is kept is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.events.payloads import LLMDelta
from sessionlog.events.tokens import TokenUsage
from sessionlog.render.replay.blocks import Answered, Block, Call, Failed, Ran, Served

Json = Any
_KEPT = 1_000_000  # characters
_CALLS = 256


class Partial:
    """An answer under way: `add` deltas, then `clear`, or show its `blocks`."""

    __slots__ = ("_arguments", "_kept", "_names", "_pieces", "error", "model", "provider", "usage")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._pieces: list[str] = []
        self._names: dict[str, str] = {}
        self._arguments: dict[str, list[str]] = {}
        self._kept = 0
        self.usage: TokenUsage | None = None
        self.model = self.provider = self.error = ""

    def __bool__(self) -> bool:
        return bool(self._pieces or self._arguments or self.error)

    def add(self, delta: LLMDelta) -> None:
        """Take one piece."""
        if delta.content and self._room(delta.content):
            self._pieces.append(delta.content)
        self._add_call(delta)
        self.model = delta.model or self.model
        self.error = delta.err or self.error
        self.usage = delta.usage or self.usage
        if isinstance(delta.attempt, Mapping):
            name = delta.attempt.get("provider_name")
            self.provider = name if isinstance(name, str) else self.provider

    @property
    def text(self) -> str:
        """The text that has arrived."""
        return "".join(self._pieces)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls that have arrived; arguments may be half a JSON text."""
        return tuple(
            Call(id=key, name=self._names.get(key, ""), arguments="".join(parts), given=bool(parts))
            for key, parts in self._arguments.items()
        )

    def blocks(self, time_ns: int | None, served: Served) -> Iterator[Block]:
        """What there is of an answer that never came: its text, or its error, and the calls it had begun."""
        if not self:
            return
        kind, calls = "llm.response", self.calls
        if self.error:
            yield Failed(type=kind, time_ns=time_ns, error=self.error, text=self.text, served=served)
        else:
            yield Answered(type=kind, time_ns=time_ns, text=self.text, served=served, calls=len(calls), unfinished=True)
        for call in calls:
            yield Ran(type="tool.call", time_ns=time_ns, call=call, answered=False)

    def _add_call(self, delta: LLMDelta) -> None:
        key = delta.tool_call_id or next(reversed(self._arguments), "")
        if not (delta.tool_call_id or delta.tool_call_name or delta.tool_call_args) or len(self._arguments) > _CALLS:
            return
        parts = self._arguments.setdefault(key, [])
        if delta.tool_call_name:
            self._names[key] = delta.tool_call_name
        if delta.tool_call_args and self._room(delta.tool_call_args):
            parts.append(delta.tool_call_args)

    def _room(self, piece: str) -> bool:
        self._kept += len(piece) + 50  # a list of one-letter pieces weighs more than its letters
        return self._kept <= _KEPT
