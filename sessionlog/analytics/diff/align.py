"""Align the messages of two sessions by their digests, in bounded time.

Messages that occur once on both sides, in the same order, are anchors; the messages between anchors are compared with
difflib only if that is cheap. Ten thousand messages per side take a moment, also if all are equal or none.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import overload

from sessionlog.analytics.diff.message import DiffMessage
from sessionlog.analytics.diff.message_list import MessageList
from sessionlog.transcript.seen import common_length

_CLOSE = 6_000  # pairs of equal elements, the measure of difflib's work
_NEAR = 8  # messages
_Kind = tuple[str, str, int]  # the role, the tool, and the turn relative to the last equal message
_Places = Sequence[int]
_NONE = -1
_KINDS = ("same", "changed", "left", "right")
_Run = tuple[int, int, int]  # its start on the left, its start on the right, and its length


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two aligned messages, or a message of one side alone.

    Attributes:
        left: The left session's message; None if it has none here.
        right: The right session's message; None if it has none here.
    """

    left: DiffMessage | None = None
    right: DiffMessage | None = None

    @property
    def kind(self) -> str:
        """`same`, `changed`, `left` or `right`."""
        if self.left is None or self.right is None:
            return "left" if self.right is None else "right"
        return "same" if self.left.digest == self.right.digest else "changed"


class Pairs(Sequence[Pair]):
    """Pairs in order; only the places of their messages are kept."""

    def __init__(self, left: MessageList, right: MessageList) -> None:
        """Begin without pairs of these messages."""
        self._left, self._right = left, right
        self._places = array("q"), array("q")  # of the left and the right messages; `_NONE` for none
        self._kinds = bytearray()  # of each pair, by its index in `_KINDS`

    def append(self, left: int, right: int) -> None:
        """Append a pair of messages by their places; `_NONE` for none."""
        if _NONE in (left, right):
            kind = "left" if right == _NONE else "right"
        else:
            kind = "same" if self._left.digests[left] == self._right.digests[right] else "changed"
        for places, place in zip(self._places, (left, right), strict=True):
            places.append(place)
        self._kinds.append(_KINDS.index(kind))

    def extend_same(self, left: _Places, right: _Places) -> None:
        """Append pairs of equal messages."""
        for places, more in zip(self._places, (left, right), strict=True):
            places.extend(more)
        self._kinds += bytes(len(left))

    @property
    def common(self) -> int:
        """The number of equal messages before the first other pair."""
        return len(self._kinds) - len(self._kinds.lstrip(b"\0"))

    def counts(self) -> dict[str, int]:
        """Return the number of pairs of each kind."""
        return {kind: self._kinds.count(code) for code, kind in enumerate(_KINDS)}

    def kinds(self) -> Iterator[str]:
        """Yield the kind of each pair (see `Pair.kind`), without reading its messages."""
        return map(_KINDS.__getitem__, self._kinds)

    def __len__(self) -> int:
        return len(self._places[0])

    def __iter__(self) -> Iterator[Pair]:
        return map(self._pair, *self._places)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> Pairs: ...
    def __getitem__(self, index: int | slice) -> Pair | Pairs:
        left, right = self._places
        if not isinstance(index, slice):
            return self._pair(left[index], right[index])
        part = Pairs(self._left, self._right)
        part._places, part._kinds = (left[index], right[index]), self._kinds[index]
        return part

    def _pair(self, left: int, right: int) -> Pair:
        return Pair(
            left=None if left == _NONE else self._left[left], right=None if right == _NONE else self._right[right]
        )


def align(
    left: MessageList, right: MessageList, *, ours: _Places | None = None, theirs: _Places | None = None
) -> Pairs:
    """Return all messages of both sides in order, each paired with the equal or corresponding one of the other side.

    Args:
        left: The messages of the left session.
        right: Those of the right one.
        ours: The places of the left messages to align; None for all.
        theirs: Those of the right messages.
    """
    ours, theirs = (range(len(side)) if some is None else some for side, some in ((left, ours), (right, theirs)))
    pairs = Pairs(left, right)
    turns = 0, 0
    digests = [left.digests[place] for place in ours], [right.digests[place] for place in theirs]
    for gap, same in _walk(ours, theirs, _matches(*digests)):
        _gap(pairs, left, right, gap, turns)
        pairs.extend_same(*same)
        if same[0]:
            turns = left.turns[same[0][-1]], right.turns[same[1][-1]]
    return pairs


def _walk(
    left: _Places, right: _Places, runs: Sequence[_Run]
) -> Iterator[tuple[tuple[_Places, _Places], tuple[_Places, _Places]]]:
    """Yield for each run the messages before it on the left and on the right, and its own; last the rest."""
    done_left = done_right = 0
    for start, other, size in [*runs, (len(left), len(right), 0)]:
        end_left, end_right = start + size, other + size
        yield (
            (left[done_left:start], right[done_right:other]),
            (left[start:end_left], right[other:end_right]),
        )
        done_left, done_right = end_left, end_right


def _matches(left: Sequence[bytes], right: Sequence[bytes]) -> list[_Run]:
    """The runs of equal messages."""
    begin, end = _common_ends(left, right)
    last_left, last_right = len(left) - end, len(right) - end
    anchors = _anchors(left[begin:last_left], right[begin:last_right])
    found = [(0, 0, begin)]
    place = begin, begin
    for start, other, size in [*((begin + one, begin + two, 1) for one, two in anchors), (last_left, last_right, end)]:
        found += _close(left, right, place, (start, other))
        found.append((start, other, size))
        place = start + size, other + size
    return found


