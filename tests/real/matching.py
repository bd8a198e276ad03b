"""Which record is which request: every request's input and cache reads are its own, whatever else a reading gets wrong.

What is left over on both sides is compared as a sum: some logs keep one sum per session, and Claude Code's `cost-state`
rows hold the requests of a compaction only as a sum.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.real.data import Home, Request, Tokens
from tests.real.reading import Reading, Record


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A request and the record of it."""

    request: Request
    record: Record

    @property
    def is_session(self) -> bool:
        """Whether the log keeps only sums, and this one's session had a single request."""
        return self.record.granularity == "session"


@dataclass(frozen=True, kw_only=True)
class Match:
    """What became of every request and every record of a home.

    Attributes:
        pairs: Requests with their records.
        missing: Requests that usage must count and does not.
        extra: Records of no request, and second records of one.
        summed: Requests that are counted only as a part of a sum.
        sums: The records that are such sums.
    """

    pairs: tuple[Pair, ...]
    missing: tuple[Request, ...]
    extra: tuple[Record, ...]
    summed: tuple[Request, ...] = ()
    sums: tuple[Record, ...] = ()

    def record_of(self, number: int, run: str) -> Record | None:
        """The record of a request."""
        found = [pair.record for pair in self.pairs if (pair.request.number, pair.request.run) == (number, run)]
        return found[0] if found else None


def match(reading: Reading) -> Match:
    """Match the records of a home with its requests; refused requests and records without tokens are left out."""
    home, pairs, extra = reading.home, [], []
    left = [request for request in home.requests if request.tokens is not None]
    for record in sorted((record for record in reading.records if record.has_tokens), key=_is_subagent_last):
        request = min(_same_input(home, left, record), key=lambda found: _distance(home, found, record), default=None)
        if request is None:
            extra.append(record)
        else:
            left.remove(request)
            pairs.append(Pair(request=request, record=record))
    missing = [request for request in left if request.is_counted]
    if missing and extra and _sum(home, missing) == _sum_records(extra):
        return Match(pairs=tuple(pairs), missing=(), extra=(), summed=tuple(missing), sums=tuple(extra))
    return Match(pairs=tuple(pairs), missing=tuple(missing), extra=tuple(extra))


def expected(home: Home, request: Request) -> Tokens:
    """The tokens that the record of a request must have."""
    tokens = request.tokens
    assert tokens is not None
    if not home.folds_cache_write:
        return tokens
    folded = tokens.input + tokens.cache_write
    return Tokens(input=folded, cache_read=tokens.cache_read, cache_write=0, output=tokens.output)


def _is_subagent_last(record: Record) -> bool:
    return record.agent != "main"


def _same_input(home: Home, requests: Iterable[Request], record: Record) -> list[Request]:
    wanted = (record.tokens.input, record.tokens.cache_read)
    return [request for request in requests if expected(home, request).classes[:2] == wanted]


def _distance(home: Home, request: Request, record: Record) -> tuple[int, float]:
    """How much of the other classes differs, then how far apart the times are."""
    pairs = zip(expected(home, request).classes, record.tokens.classes, strict=True)
    return sum(abs(one - other) for one, other in pairs), abs(request.time - (record.seconds or 0))


def _sum(home: Home, requests: Sequence[Request]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(expected(home, request).classes for request in requests), strict=True)))


def _sum_records(records: Sequence[Record]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(record.tokens.classes for record in records), strict=True)))
