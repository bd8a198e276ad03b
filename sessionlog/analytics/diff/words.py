"""Words: which words of two texts differ, as far as the texts are alike enough for that to help a reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from sessionlog.analytics.diff.align import is_little_work
from sessionlog.transcript.seen import shared

_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_MOST = 600  # tokens between the common ends that are compared closely
_ALIKE = 0.4
_ISLAND = 2  # tokens that are the same between two that are not: a blank, a comma

Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces, each with whether it differs from the other text."""


def compare_words(left: str, right: str) -> tuple[Pieces, Pieces] | None:
    """Return both texts in pieces; None where they have too little in common."""
    one, other = _TOKEN.findall(left), _TOKEN.findall(right)
    begin = shared(one, other)
    end = shared(one[begin:][::-1], other[begin:][::-1])
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
    """What difflib compares; blanks only go along with what stands beside them."""
    return [token for token in tokens if not token.isspace()]


def _pieces(words: Sequence[str], marks: Sequence[bool]) -> Pieces:
    pieces: list[tuple[str, bool]] = []
    for word, mark in zip(words, marks, strict=True):
        if pieces and pieces[-1][1] == mark:
            pieces[-1] = pieces[-1][0] + word, mark
        else:
            pieces.append((word, mark))
    return tuple(pieces)