def _common_ends(left: Sequence[object], right: Sequence[object]) -> tuple[int, int]:
    """The lengths of the common beginning, and of the common end after it."""
    if left == right:
        return len(left), 0
    begin = common_length(left, right)
    return begin, common_length(left[begin:][::-1], right[begin:][::-1])


def _anchors(left: Sequence[bytes], right: Sequence[bytes]) -> list[tuple[int, int]]:
    """The longest chain, in the same order, of messages that occur once on both sides."""
    ours, theirs = Counter(left), Counter(right)
    places = {digest: index for index, digest in enumerate(right) if ours[digest] == theirs[digest] == 1}
    pairs = [(index, places[digest]) for index, digest in enumerate(left) if digest in places]
    ends: list[int] = []  # for each chain length, the smallest end on the right
    tops: list[int] = []  # the last pairs of those chains
    before: list[int] = []  # for each pair its predecessor in its chain; -1 for none
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(tops[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        tops[length : length + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = tops[-1] if tops else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]


def _close(
    left: Sequence[bytes], right: Sequence[bytes], start: tuple[int, int], end: tuple[int, int]
) -> Iterator[_Run]:
    """The runs of equal messages between two anchors."""
    one, other = left[start[0] : end[0]], right[start[1] : end[1]]
    if not is_little_work(one, other):
        return
    for match in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
        if match.size:
            yield start[0] + match.a, start[1] + match.b, match.size


def is_little_work(left: Sequence[object], right: Sequence[object]) -> bool:
    """Whether difflib is fast on both: elements that are repeated on both sides cost it time."""
    counts = Counter(right)
    return sum(count * counts[value] for value, count in Counter(left).items()) <= _CLOSE


def _gap(
    pairs: Pairs, left: MessageList, right: MessageList, gap: tuple[_Places, _Places], turns: tuple[int, int]
) -> None:
    """Pair the messages between equal runs by kind: role, tool and relative turn."""
    one, other = (
        [(message.role, message.tool, message.turn - turn) for message in map(side.__getitem__, places)]
        for side, places, turn in zip((left, right), gap, turns, strict=True)
    )
    for (only_left, only_right), alike in _walk(*gap, _kinds(one, other)):
        for place in only_left:
            pairs.append(place, _NONE)
        for place in only_right:
            pairs.append(_NONE, place)
        for places in zip(*alike, strict=True):
            pairs.append(*places)


def _kinds(left: Sequence[_Kind], right: Sequence[_Kind]) -> list[_Run]:
    """Pair each message with the next of its kind on the right: within `_NEAR`, or in a later turn."""
    places: dict[_Kind, list[int]] = {}
    for index, kind in enumerate(right):
        places.setdefault(kind, []).append(index)
    found: list[_Run] = []
    done = 0
    for index, kind in enumerate(left):
        there = places.get(kind, [])
        at = bisect_left(there, done)
        if at < len(there) and (there[at] - done <= _NEAR or right[there[at]][2] > right[done][2]):
            found.append((index, there[at], 1))
            done = there[at] + 1
    return found


_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_MOST = 600  # tokens between the common beginning and end up to which difflib is used
_ALIKE = 0.4
_ISLAND = 2  # equal tokens between two different ones that count as different: a blank, a comma

Pieces = tuple[tuple[str, bool], ...]
"""The pieces of a text, each with whether it differs from the other text."""


def compare_words(left: str, right: str) -> tuple[Pieces, Pieces] | None:
    """Return both texts in pieces; None if they have too little in common."""
    one, other = _TOKEN.findall(left), _TOKEN.findall(right)
    begin, end = _common_ends(one, other)
    inner, outer = one[begin : len(one) - end], other[begin : len(other) - end]
    marks, signs = [True] * len(inner), [True] * len(outer)
    if len(inner) <= _MOST and len(outer) <= _MOST and is_little_work(_words(inner), _words(outer)):
        for match in SequenceMatcher(str.isspace, inner, outer, autojunk=False).get_matching_blocks():
            if match.size > _ISLAND or any(word[:1].isalnum() for word in inner[match.a : match.a + match.size]):
                marks[match.a : match.a + match.size] = [False] * match.size
                signs[match.b : match.b + match.size] = [False] * match.size
    first, last = [False] * begin, [False] * end
    marks, signs = [*first, *marks, *last], [*first, *signs, *last]
    same = sum(len(word) for word, mark in zip(one, marks, strict=True) if not mark and not word.isspace())
    whole = max(len("".join(left.split())), len("".join(right.split())))
    return (_pieces(one, marks), _pieces(other, signs)) if same >= _ALIKE * whole else None


def _words(tokens: Sequence[str]) -> list[str]:
    """The tokens without blanks: difflib treats blanks as junk."""
    return [token for token in tokens if not token.isspace()]


def _pieces(words: Sequence[str], marks: Sequence[bool]) -> Pieces:
    runs = groupby(zip(words, marks, strict=True), lambda pair: pair[1])
    return tuple(("".join(word for word, _ in run), mark) for mark, run in runs)
