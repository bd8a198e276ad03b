"""Find the new messages of a request, although requests repeat the conversation.

Answers and tool results are expected again from the moment they are logged. A request with a whole prompt is compared
with the conversations before it, position by position, so that the same text sent twice is two messages. Only digests
are kept, and a bounded number of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessionlog.transcript.digests import Digests, has_content, keys_of
from sessionlog.transcript.splice import Added

_MAX_FORMER = 8  # conversations side by side in one log: the main one, titles, planning
_MAX_EXPECTED = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class Conversation:
    """One conversation of a log, which may hold several.

    Attributes:
        digests: Of its elements.
        turns: Its turns so far: a fork's own, and all.
    """

    digests: list[Digests]
    turns: tuple[int, int]


class SeenMessages:
    """Finds the messages that no earlier event or request holds."""

    def __init__(self) -> None:
        self._expected: dict[bytes, int] = {}
        self._former: deque[Conversation] = deque(maxlen=_MAX_FORMER)

    def expect(self, *keys: bytes) -> None:
        """Note the keys of a message that a request will repeat."""
        for key in keys:
            self._expected[key] = self._expected.get(key, 0) + 1
        while len(self._expected) > _MAX_EXPECTED:
            del self._expected[next(iter(self._expected))]

    def forget(self, *keys: bytes) -> None:
        """Expect each of these keys one time less."""
        for key in keys:
            times = self._expected.get(key, 0)
            if times > 1:
                self._expected[key] = times - 1
            else:
                self._expected.pop(key, None)

    def keep_aside(self, conversation: Conversation) -> None:
        """Keep a conversation that another one replaces, because a later request may return to it."""
        self._former.append(conversation)

    def closest(self, current: Conversation, asked: Sequence[Digests]) -> tuple[Conversation, int]:
        """Return the conversation with the longest common beginning (the latest of equals), and the beginning's length.

        A kept conversation that is repeated completely is dropped from the kept ones.
        """
        best, longest = current, common_length(current.digests, asked)
        for former in reversed(self._former):
            common = common_length(former.digests, asked)
            if common > longest:
                best, longest = former, common
        if best is not current and longest == len(best.digests):
            self._former.remove(best)
        return best, longest

    def mark_new(self, added: Iterable[Added], known: Counter[Digests]) -> None:
        """Set `new` of the elements that are not in `known`; subtract the others from `known`."""
        for one in added:
            if known and known[one.digests] > 0:
                known[one.digests] -= 1
            elif one.role:
                if one.text.strip() and self._are_new(one.digests):
                    one.mark_new()
            else:
                messages = zip(one.entry.messages, one.digests, strict=True)
                one.new = tuple(
                    message
                    for message, digest in messages
                    if has_content(message) and self._are_new(keys_of(message, digest))
                )

    def _are_new(self, keys: Iterable[bytes]) -> bool:
        """Whether no key is expected; those that are have come."""
        known = [key for key in keys if key in self._expected]
        self.forget(*known)
        return not known


def common_length(one: Sequence[object], other: Sequence[object]) -> int:
    """Return the length of the common beginning."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
