"""The prompt of a request as its log holds it: system prompt, tools and messages, whatever the conversation shows.

Some agents log what they sent, each request as a change of the one before it (`sent` of `llm.request`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.context.xray.measure import Said

Json = Any
_KEPT = 2 << 20  # bytes of text that are not counted yet


class SentPrompt:
    """What the latest request sent.

    Attributes:
        head: The system prompt, in its parts; empty where it is not known.
        tools: The tool definitions, as logged.
        messages: The messages, in order.
        size: Their length in bytes as JSON, about.
        is_whole: The messages are known.
    """

    def __init__(self) -> None:
        self.head: list[Said] = []
        self.tools: Json = None
        self.messages: list[Said] = []
        self.size = self._uncounted = 0
        self.is_whole = False

    def take(self, sent: Mapping[str, Json], model: str | None) -> None:
        """Take what the next request sent: `system` and `tools` if they changed, `messages` behind `keep` of them."""
        system, given, keep = sent.get("system"), sent.get("messages"), sent.get("keep")
        if "system" in sent:
            parts = system if isinstance(system, list | tuple) else [] if system is None else [system]
            self.head = [Said({"role": "system", "content": part}, model, placeholders=False) for part in parts]
        if "system" in sent or "tools" in sent:
            self.tools = sent.get("tools")
        self.is_whole = isinstance(given, list | tuple)
        if isinstance(given, list | tuple):
            start = keep if type(keep) is int and 0 <= keep <= len(self.messages) else 0
            added = [Said(message, model, placeholders=False) for message in given]
            self.messages = [*self.messages[:start], *added]  # the request before it may still be looked at
            self.size = sum(one.size for one in self.messages)
            self._uncounted += sum(one.size for one in added)
            if self._uncounted > _KEPT:
                self._uncounted = 0
                for one in self.messages:
                    one.pieces()
