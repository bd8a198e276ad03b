"""Heard: what a log has told already, so that what every request repeats is one message and not many.

Answers and results of tools are heard when they happen, and expected to be repeated; a request that holds the whole
conversation is compared with the former ones, place by place. The same words said twice are two messages. Only digests
are kept, of a bounded number of things.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from sessionlog.analytics.diff.said import Said, digest_of

_TALKS = 8  # conversations side by side in one log: the main one, titles, planning
_EXPECTED = 50_000

Message = Sequence[Said]
"""What one message of a request says: nothing, one thing, or a tool's results beside words."""


class Heard:
    """Tell it what is heard with `expect` and `tell`; ask it what of a request is `new`."""

    def __init__(self) -> None:
        self._expected: Counter[bytes] = Counter()
        self._talks: deque[list[bytes]] = deque([[]], maxlen=_TALKS)  # what requests have sent
        self._unsent: list[Said] = []  # and what was said since

    def expect(self, said: Said) -> None:
        """Note something that was told when it happened; a request may repeat it."""
        self._unsent.append(said)
        self._expected.update(_keys(said))
        while len(self._expected) > _EXPECTED:
            del self._expected[next(iter(self._expected))]

    def new(self, digests: Sequence[bytes], read: Callable[[int], Message], earlier: int | None) -> list[Said]:
        """Return what of a request is new.

        Args:
            digests: What each of its messages means (`digest_of_all`).
            read: Gives the message of an index; most need not be read again.
            earlier: How many messages come before and are not repeated; None where it holds all there is.
        """
        self._unsent = []
        if earlier is not None:
            talk = self._talks[-1]
            del talk[earlier:]
            talk += digests
            return [said for index in range(len(digests)) for said in self._unheard(read(index))]
        former, common = self._closest(digests)
        dropped = Counter(former[common:])
        new: list[Said] = []
        for index in range(common, len(digests)):
            if dropped[digests[index]] > 0:
                dropped[digests[index]] -= 1
            else:
                new += self._unheard(read(index))
        if common == len(former):
            self._talks.remove(former)
        self._talks.append(list(digests))
        return new

    def tell(self, digests: Iterable[bytes]) -> None:
        """Note messages that requests count among the earlier ones and do not repeat."""
        self._talks[-1].extend(digests)

    def drop(self, count: int | None = None) -> None:
        """Forget the last messages of the conversation; None for all of them."""
        unsent = len(self._unsent) if count is None else min(count, len(self._unsent))
        for said in self._unsent[len(self._unsent) - unsent :]:
            self._take(said)
        del self._unsent[len(self._unsent) - unsent :]
        talk = self._talks[-1]
        del talk[0 if count is None else max(0, len(talk) - (count - unsent)) :]

    def _unheard(self, message: Message) -> list[Said]:
        return [said for said in message if not self._take(said)]

    def _closest(self, digests: Sequence[bytes]) -> tuple[list[bytes], int]:
        """The former conversation with the longest common beginning, the latest of equals."""
        best, longest = self._talks[-1], 0
        for talk in self._talks:
            common = shared(talk, digests)
            if common and common >= longest:
                best, longest = talk, common
        return best, longest

    def _take(self, said: Said) -> bool:
        """Whether it was expected; all that it is known by is ticked off."""
        known = [key for key in _keys(said) if self._expected[key] > 0]
        for key in known:
            self._expected[key] -= 1
            if not self._expected[key]:
                del self._expected[key]
        return bool(known)


def digest_of_all(message: Message) -> bytes:
    """What a message means, all of it."""
    return digest_of(*(said.digest.hex() for said in message))


def shared(one: Sequence[object], other: Sequence[object]) -> int:
    """How long the common beginning is."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))


def _keys(said: Said) -> tuple[bytes, ...]:
    """What it is known by: ids survive a text that was cut, and the digest is there where no ids are."""
    if said.call_id:
        return digest_of("result", said.call_id), said.digest
    if said.calls and all(call.call_id for call in said.calls):
        return digest_of("calls", *(call.call_id for call in said.calls)), said.digest
    return (said.digest,)
