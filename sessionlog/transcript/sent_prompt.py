"""SentPrompt: the whole prompts that some agents log, each as what changed since the one before.

`sent` of a request has `messages` behind `keep` of the messages before, and `system` and `tools` where these changed. A
request whose messages the log does not hold may still change the other two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

Json = Any
T = TypeVar("T")


class SentPrompt(Generic[T]):
    """What the latest request sent.

    Attributes:
        system: The system prompt, in its parts; empty where it is not known.
        tools: The tool definitions, as logged.
        messages: The messages, each as the caller has read it; None where the log does not hold them.
    """

    def __init__(self) -> None:
        self.system: list[Json] = []
        self.tools: Json = None
        self.messages: list[T] | None = None
        self._latest: list[T] = []  # what a later request may keep, though one between has no messages

    def take(self, sent: Json, read: Callable[[Json], T]) -> bool:
        """Take what the next request sent, and return whether its system prompt and tools are others.

        Args:
            sent: As logged; None where the log does not hold the prompt.
            read: Reads a message.
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
