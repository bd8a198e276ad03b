"""Requests: the sizes of a session's requests, the window at one of them, and names for tool results."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar, overload

from msgspec import structs

from sessionlog.context.xray.pieces import Piece
from sessionlog.errors import Problem

T = TypeVar("T")


class Packed(Sequence[T]):
    """Small values that are kept as rows of integers, and made on access: a long session has a million."""

    def __init__(self, make: Callable[..., T], width: int, rows: Iterable[Sequence[int]]) -> None:
        """Keep the rows, each of `width` numbers, the arguments of `make`."""
        self._make, self._width, self._numbers = make, width, array("q", chain.from_iterable(rows))

    def __len__(self) -> int:
        return len(self._numbers) // self._width

    def __iter__(self) -> Iterator[T]:
        return (self._make(*row) for row in self.rows())

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Return the rows of numbers."""
        numbers = iter(self._numbers)
        return zip(*[numbers] * self._width, strict=True)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return self._make(*self._numbers[places * self._width : (places + 1) * self._width])
        return tuple(self[place] for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The size of one request.

    Attributes:
        estimate: Estimated tokens of everything that the log holds of it.
        reported: The provider's count of prompt tokens; None without one.
        cached: How many of them came from a cache.
    """

    estimate: int
    reported: int | None = None
    cached: int | None = None

    @classmethod
    def of_numbers(cls, estimate: int, reported: int, cached: int) -> Sample:
        """Return a sample; a negative number stands for None."""
        return cls(
            estimate=estimate, reported=None if reported < 0 else reported, cached=None if cached < 0 else cached
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What was sent with one request.

    Attributes:
        number: The request's number, from 1.
        time_ns: When it was sent; None if not logged.
        model: The requested model; "" if not logged.
        provider: The provider; "" if not logged.
        is_whole: Whether the log holds the whole prompt.
        has_prompt: Whether the log holds the system prompt.
        served: The model that answered; "" if not logged.
        size: The model's window in tokens; None if not logged.
        pieces: The pieces of the messages, in order; results have the names of their tools.
        tools: One piece per tool definition, in order, and one for the provider's instructions for calling them.
    """

    number: int
    time_ns: int | None
    model: str
    provider: str
    is_whole: bool
    has_prompt: bool
    served: str = ""
    size: int | None = None
    pieces: tuple[Piece, ...] = ()
    tools: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A session's requests, and the window at one of them.

    Attributes:
        window: That of the selected request; None if there is no such request.
        samples: The size of each request, in order.
        compactions: The numbers of the requests that follow a compaction.
        is_waiting: Whether the last request has no answer.
        problem_count: Damaged pieces of the log.
        problems: The first of them.
    """

    window: Window | None
    samples: Packed[Sample]
    compactions: tuple[int, ...]
    is_waiting: bool = False
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def requests(self) -> int:
        """The number of requests."""
        return len(self.samples)


def name_results(pieces: Sequence[Piece], known: Mapping[str, str]) -> list[Piece]:
    """Return the pieces; results get the name of their tool, and target and digest of their call.

    Args:
        pieces: In order.
        known: Call id → tool, for calls that are not among the pieces.
    """
    calls: dict[str, Piece] = {}
    named = []
    for piece in pieces:
        if piece.kind == "call" and piece.call_id:
            calls[piece.call_id] = piece
        named.append(_named(piece, calls.get(piece.call_id), known) if piece.kind == "result" else piece)
    return named


def _named(result: Piece, call: Piece | None, known: Mapping[str, str]) -> Piece:
    if call is None:
        return structs.replace(result, name=result.name or known.get(result.call_id) or "unknown")
    return structs.replace(
        result, name=result.name or call.name, target=call.target, is_read=call.is_read, call_digest=call.digest
    )
