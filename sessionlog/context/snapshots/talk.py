"""The conversation of a session, put together from requests that hold all of it, or only what is new.

What was known keeps the time it came, and an answer what it used, however often it is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sessionlog.context.snapshots.splices import placed, splice
from sessionlog.messages.entry import Entry
from sessionlog.messages.read import read_entry, read_result

Json = Any


class Talk:
    """The messages so far, each beside its JSON as it was sent; what no request has sent yet has none.

    A request that only goes on costs what it adds, however long the session is.
    """

    def __init__(self) -> None:
        self._said: list[tuple[Json, Entry]] = []
        self._prompts: list[str] = []
        self._heard = 0  # how many messages `_prompts` is made of
        self._told = 0  # how many messages requests have sent

    @property
    def messages(self) -> list[Entry]:
        """All of it, oldest first."""
        return [message for _, message in self._said]

    def listen(self, given: Iterable[Json], earlier: int, ts: str | None) -> None:
        """Take the messages of a request, behind so many that it does not repeat."""
        said, place = self._said, min(earlier, len(self._said))
        for raw in given:
            known, before = said[place] if place < len(said) else (None, None)
            if before is None:
                message = read_entry(raw)
                said.append((raw, replace(message, timestamp=message.timestamp or ts)))
            elif known is None or known != raw:
                message = read_entry(raw)
                same = before if known is None and message.is_response else None
                stamp = message.timestamp or (same.timestamp if same else ts)
                usage = message.usage or (same.usage if same else None)
                said[place] = raw, replace(message, timestamp=stamp, usage=usage)
                self._changed(place)
            place += 1
        del said[place:]
        self._changed(place)
        self._told = place

    def inherit(self, given: Iterable[Json], ts: str | None) -> None:
        """Take messages that the next request does not repeat; nobody has said them just now."""
        self.listen(given, self._told, ts)
        self._heard, self._prompts = len(self._said), []

    def add(self, message: Entry) -> None:
        """Take an answer, or what a tool says; the next request may send it."""
        self._said.append((None, message))

    def take_back(self, count: int) -> None:
        """Forget the last messages."""
        del self._said[max(0, len(self._said) - count) :]
        self._told = 0
        self._changed(len(self._said))

    def cut(self, dropped: Iterable[Json], added: Iterable[Json]) -> None:
        """Forget some messages, by spans of their indexes, and put others in their place; odd spans mean nothing."""
        put_in = ((at, (message, read_entry(message))) for at, message in placed(added))
        self._said = splice(self._said, dropped, put_in)
        self._told, self._heard, self._prompts = 0, len(self._said), []

    def compact(self, summary: str) -> None:
        """Forget all but a summary; without one the next request brings it."""
        self._said = []
        self._told = 0
        self._changed(0)
        if summary:
            self.add(read_entry({"role": "user", "content": summary}))

    def fresh_prompts(self) -> list[str]:
        """What users have said since the last answer."""
        for _, message in self._said[self._heard :]:
            if message.is_response:
                self._prompts = []
            elif message.is_prompt:
                self._prompts += [part.text for part in message.pieces if part.kind == "user"]
        self._heard = len(self._said)
        return list(self._prompts)

    def _changed(self, place: int) -> None:
        """Prompts are heard again from the last answer before a message that is another now."""
        if place < self._heard:
            last = next((n for n in range(place - 1, -1, -1) if self._said[n][1].is_response), 0)
            self._heard, self._prompts = last, []


def tool_answer(name: str, output: Json, *, call_id: str | None, failed: bool, ts: str | None) -> Entry:
    """Return the result of a tool as an entry."""
    return replace(read_result(output, call_id=call_id, name=name, failed=failed), timestamp=ts)
