"""Sent prompts: the messages of each request, assembled from pieces that the log holds separately.

Each request is described as the difference from the one before it: how many of its messages are sent again, and the
messages after them. So memory grows with the log, not with the number of requests. Pieces that none of the latest
requests names are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from sessionlog.sources.contents import measure, read_json
from sessionlog.sources.steps import PromptPart, SentRequest

Json = Any
_REQUESTS = 64
_HEADS = 32
_ROOM = 64 << 20  # bytes of messages
_ANSWERS = 2_000


class SentPrompts:
    """Collects pieces; `sent` returns what a request sent."""

    def __init__(self) -> None:
        self._messages: dict[str, Json] = {}
        self._heads: dict[str, PromptPart] = {}
        self._room = _ROOM
        self._requests: dict[str, tuple[str, ...]] = {}
        self._asked: dict[str, SentRequest] = {}
        self._named: set[str] = set()  # answers that a request has named
        self._answers: deque[dict[str, Json]] = deque(maxlen=_ANSWERS)
        self._known: tuple[str, ...] = ()  # the messages of the latest request that was returned
        self._head: PromptPart | None = None  # and its system prompt and tools

    def take(self, step: PromptPart | SentRequest) -> None:
        """Add a piece, or a request that names its pieces."""
        if isinstance(step, SentRequest):
            self._take_request(step)
        elif step.message is not None:
            self._room -= measure(step.message)
            if self._room < 0:  # pieces that no request names: the log is damaged or hostile
                self._messages, self._room = {}, _ROOM
            self._messages[step.key] = step.message
        else:
            self._heads[step.key] = step
            while len(self._heads) > _HEADS:
                del self._heads[next(key for key in self._heads if key)]

    def add_answer(self, message: dict[str, Json]) -> None:
        """Add an answer: requests name it by a key, and no piece holds it."""
        self._answers.append(message)

    @property
    def head(self) -> PromptPart | None:
        """The system prompt and tools of a request that names none."""
        return self._heads.get("")

    def sent(self, request: str, head: PromptPart | None) -> dict[str, Json] | None:
        """Return what a request sent, as the difference from the one before: `keep`, `messages`, `system`, `tools`.

        Args:
            request: Its key; one that is not known has no messages.
            head: The system prompt and tools where the request itself names none.
        """
        asked = self._asked.pop(request, None)
        found: dict[str, Json] = {}
        if asked is not None and request in self._requests:
            head = self._heads.get(asked.head, head)
            found |= self._changed(self._requests[request])
        if head is not None and head is not self._head:
            self._head = head
            found |= {"system": read_json(head.system), "tools": read_json(head.tools)}
        return found or None

    def _take_request(self, step: SentRequest) -> None:
        base = self._requests.get(step.base, ())
        if step.keep > len(base):
            return  # its base is not in this log
        keys = (*base[: step.keep], *step.messages)
        self._requests.pop(step.key, None)
        self._requests[step.key], self._asked[step.key] = keys, step
        for known in (self._requests, self._asked):
            while len(known) > _REQUESTS:
                del known[next(iter(known))]
        needed = set(self._known).union(*self._requests.values())
        self._messages = {key: message for key, message in self._messages.items() if key in needed}
        self._named &= needed
        self._room = _ROOM - sum(measure(message) for message in self._messages.values())

    def _changed(self, keys: tuple[str, ...]) -> dict[str, Json]:
        unknown = [key for key in keys if key not in self._messages and key not in self._named]
        for key, answer in zip(reversed(unknown), reversed(self._answers), strict=False):
            self._messages[key] = answer
        self._named.update(unknown)
        keep = 0
        while keep < min(len(keys), len(self._known)) and keys[keep] == self._known[keep]:
            keep += 1
        self._known = keys
        messages = [read_json(self._messages.get(key)) for key in keys[keep:]]
        return {"keep": keep, "messages": [one if isinstance(one, Mapping) else {} for one in messages]}
