"""The conversation of a session, put together from requests that hold all of it, or only what is new.

What was known keeps the time it came, and an answer what it used, however often it is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sessionlog.context.snapshots.messages import Message, Part, read_message

Json = Any


class Talk:
    """The messages so far, each beside its JSON as it was sent; what no request has sent yet has none."""

    def __init__(self) -> None:
        self._said: list[tuple[Json, Message]] = []

    @property
    def messages(self) -> list[Message]:
        """All of it, oldest first."""
        return [message for _, message in self._said]

    def listen(self, given: Iterable[Json], earlier: int, ts: str | None) -> None:
        """Take the messages of a request, behind so many that it does not repeat."""
        old = self._said
        said = old[:earlier]
        for raw in given:
            known, before = old[len(said)] if len(said) < len(old) else (None, None)
            if before is not None and known is not None and known == raw:
                said.append((raw, before))
                continue
            message = read_message(raw)
            same = before if before is not None and known is None and message.is_response else None
            stamp = message.timestamp or (same.timestamp if same else ts)
            usage = message.usage or (same.usage if same else None)
            said.append((raw, replace(message, timestamp=stamp, usage=usage)))
        self._said = said

    def add(self, message: Message) -> None:
        """Take an answer, or what a tool says; the next request may send it."""
        self._said.append((None, message))

    def compact(self, summary: str) -> None:
        """Forget all but a summary; without one the next request brings it."""
        self._said = []
        if summary:
            self.add(read_message({"role": "user", "content": summary}))

    def fresh_prompts(self) -> tuple[str, ...]:
        """What users have said since the last answer."""
        messages = self.messages
        last = next((n for n in range(len(messages) - 1, -1, -1) if messages[n].is_response), -1)
        new = [message for message in messages[last + 1 :] if message.is_prompt]
        return tuple(part.text for message in new for part in message.parts if part.kind == "user")


def tool_answer(name: str, text: str, *, call_id: str | None, failed: bool, ts: str | None) -> Message:
    """Return what a tool says as a message."""
    part = Part(kind="tool_return", text=text, name=name, call_id=call_id, failed=failed)
    return Message(is_response=False, parts=(part,), timestamp=ts)
