"""The context report: what filled the model's window at one request of a session, part by part.

The invariant: the parts always sum to the total. The total is the provider's count if the log has it, and the parts are
fitted to it (see `parts`). Else it is the estimate, plus as many tokens that are not in the log as at the last counted
request. `growth` has the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sessionlog.context.windows import window_for
from sessionlog.context.xray.history import fold_history
from sessionlog.context.xray.items import Repeat, find_repeats, list_items
from sessionlog.context.xray.parts import (
    Item,
    Part,
    fit,
    make_parts,
    missing_of,
    name_missing,
    sort_pieces,
    with_shares,
)
from sessionlog.context.xray.pieces import total
from sessionlog.context.xray.requests import History, Packed, Window
from sessionlog.errors import InvalidQuery, LogNotReadable, Problem
from sessionlog.events.times import format_time
from sessionlog.sources.find import name_of_session
from sessionlog.sources.protocol import Log
from sessionlog.transcript.fold import OWN
from sessionlog.transcript.inherited import read_session

SCHEMA = "sessionlog.context/1"
LARGEST = 10
"""How many items and repeats the JSON document has without `full`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The size of one request of the session.

    Attributes:
        request: Its number, from 1.
        tokens: Its prompt tokens.
        reported: Whether the provider counted them; else it is an estimate.
    """

    request: int
    tokens: int
    reported: bool

    @classmethod
    def of_numbers(cls, request: int, tokens: int, reported: int) -> Growth:
        """Return the size of a request; `reported` is 0 or 1."""
        return cls(request=request, tokens=tokens, reported=bool(reported))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    """What filled the window at one request.

    Attributes:
        source: The id of the agent whose log it is.
        session: The session's id.
        path: The log.
        request: The request's number, from 1.
        requests: The number of requests in the log.
        time_ns: When it was sent, UTC nanoseconds; None if not logged.
        model: The requested model; "" if not logged.
        provider: The provider; "" if not logged.
        window_tokens: The model's window; None if unknown, or if the request was larger.
        parts: The parts of the window; their tokens sum to `total_tokens`.
        total_tokens: Prompt tokens: reported, else estimated.
        reported_tokens: The provider's count (input, cache reads and writes); None without one.
        estimated_tokens: The estimate for everything in the log, before it was fitted.
        cached_tokens: Tokens read from a cache; None if nothing is reported.
        is_whole: Whether the log holds the whole prompt.
        growth: The size of every request.
        compactions: The numbers of the requests that follow a compaction.
        items: Everything in the window, the largest first; they sum to `total_tokens`, too.
        repeats: Repeated content, that with the most spare tokens first, scaled like the parts.
        is_waiting: Whether the log's last request has no answer, and so no count, yet.
        session_requests: The number of requests in the whole session, with those of its sub-agents and other logs, and
            without those that another session counts; None if not computed.
        problem_count: Damaged pieces of the log.
        problems: The first of them.
    """

    source: str
    session: str
    path: str
    request: int
    requests: int
    time_ns: int | None
    model: str
    provider: str
    window_tokens: int | None
    parts: tuple[Part, ...]
    total_tokens: int
    reported_tokens: int | None
    estimated_tokens: int
    cached_tokens: int | None
    is_whole: bool
    growth: Sequence[Growth]
    compactions: tuple[int, ...]
    items: tuple[Item, ...]
    repeats: tuple[Repeat, ...]
    is_waiting: bool = False
    session_requests: int | None = None
    problem_count: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def is_answered(self) -> bool:
        """Whether this request has an answer."""
        return not self.is_waiting or self.request < self.requests

    @property
    def window_share(self) -> float | None:
        """The total as a share of the window."""
        return self.total_tokens / self.window_tokens if self.window_tokens else None

    @property
    def cached_share(self) -> float | None:
        """The share of the prompt that came from a cache."""
        return self.cached_tokens / self.total_tokens if self.cached_tokens is not None and self.total_tokens else None

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """Return the JSON document; `full` with every item and repeat, else with the largest."""
        most = None if full else LARGEST
        return {
            "schema": SCHEMA,
            "source": self.source,
            "session": self.session,
            "path": self.path,
            "request": self.request,
            "requests": self.requests,
            "session_requests": self.session_requests,
            "answered": self.is_answered,
            "time": None if self.time_ns is None else format_time(self.time_ns),
            "model": self.model or None,
            "provider": self.provider or None,
            "window_tokens": self.window_tokens,
            "window_share": self.window_share,
            "total_tokens": self.total_tokens,
            "reported_tokens": self.reported_tokens,
            "estimated_tokens": self.estimated_tokens,
            "cached_tokens": self.cached_tokens,
            "cached_share": self.cached_share,
            "log_holds_prompt": self.is_whole,
            "parts": [part.to_dict() for part in self.parts],
            "largest": [item.to_dict() for item in self.items[:most]],
            "repeats": [repeat.to_dict() for repeat in self.repeats[:most]],
            "growth": [point.to_dict() for point in self.growth],
            "compactions": list(self.compactions),
            "problem_count": self.problem_count,
        }


def xray(log: Log, session: str | None = None, *, request: int | None = None) -> ContextReport:
    """Report what filled the window at one request of a session.

    Args:
        log: Its log.
        session: Its id in a log that holds several; None for the first.
        request: Which request, from 1; None for the last.

    Raises:
        LogNotReadable: The log cannot be read, or has no request.
        InvalidQuery: The session has no such request.
    """
    history = fold_history(read_session(log, session), request=request, own=log.source.id in OWN)
    name = name_of_session(log, session)
    if not history.requests:
        raise LogNotReadable(f"{log.path}: no request to a model in it, so its context is unknown")
    if history.window is None:
        raise InvalidQuery(f"no request {request}: {name} has {history.requests}, numbered from 1")
    return _report(log, name, history, history.window)


def _report(log: Log, session: str, history: History, window: Window) -> ContextReport:
    sample = history.samples[window.number - 1]
    growth = Packed(Growth.of_numbers, 3, _growth(history.samples.rows(), is_whole=window.is_whole))
    size = growth[window.number - 1].tokens
    system = "system prompt" if window.has_prompt else "system messages"
    kinds = sort_pieces(window.pieces)
    fitted, missing = fit([*window.tools, *window.pieces], size, is_whole=window.is_whole)
    tools, pieces = fitted[: len(window.tools)], fitted[len(window.tools) :]
    parts = make_parts(kinds, pieces, tools, system=system)
    items = list_items(kinds, pieces, tools, system=system)
    if missing:
        has_prompt = "system" in kinds if window.is_whole else window.has_prompt
        name = name_missing(has_prompt=has_prompt, has_tools=bool(tools))
        parts.append(Part(kind="not_in_log", name=name, tokens=missing, count=0))
        items.append(Item(kind="not_in_log", name=name, tokens=missing))
    return ContextReport(
        source=log.source.id,
        session=session,
        path=log.path,
        request=window.number,
        requests=history.requests,
        time_ns=window.time_ns,
        model=window.model,
        provider=window.provider,
        window_tokens=window_for(size, window.size, models=(window.model, window.served), provider=window.provider),
        parts=with_shares(parts),
        total_tokens=sum(part.tokens for part in parts),
        reported_tokens=sample.reported,
        estimated_tokens=total(window.pieces) + total(window.tools),
        cached_tokens=sample.cached,
        is_whole=window.is_whole,
        growth=growth,
        compactions=history.compactions,
        items=tuple(sorted(items, key=lambda item: (-item.tokens, item.kind, item.name))),
        repeats=tuple(find_repeats(kinds, pieces)),
        is_waiting=history.is_waiting,
        problem_count=history.problem_count,
        problems=history.problems,
    )


def _growth(samples: Iterable[tuple[int, ...]], *, is_whole: bool) -> Iterator[tuple[int, int, int]]:
    """Yield the sizes in order, as the numbers of a `Growth`, from the numbers of samples.

    A request without a count lacks as many tokens as the last one with a count.
    """
    missing = 0
    for number, (estimate, reported, _) in enumerate(samples, start=1):
        if reported >= 0:
            missing = missing_of(estimate, reported, is_whole=is_whole)
        yield number, estimate + missing if reported < 0 else reported, reported >= 0
