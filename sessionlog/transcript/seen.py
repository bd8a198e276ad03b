"""Which messages of a request are new: requests repeat the conversation.

Answers and results of tools are noted when they happen, and expected to be repeated; a request with a whole prompt is
compared with the conversations before it, place by place: the same words said twice are two messages. Only digests are
kept, of a bounded number of things.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessionlog.messages.message import Message
from sessionlog.transcript.meaning import Meaning, keys_of, says_something
from sessionlog.transcript.splice import Added

_ASIDE = 8  # conversations side by side in one log: the main one, titles, planning
_EXPECTED = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Conversation:
    """A conversation of a log that may hold several.

    Attributes:
        meanings: What its elements mean.
        turns: How many turns there had been, a fork's own and all.
    """

    meanings: list[Meaning]
    turns: tuple[int, int]


class SeenMessages:
    """Finds the messages that no event or request before them holds."""

    def __init__(self) -> None:
        self._expected: Counter[bytes] = Counter()
        self._former: deque[Conversation] = deque(maxlen=_ASIDE)

    def expect(self, message: Message, digest: bytes) -> None:
        """Note a message that a request will repeat."""
        self._expected.update(keys_of(message, digest))
        while len(self._expected) > _EXPECTED:
            del self._expected[next(iter(self._expected))]

    def forget(self, *keys: bytes) -> None:
        """Expect these once less."""
        for key in keys:
            if self._expected[key] > 1:
                self._expected[key] -= 1
            else:
                del self._expected[key]

    def keep_aside(self, conversation: Conversation) -> None:
        """Remember a conversation that another one replaces; it may come back."""
        self._former.append(conversation)

    def closest(self, current: Conversation, asked: Sequence[Meaning]) -> tuple[Conversation, int]:
        """Return the conversation with the longest common beginning, the latest of equals, and that beginning's length.

        One that was kept aside and is wholly repeated is kept aside no longer.
        """
        best, longest = current, shared(current.meanings, asked)
        for former in reversed(self._former):
            common = shared(former.meanings, asked)
            if common > longest:
                best, longest = former, common
        if best is not current and longest == len(best.meanings):
            self._former.remove(best)
        return best, longest

    def mark_new(self, added: Iterable[Added], known: Counter[Meaning]) -> None:
        """Set `new` of the elements that are not among the known; those are ticked off."""
        for one in added:
            if known[one.meaning] > 0:
                known[one.meaning] -= 1
            else:
                messages = zip(one.entry.messages, one.meaning, strict=True)
                one.new = tuple(message for message, digest in messages if self._is_new(message, digest))

    def _is_new(self, message: Message, digest: bytes) -> bool:
        if not says_something(message):
            return False
        known = [key for key in keys_of(message, digest) if self._expected[key] > 0]
        self.forget(*known)
        return not known


def shared(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common beginning."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
