"""Heard: what a log has told already, so that what every request repeats is one message and not many.

Answers and results of tools are heard when they happen, and expected to be repeated; a request that holds the whole
conversation is compared with the former ones, place by place. The same words said twice are two messages. A history
that was cut is told again from its beginning: what is left of it is known by its place, too. Only digests are kept, of
a bounded number of things.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from sessionlog.analytics.diff.said import Said
from sessionlog.context.snapshots.splices import shared, splice
from sessionlog.hashes import digest_of

_TALKS = 8  # conversations side by side in one log: the main one, titles, planning
_EXPECTED = 50_000

Message = Sequence[Said]
"""What one message of a request says: nothing, one thing, or a tool's results beside words."""


Meaning = tuple[bytes, ...]
"""The digests of what a message says, which is known by them."""


class Heard:
    """Tell it what is heard with `expect`, `cut` and `drop`; ask it what is `new`, also of what is `retold`."""

    def __init__(self) -> None:
        self._expected: Counter[bytes] = Counter()
        self._talks: deque[list[Meaning]] = deque([[]], maxlen=_TALKS)  # what requests have sent
        self._unsent: list[Message] = []  # and what was said since
        self._is_cut = False  # the history was shortened: it is told again from its beginning
        self._left: Counter[Meaning] = Counter()  # of that, what was not told again yet
        self._cleared: Counter[Meaning] = Counter()  # what may be told again although the history was cleared

    def expect(self, *message: Said) -> None:
        """Note a message that was told when it happened, whatever it says; a request may repeat it."""
        self._unsent.append(message)
        for said in message:
            self._expected.update(_keys(said))
        while len(self._expected) > _EXPECTED:
            del self._expected[next(iter(self._expected))]

    def new(self, meanings: Sequence[Meaning], read: Callable[[int], Message], earlier: int | None) -> list[Said]:
        """Return what of a request is new.

        Args:
            meanings: What each of its messages means (`meaning_of`).
            read: Gives the message of an index; most need not be read again.
            earlier: How many messages come before and are not repeated; None where it holds all there is.
        """
        left, self._left, self._cleared = self._left, Counter(), Counter()
        self._unsent, self._is_cut = [], False
        if earlier is not None:
            talk = self._talks[-1]
            del talk[earlier:]
            talk += meanings
            return self._other(meanings, 0, left, read)
        former, common = self._closest(meanings)
        new = self._other(meanings, common, Counter(former[common:]), read)
        if common == len(former):
            self._talks.remove(former)
        self._talks.append(list(meanings))
        return new

    def retold(self, meanings: Sequence[Meaning], read: Callable[[int], Message]) -> list[Said]:
        """Return what is new in messages that are told beside requests, which count them and do not repeat them."""
        if self._is_cut:
            self._send()
        talk, place = self._talks[-1], 0 if self._is_cut else len(self._talks[-1])
        common = shared(talk[place:], meanings)
        left = Counter(talk[place + common :]) + self._left + self._cleared
        new = self._other(meanings, common, left, read)
        talk[place:] = meanings
        self._left, self._unsent, self._is_cut = left - self._cleared, [], False
        return new

    def drop(self, count: int | None = None) -> list[Meaning]:
        """Forget the last messages of the conversation, and return them; None for all of them."""
        self._send()
        talk = self._talks[-1]
        place = 0 if count is None else max(0, len(talk) - count)
        gone = talk[place:]
        del talk[place:]
        for digest in chain.from_iterable(gone):
            self._tick_off(digest)
        self._cleared = Counter(gone) if count is None else Counter()
        return gone

    def cut(self, dropped: Iterable[object], added: Iterable[tuple[int, Meaning]]) -> None:
        """Take some out of the middle, by spans of their places, and put others in."""
        self._send()
        talk = self._talks[-1]
        talk[:] = splice(talk, dropped, added)

    def _send(self) -> None:
        """Take what was said since the last request for sent: what follows changes the whole history."""
        for said in chain.from_iterable(self._unsent):
            if said.role == "user":  # it may be typed again; what else there is, is told when it happens
                self._take(said)
        self._talks[-1].extend(map(meaning_of, self._unsent))
        self._unsent, self._is_cut = [], True
        self._left = Counter()

    def _other(
        self, meanings: Sequence[Meaning], begin: int, known: Counter[Meaning], read: Callable[[int], Message]
    ) -> list[Said]:
        """What is said from a place on, less what is known; that is ticked off."""
        new: list[Said] = []
        for index in range(begin, len(meanings)):
            if known[meanings[index]] > 0:
                known[meanings[index]] -= 1
            else:
                new += self._unheard(read(index))
        return new

    def _unheard(self, message: Message) -> list[Said]:
        return [said for said in message if not self._take(said)]

    def _closest(self, meanings: Sequence[Meaning]) -> tuple[list[Meaning], int]:
        """The former conversation with the longest common beginning, the latest of equals."""
        best, longest = self._talks[-1], 0
        for talk in self._talks:
            common = shared(talk, meanings)
            if common and common >= longest:
                best, longest = talk, common
        return best, longest

    def _take(self, said: Said) -> bool:
        """Whether it was expected; all that it is known by is ticked off."""
        known = [key for key in _keys(said) if self._expected[key] > 0]
        for key in known:
            self._tick_off(key)
        return bool(known)

    def _tick_off(self, key: bytes) -> None:
        if self._expected[key] > 1:
            self._expected[key] -= 1
        else:
            del self._expected[key]


def meaning_of(message: Message) -> Meaning:
    """What a message means, all of it."""
    return tuple(said.digest for said in message)


def _keys(said: Said) -> tuple[bytes, ...]:
    """What it is known by: ids survive a text that was cut, and the digest is there where no ids are."""
    if said.call_id:
        return digest_of("result", said.call_id), said.digest
    if said.calls and all(call.call_id for call in said.calls):
        return digest_of("calls", *(call.call_id for call in said.calls)), said.digest
    return (said.digest,)
