"""Matcher: finds the recording of a request, gives each recording once, and explains where there is none.

Of equal requests each recording is given once, in the order of the log. Threads may ask at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.errors import ReplayMiss
from sessionlog.locks import RLock
from sessionlog.testing.replay.difference import find_nearest, first_difference, shorten
from sessionlog.testing.replay.recording import Recording
from sessionlog.testing.replay.request import PARTS, Request, without_system

By = Literal["key", "order"]
_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a replay answers, and how it finds the answer.

    Attributes:
        path: The log.
        recordings: Its recordings, in order.
        left_out: Parts of requests that are not compared.
        by: `key`: equal requests; `order`: the next recording, whatever is asked.
        live: What answers after the last recording; None if nothing does.
        damaged: Pieces of the log that could not be read.
    """

    path: str
    recordings: tuple[Recording, ...]
    left_out: tuple[str, ...] = ()
    by: By = "key"
    live: Any = None
    damaged: int = 0


class Matcher:
    """Finds recordings.

    Attributes:
        rules: What it answers.
        misses: The requests that no recording was for, as errors.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.misses: tuple[ReplayMiss, ...] = ()
        self._given: set[int] = set()
        self._lock = RLock()

    @property
    def unused(self) -> tuple[Recording, ...]:
        """The recordings that were not asked for."""
        return tuple(one for one in self.rules.recordings if one.number not in self._given)

    def find(self, request: Request, *, unknown: Iterable[str] = ()) -> Recording | None:
        """Return the recording of a request, and count it as given; None if something live answers.

        Args:
            request: What is asked.
            unknown: Parts that it does not show; they are not compared.

        Raises:
            ReplayMiss: There is none.
        """
        rules = self.rules
        parts = [part for part in PARTS if part not in (*rules.left_out, *unknown)]
        if "system" in rules.left_out:
            request = without_system(request)
        with self._lock:
            unused = self.unused
            same = iter(unused) if rules.by == "order" else _same(unused, request, parts)
            found = next(same, None)
            if found is not None:
                self._given.add(found.number)
            elif rules.live is None or unused:
                raise self.miss("\n".join(self._explain(request, parts)))
            return found

    def miss(self, text: str) -> ReplayMiss:
        """Return an error, which `check` raises as well: the code under test may catch it."""
        miss = ReplayMiss(text)
        self.misses += (miss,)
        return miss

    def check(self, *, all_used: bool) -> None:
        """Raise the first miss; with `all_used`, also if there are recordings that were not asked for."""
        if self.misses:
            raise self.misses[0]
        unused = self.unused if all_used else ()
        if unused:
            count = f"{len(unused)} of {len(self.rules.recordings)}"
            lines = [f"{self.rules.path}: {count} recordings were not asked for"]
            lines += [f"  {one.number}: {shorten(one.prompt)}" for one in unused[:_LISTED]]
            lines += [f"  and {len(unused) - _LISTED} more"] if len(unused) > _LISTED else []
            raise ReplayMiss("\n".join(lines))

    def _explain(self, request: Request, parts: Sequence[str]) -> Iterator[str]:
        """Yield the lines of a miss: what was sent, the nearest recording, and where they differ."""
        path, recordings, count = self.rules.path, self.rules.recordings, len(self.rules.recordings)
        if self.rules.by == "order":
            yield f"{path}: all {count} recordings were given; sent after them: {shorten(request.prompt)}"
            return
        yield f"{path} has no recording of this request: {shorten(request.prompt)}"
        same = [str(one.number) for one in _same(recordings, request, parts)]
        nearest = find_nearest(recordings, request, parts)
        if same:
            yield f"  it is recording {', '.join(same)} of {count}, which was given before; each is given once"
        elif nearest is not None and nearest.request is not None:
            yield f"  nearest is recording {nearest.number} of {count}: {shorten(nearest.prompt)}"
            yield f"  {first_difference(nearest.request, request, parts)}"
        hidden = sum(one.request is None for one in recordings)
        if hidden:
            yield f"  the log does not show the requests of {hidden} recordings; by='order' gives these as well"
        if self.rules.damaged:
            yield f"  damaged pieces of the log: {self.rules.damaged}; see `sessionlog check {path}`"
        left_out = [part for part in PARTS if part not in parts]
        if left_out:
            yield f"  not compared: {', '.join(left_out)}"
        yield "  if the change is meant, record the log again (pytest --sessionlog-record)"


def _same(recordings: Iterable[Recording], request: Request, parts: Sequence[str]) -> Iterator[Recording]:
    key = request.key(parts)
    for one in recordings:
        asked = one.request
        if asked is not None and len(asked.messages) == len(request.messages) and asked.key(parts) == key:
            yield one
