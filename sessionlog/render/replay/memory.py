"""What has been shown already, so that each request shows only what is new in it.

Every request of an agent repeats the whole conversation. Three things are recognised: the prompts of session.start,
answers and tool results that were shown when they happened, and messages of an earlier request. The same words said
twice are two messages: a message is compared with the one at its place in an earlier request, not with all texts ever
seen. A history that was cut is known by its places, so that what is left of it may be told again. Memory is bounded:
digests only, of a bounded number of things.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessionlog.context.snapshots.splices import placed, shared, splice
from sessionlog.render.replay.messages import Message, Reply, read_message, reply_keys, said_keys, spelling

Json = Any
_HISTORIES = 8  # conversations side by side in one log: the main one, titles, planning, sub-agents
_LONGEST = 100_000  # messages of a history that grows piece by piece; one that is longer is shown anew
_EXPECTED = 4096  # things shown that no request has repeated yet
_MEANINGS = 20_000  # messages of which the spelling is known


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What a request adds.

    Attributes:
        messages: The new messages, in order; of one that carries several tool results only the new ones.
        left_out: Messages of the former history that this one does not have; 0 where it goes on.
        kept: Messages of the former history that this one has.
    """

    messages: tuple[Message, ...]
    left_out: int
    kept: int


class Memory:
    """Remembers what was shown. `expect` is told of each thing shown; `news` asks what of a request is new."""

    __slots__ = ("_expected", "_histories", "_is_cut", "_left", "_meanings", "_unsent")

    def __init__(self) -> None:
        self._expected: Counter[bytes] = Counter()
        self._histories: deque[list[bytes]] = deque(maxlen=_HISTORIES)
        self._meanings: dict[bytes, bytes] = {}
        self._unsent = 0  # messages since the last request
        self._is_cut = False
        self._left: Counter[bytes] = Counter()  # of a history that was cut, what was not told again yet

    @property
    def is_cut(self) -> bool:
        """The history was shortened, and no request has told it since."""
        return self._is_cut

    def heard(self) -> None:
        """Count a message behind the latest history, which a request may repeat."""
        self._unsent += 1

    def expect(self, keys: Sequence[bytes]) -> None:
        """Note something that has been shown and that a later request will repeat."""
        self._expected.update(keys)
        while len(self._expected) > _EXPECTED:
            del self._expected[next(iter(self._expected))]

    def news(self, messages: Sequence[Json], *, earlier: int = 0) -> News:
        """Return what of a request's messages has not been shown yet, and remember it as shown.

        A request that goes on from `earlier` messages of the one before holds only what is new.
        """
        identities = list(map(self._identity, messages))
        left, is_cut, self._left, self._is_cut, self._unsent = self._left, self._is_cut, Counter(), False, 0
        if earlier:
            self._put(identities, earlier)
            return News(messages=tuple(self._other(messages, identities, 0, left)), left_out=0, kept=0)
        former, common = self._closest(identities)
        dropped = Counter(former[common:])
        new = self._other(messages, identities, common, dropped)
        if common == len(former) and former:
            self._histories.remove(former)
        self._histories.append(identities)
        left_out = 0 if is_cut else dropped.total()
        return News(messages=tuple(new), left_out=left_out, kept=len(former) - left_out)

    def retold(self, messages: Sequence[Json]) -> tuple[Message, ...]:
        """Return what is new in messages that are told beside requests, which do not repeat them."""
        latest = self._latest
        identities, place = list(map(self._identity, messages)), 0 if self._is_cut else len(latest)
        common = shared(latest[place:], identities)
        known = Counter(latest[place + common :]) + self._left
        new = self._other(messages, identities, common, known)
        self._put(identities, place)
        self._left, self._is_cut, self._unsent = known, False, 0
        return tuple(new)

    def take_back(self, count: int | None = None) -> None:
        """Forget the last messages of the history, None for all; the others are told again."""
        latest, sent = self._latest, 0 if count is None else max(0, count - self._unsent)
        kept = [] if count is None else latest[: max(0, len(latest) - sent)]
        self._unsent = 0 if count is None else max(0, self._unsent - count)
        self._begin(kept)

    def cut(self, dropped: Sequence[Json], added: Sequence[Json]) -> None:
        """Forget messages of the history by spans of their places, and know others in their place."""
        self._begin(splice(self._latest, dropped, ((at, self._identity(message)) for at, message in placed(added))))

    def _begin(self, kept: list[bytes]) -> None:
        self._histories.clear()
        self._histories.append(kept)
        self._left, self._is_cut = Counter(), True

    @property
    def _latest(self) -> list[bytes]:
        if not self._histories:
            self._histories.append([])
        return self._histories[-1]

    def _put(self, identities: Sequence[bytes], place: int) -> None:
        """Remember messages as shown, behind so many of the latest history."""
        latest = self._latest[:place]
        self._histories[-1] = [*latest, *identities] if len(latest) + len(identities) <= _LONGEST else []

    def _other(
        self, messages: Sequence[Json], identities: Sequence[bytes], begin: int, known: Counter[bytes]
    ) -> list[Message]:
        """The messages from a place on, less what is known, which is ticked off, and less what was shown."""
        new: list[Message] = []
        for place in range(begin, len(messages)):
            if known[identities[place]] > 0:
                known[identities[place]] -= 1
            elif (left := self._unseen(read_message(messages[place], place))) is not None:
                new.append(left)
        return new

    def _identity(self, message: Json) -> bytes:
        """What a message means; reading it once for each of its spellings is enough."""
        spelled = spelling(message)
        meaning = self._meanings.get(spelled)
        if meaning is None:
            meaning = self._meanings[spelled] = read_message(message).identity
            if len(self._meanings) > _MEANINGS:
                del self._meanings[next(iter(self._meanings))]
        return meaning

    def _closest(self, identities: Sequence[bytes]) -> tuple[list[bytes], int]:
        """The remembered history with the longest common beginning, the latest of equals."""
        best = self._histories[-1] if self._histories else []
        longest = 0
        for history in self._histories:
            common = shared(history, identities)
            if common and common >= longest:
                best, longest = history, common
        return best, longest

    def _unseen(self, message: Message) -> Message | None:
        """The message less what was shown when it happened; None when nothing is left."""
        replies = tuple(reply for reply in message.replies if not self._seen_reply(reply))
        said = message.text.strip() or message.calls
        if said and not self._take(said_keys(message.role, message.text, message.calls)):
            return replace(message, replies=replies)
        return replace(message, text="", calls=(), replies=replies) if replies else None

    def _seen_reply(self, reply: Reply) -> bool:
        return self._take(reply_keys(reply.id, reply.text))

    def _take(self, keys: Sequence[bytes]) -> bool:
        """Whether one of `keys` was expected; all of them are ticked off, since they mean the same thing."""
        known = [key for key in keys if self._expected[key] > 0]
        for key in known:
            self._expected[key] -= 1
            if not self._expected[key]:
                del self._expected[key]
        return bool(known)
