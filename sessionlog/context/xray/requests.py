"""Requests: what is known of a session's requests as values, and how their pieces are named and summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sessionlog.context.xray.pieces import Piece
from sessionlog.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What is known of the size of one request.

    Attributes:
        estimate: Tokens of all that the log shows of it, estimated.
        reported: Prompt tokens as the provider counted them, None where that is not told.
        cached: How many of them came from a cache.
    """

    estimate: int
    reported: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What was sent with one request.

    Attributes:
        number: Which request of the session, from 1.
        time_ns: When it was sent, None where that is not logged.
        model: Who was asked, "" where that is not logged.
        provider: Who served it, "" where that is not logged.
        is_whole: Whether the log holds all of the prompt.
        has_prompt: Whether it holds the system prompt.
        served: Who answered, "" where that is not logged.
        size: How many tokens the model takes in, None where that is not logged.
        pieces: What the messages are made of, in order; results bear the names of their tools.
        tools: One piece for each tool definition, in order, and one for the provider's words about calling them.
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
        window: The one that was asked for, or the last; None where there is no such request.
        samples: The size of each, in order.
        compactions: The requests before which history was cut.
        is_waiting: Whether the last of them has no answer.
        problem_count: Damaged pieces of the log.
        problems: The first of them.
    """

    window: Window | None
    samples: tuple[Sample, ...]
    compactions: tuple[int, ...]
    is_waiting: bool = False
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def requests(self) -> int:
        """How many there are."""
        return len(self.samples)


def name_results(pieces: Sequence[Piece], known: Mapping[str, str]) -> list[Piece]:
    """Return the pieces, results with the name of their tool and with what the call was about.

    Args:
        pieces: In order.
        known: The tools of calls that are not among the pieces, by id.
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
        return replace(result, name=result.name or known.get(result.call_id) or "unknown")
    return replace(
        result, name=result.name or call.name, target=call.target, is_read=call.is_read, asked=call.mark
    )  # fmt: skip
