"""The X-ray: what filled the model's window at one request of a session, part by part.

The invariant: the parts sum to the total, always. The total is what the provider counted, where the log tells, and the
parts are made to fit it (`parts` says how). Else the total is the estimate, with as much that is not in the log as the
latest request had that was counted. It is the same number in `growth`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sessionlog.context.windows import find_context_window
from sessionlog.context.xray.history import fold_history
from sessionlog.context.xray.items import Repeat, find_repeats, list_items
from sessionlog.context.xray.parts import Item, Part, fit, make_parts, missing_of, name_missing, share_out, sort_pieces
from sessionlog.context.xray.pieces import total
from sessionlog.context.xray.requests import History, Sample, Window
from sessionlog.errors import InvalidQuery, LogNotReadable, Problem
from sessionlog.events.times import format_time
from sessionlog.sources.find import name_of_session, open_target
from sessionlog.sources.protocol import Env, Log
from sessionlog.transcript.fold import OWN
from sessionlog.transcript.inherited import read_session

SCHEMA = "sessionlog.context/1"
LARGEST = 10
"""How many items and repeats the JSON document has, unless it is to be full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The size of one request of the session.

    Attributes:
        request: Its number, from 1.
        tokens: Its prompt tokens.
        reported: Whether the provider counted them; else they are estimated.
    """

    request: int
    tokens: int
    reported: bool

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
        requests: How many the log has.
        time_ns: When it was sent, UTC nanoseconds; None where that is not logged.
        model: Who was asked, "" where that is not logged.
        provider: Who served it, "" where that is not logged.
        window_tokens: The size of the model's window, None where that is not known, or disproved by what was in it.
        parts: What fills it; their tokens sum to `total_tokens`.
        total_tokens: Prompt tokens: those reported, else those estimated.
        reported_tokens: What the provider counted (input, cache reads and writes), None where it did not tell.
        estimated_tokens: The size of all that the log shows, before it was made to fit.
        cached_tokens: What was read from a cache, None where nothing is reported.
        is_whole: Whether the log holds all of the prompt.
        growth: The size of every request.
        compactions: The requests before which history was cut.
        items: All things in the window, the largest first; they sum to `total_tokens`, too.
        repeats: What is in it several times, the costliest first, in the same measure.
        is_waiting: Whether the log's last request has no answer, so that nobody counts it yet.
        session_requests: How many requests the whole session has, its sub-agents' and other logs' among them, less
            what another session counts; None where nobody asked.
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
    growth: tuple[Growth, ...]
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


def xray(
    target: str | Log,
    session: str | None = None,
    *,
    request: int | None = None,
    directory: str | None = None,
    env: Env | None = None,
) -> ContextReport:
    """Look into the window at one request of a session.

    Args:
        target: A log, its path, or a session's id, its beginning or its end.
        session: The session in a log that holds several; None for the one that `target` names, or the first.
        request: Which request, from 1; None for the last.
        directory: The folder of our own sessions, where an id is looked for first.
        env: The environment, which says where other agents write.

    Raises:
        LogNotReadable: Nothing matches, what does cannot be read, or there is no request in it.
        AmbiguousSession: Several sessions match.
        InvalidQuery: The session has no such request.
    """
    log, session = open_target(target, session, directory, env)
    history = fold_history(read_session(log, session), request=request, own=log.source.id in OWN)
    name = name_of_session(log, session)
    if not history.requests:
        raise LogNotReadable(f"{log.path}: no request to a model in it, so nothing is known of its context")
    if history.window is None:
        raise InvalidQuery(f"no request {request}: {name} has {history.requests}, numbered from 1")
    return _report(log, name, history, history.window)


def _report(log: Log, session: str, history: History, window: Window) -> ContextReport:
    sample = history.samples[window.number - 1]
    growth = tuple(_growth(history.samples, is_whole=window.is_whole))
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
        window_tokens=_size_of(window, size),
        parts=share_out(parts),
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


def _size_of(window: Window, held: int) -> int | None:
    """What the model takes in, as logged; else an alias such as `opus` is known by who answered.

    It is no less than what it held.
    """
    known = (find_context_window(name, window.provider) for name in (window.model, window.served) if name)
    return next((size for size in (window.size, *known) if size and size >= held), None)


def _growth(samples: Sequence[Sample], *, is_whole: bool) -> Iterator[Growth]:
    """The sizes in order. What the log does not hold is still there in a request that nobody counted."""
    missing = 0
    for number, sample in enumerate(samples, start=1):
        if sample.reported is not None:
            missing = missing_of(sample.estimate, sample.reported, is_whole=is_whole)
        tokens = sample.estimate + missing if sample.reported is None else sample.reported
        yield Growth(request=number, tokens=tokens, reported=sample.reported is not None)
