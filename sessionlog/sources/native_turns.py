"""Turns of a native log: prompts are the user's messages with text, and a turn is a prompt and all until the next one.

A request repeats the conversation, or the end of it, so a prompt occurs many times; it is recognised by a digest of its
text. The last requests that began a turn are kept, and a request is compared with them from the newest back:
- Its last prompt is theirs, and they had at least as many prompts: it is the same turn (a tool's result, a retry, a
  compaction within the turn). Requests between the two were side requests, as for a title: their turns are subtracted.
- One of its last prompts is theirs: the prompts after that are new, or as many as the count grew by, if that is more.
  Turns between the two are subtracted, unless they continued from there, too: then a prompt was replaced.
- Neither: as many prompts are new as exceed the most in any request, but at least one.
A request that holds only new messages has as many turns as prompts; one without a prompt changes nothing.

The count is wrong where logs look alike: a side request counts until the conversation continues; the same text twice in
a row from a history truncated to a fixed length is one turn, as are one-shot prompts with the same text, and possibly
alternating conversations in one log; a prompt that differs each time (with the time of day) is a new one each time.

Requests are most of a log's bytes: of each only the messages after those of the request before are parsed.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from msgspec import Raw, Struct

from sessionlog.sources.contents import first_words, read_json
from sessionlog.sources.fold_usage import later

_BACK = 4
"""How many of a request's last prompts are compared with earlier ones, so that as many may be new at once."""
_KEPT = 8
"""How many requests that began a turn are kept, so that as many side requests may follow each other."""


class Message(Struct, gc=False):
    """A message of a request."""

    role: Any = None
    content: Raw = Raw(b"null")


class Begun(Struct):
    """A request that began a turn: its last two prompts, how many it had, how many had the latest of the same turn."""

    last: int
    before: int | None
    prompts: int
    latest: int
    turns: int
    last_ns: int | None


class Turns(Struct, dict=True):
    """The prompts of one log, as far as it has been read.

    Attributes:
        count: How many there were.
        last_ns: When the last of them was sent.
        most: The most prompts in one request.
        begun: The last requests that began a turn.
    """

    count: int = 0
    last_ns: int | None = None
    most: int = 0
    begun: list[Begun] = []

    def __post_init__(self) -> None:
        # The messages of the request before, and the places and digests of the prompts in them; not stored: a resumed
        # scan parses all messages of its first request.
        self._messages: list[Message] = []
        self._prompts: list[tuple[int, int]] = []

    def add(self, messages: list[Message], time_ns: int | None, *, is_only_new: bool) -> None:
        """Count the turns that a request begins; `is_only_new`: it does not repeat the messages before."""
        known = _common(self._messages, messages)
        prompts = [one for one in self._prompts if one[0] < known]
        for place in range(known, len(messages)):
            if messages[place].role == "user":
                content = read_json(messages[place].content)
                if first_words(content):
                    prompts.append((place, _digest(content)))
        self._messages, self._prompts = messages, prompts
        if prompts:
            self._compare(len(prompts), [digest for _, digest in prompts[-_BACK:]], time_ns, is_only_new=is_only_new)

    def _compare(self, prompts: int, last: list[int], time_ns: int | None, *, is_only_new: bool) -> None:
        begun, new = self.begun, prompts
        if is_only_new and begun:
            prompts, last = prompts + begun[-1].latest, [begun[-1].last, *last]
        elif not is_only_new:
            new = self._count_new(prompts, last[::-1])
        self.most = max(self.most, prompts)
        if not new:
            begun[-1].latest = prompts
            return
        self.count += new
        self.last_ns = later(self.last_ns, time_ns)
        before = last[-2] if len(last) > 1 else None
        begun.append(Begun(last[-1], before, prompts, prompts, self.count, self.last_ns))
        del begun[:-_KEPT]

    def _count_new(self, prompts: int, backwards: list[int]) -> int:
        """Drop the kept requests after the one that this one continues; return how many of its prompts are new."""
        for index in range(len(self.begun) - 1, -1, -1):
            one = self.begun[index]
            is_same = one.last == backwards[0] and (
                prompts <= one.latest or (prompts == one.prompts and one.before in backwards[1:2])
            )
            if is_same or one.last in backwards[1:]:
                aside = self.begun[index + 1 :]
                del self.begun[index + 1 :]
                if is_same or all(other.before != one.last for other in aside):
                    self.count, self.last_ns = one.turns, one.last_ns
                return 0 if is_same else max(backwards.index(one.last, 1), prompts - one.prompts)
        return max(1, prompts - self.most)


def _common(before: list[Message], now: list[Message]) -> int:
    """Return the length of the common prefix of messages."""
    count = min(len(before), len(now))
    if before[:count] == now[:count]:
        return count
    return next((place for place in range(count) if before[place] != now[place]), count)


def _digest(content: Any) -> int:
    """Return a digest of a message's text that does not depend on how its line is encoded."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = " ".join(text for text in texts if isinstance(text, str))
    return zlib.crc32(content.encode("utf-8", "surrogatepass"))
