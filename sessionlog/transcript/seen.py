"""What of a request was said before: requests repeat the conversation, and only what is new in them is told.

Answers and results of tools are noted when they happen, and expected to be repeated; a request with a whole prompt is
compared with the conversations before it, place by place: the same words said twice are two messages. Only digests are
kept, of a bounded number of things.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from sessionlog.messages.message import Message
from sessionlog.transcript.meaning import Meaning, keys_of, says_something
from sessionlog.transcript.splice import Added

_ASIDE = 8  # conversations side by side in one log: the main one, titles, planning
_EXPECTED = 50_000


class SeenMessages:
    """Tells which messages are new."""

    def __init__(self) -> None:
        self._expected: Counter[bytes] = Counter()
        self._former: deque[list[Meaning]] = deque(maxlen=_ASIDE)

    def expect(self, *messages: Message) -> None:
        """Note messages that a request will repeat."""
        for message in messages:
            self._expected.update(keys_of(message))
        while len(self._expected) > _EXPECTED:
            del self._expected[next(iter(self._expected))]

    def forget(self, *keys: bytes) -> None:
        """Expect these once less."""
        for key in keys:
            if self._expected[key] > 1:
                self._expected[key] -= 1
            else:
                del self._expected[key]

    def keep_aside(self, conversation: list[Meaning]) -> None:
        """Remember a conversation that another one replaces; it may come back."""
        self._former.append(conversation)

    def closest(self, current: list[Meaning], asked: Sequence[Meaning]) -> tuple[list[Meaning], int]:
        """Return the conversation with the longest common beginning, the latest of equals, and that beginning's length.

        One that was kept aside and is wholly repeated is kept aside no longer.
        """
        best, longest = current, shared(current, asked)
        for former in reversed(self._former):
            common = shared(former, asked)
            if common > longest:
                best, longest = former, common
        if best is not current and longest == len(best):
            self._former.remove(best)
        return best, longest

    def mark_new(self, added: Sequence[Added], meanings: Sequence[Meaning], known: Counter[Meaning]) -> None:
        """Set `new` of the elements that are not among the known; those are ticked off."""
        for one, meaning in zip(added, meanings, strict=True):
            if known[meaning] > 0:
                known[meaning] -= 1
            else:
                one.new = tuple(message for message in one.entry.messages if self._is_new(message))

    def _is_new(self, message: Message) -> bool:
        if not says_something(message):
            return False
        known = [key for key in keys_of(message) if self._expected[key] > 0]
        self.forget(*known)
        return not known


def shared(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common beginning."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
