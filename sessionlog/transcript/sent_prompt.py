"""SentPrompt: whole prompts from the `sent` fields of requests, which log only the changes since the prompt before.

`sent` has `keep`, how many of the earlier messages stay; `messages`, which follow them; and `system` and `tools` if
these changed. A request without logged messages may still change `system` and `tools`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

Json = Any
T = TypeVar("T")


class SentPrompt(Generic[T]):
    """The prompt of the latest request.

    Attributes:
        system: The system prompt, in its parts; empty where it is not known.
        tools: The tool definitions, as logged.
        messages: The messages, each as returned by `read`; None where the log does not hold them.
    """

    def __init__(self) -> None:
        self.system: list[Json] = []
        self.tools: Json = None
        self.messages: list[T] | None = None
        self._latest: list[T] = []  # later requests refer to these, even after one without messages

    def apply(self, sent: Json, read: Callable[[Json], T]) -> bool:
        """Apply the changes of the next request; return whether it has another system prompt or other tools.

        Args:
            sent: As logged; None where the log does not hold the prompt.
            read: A logged message → an element of `messages`.
        """
        fields = sent if isinstance(sent, Mapping) else {}
        given, keep = fields.get("messages"), fields.get("keep")
        self.messages = None
        if isinstance(given, list | tuple):
            start = keep if type(keep) is int and 0 <= keep <= len(self._latest) else 0
            self.messages = self._latest = [*self._latest[:start], *map(read, given)]
        if "system" in fields:
            system = fields["system"]
            self.system = list(system) if isinstance(system, list | tuple) else [] if system is None else [system]
        is_changed = "system" in fields or "tools" in fields
        if is_changed:
            self.tools = fields.get("tools")
        return is_changed
