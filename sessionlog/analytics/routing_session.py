"""The routing of one session: was the router's choice kept, overridden, or failed over?

A log folds to a `RoutingTally`, and tallies add (associative, commutative, the empty tally is neutral), so that files
can be read in any order and in parallel. Only this module decides, per session:

- a session counts if its first session.start lies in the window;
- it was accepted if it has no override, readable or not, and no rejected pin;
- an override without an outcome has the outcome of the session's last session.end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sessionlog.analytics.routing_buckets import outcome_class, prompt_feature_bucket, rejection_reason
from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import Problem
from sessionlog.events.envelope import CLOSED, Event
from sessionlog.events.payload_json import payload
from sessionlog.events.payloads import Override, RejectedOverride, SessionEnd, SessionStart
from sessionlog.reader.payload_problems import override_problem

FIRST_PROBLEMS = 5
"""How many problems are named; all are counted."""

PinClass = tuple[str, str, bool, str]
"""A pin's class: prompt feature bucket, axis, whether the router agreed, outcome."""

_Pin = tuple[str, str, bool, str | None]
"""A `PinClass` whose outcome is None until the session's outcome is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTally:
    """Counts of routed sessions; `+` adds them.

    Attributes:
        requests: Sessions.
        routed: Sessions whose log has a router's decision or its results.
        accepted: Sessions without any pin.
        overrides: Readable override events.
        disagreeing: Overrides with a pinned axis that the router would have chosen otherwise.
        undecodable: Override events that could not be read.
        failovers: Changes of provider after a failure.
        pins: Pinned axes of the readable overrides, by class.
        rejections: Rejected pins by reason.
        paths: Sessions with failovers, by the providers tried in order; empty where they were not logged.
        model_changes: Sessions by (requested, resolved) model where the two differ.
        served_changes: Sessions by (requested, served) model where a provider returned another model name.
    """

    requests: int = 0
    routed: int = 0
    accepted: int = 0
    overrides: int = 0
    disagreeing: int = 0
    undecodable: int = 0
    failovers: int = 0
    pins: Mapping[PinClass, int] = field(default_factory=dict)
    rejections: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    model_changes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    served_changes: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: RoutingTally) -> RoutingTally:
        return RoutingTally(**{name: _sum(getattr(self, name), getattr(other, name)) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRouting:
    """The counts and problems of one log; `+` adds logs, in their order.

    Attributes:
        tally: Empty if the log has no session.start in the window.
        problem_count: Damage found while reading; 0 for a session outside the window.
        first_problems: The first `FIRST_PROBLEMS` of them.
        override_events: The logged events of its overrides and rejected pins, readable or not.
    """

    tally: RoutingTally = field(default_factory=RoutingTally)
    problem_count: int = 0
    first_problems: tuple[Problem, ...] = ()
    override_events: tuple[Event, ...] = ()

    def __add__(self, other: SessionRouting) -> SessionRouting:
        return SessionRouting(
            tally=self.tally + other.tally,
            problem_count=self.problem_count + other.problem_count,
            first_problems=(self.first_problems + other.first_problems)[:FIRST_PROBLEMS],
            override_events=self.override_events + other.override_events,
        )


def fold_session(
    items: Iterable[Event | Problem], *, window: UsageWindow | None = None, path: str = "", keep_events: bool = True
) -> SessionRouting:
    """Fold one log, in file order; reading stops at a first session.start outside the window.

    Args:
        items: The events of one file, with the problems found while reading.
        window: Which sessions count. A session.start without a time counts only if the window's start is open.
        path: The file, for problems found here.
        keep_events: Whether to return `override_events`; without them memory does not grow with the log.
    """
    log = _Log()
    kept: list[Event] = []
    for item in items:
        if isinstance(item, Problem):
            if item.severity == "damage":
                log.damage(item)
            continue
        if item.type == "session.start" and not log.started:
            if not _inside(window, item.time_ns):
                return SessionRouting()
            log.started, log.start = True, _as(SessionStart, item)
            continue
        if keep_events and item.type in ("override", "rejected_override"):
            kept.append(item)
        if flaw := log.take(item):
            log.damage(Problem(path=path, line=0, offset=0, kind="bad_payload", detail=flaw))
    return SessionRouting(
        tally=log.tally() if log.started else RoutingTally(),
        problem_count=log.problem_count,
        first_problems=tuple(log.first_problems),
        override_events=tuple(kept) if log.started else (),
    )


@dataclass(slots=True)
class _Log:
    """The content of one file so far. Outcomes are joined at the end: a session.end may follow its overrides."""

    started: bool = False
    decided: bool = False
    start: SessionStart | None = None
    end: SessionEnd | None = None
    overrides: int = 0
    disagreeing: int = 0
    pins: Counter[_Pin] = field(default_factory=Counter)
    undecodable: int = 0
    rejections: Counter[str] = field(default_factory=Counter)
    served: set[tuple[str, str]] = field(default_factory=set)
    problem_count: int = 0
    first_problems: list[Problem] = field(default_factory=list)

    def damage(self, problem: Problem) -> None:
        self.problem_count += 1
        if self.problem_count <= FIRST_PROBLEMS:
            self.first_problems.append(problem)

    def take(self, event: Event) -> str | None:
        """Add an event; return why it could not be decoded, or None."""
        self.decided = self.decided or event.type in _DECISIONS
        match event.type:
            case "session.end":
                end = _as(SessionEnd, event)
                self.end = self.end if end is None or end.status == CLOSED else end
            case "override":
                if flaw := override_problem(event):
                    self.undecodable += 1
                    return flaw
                pins = _pins(_as(Override, event) or Override())
                self.overrides += 1
                self.disagreeing += not all(match for _, _, match, _ in pins)
                self.pins.update(pins)
            case "rejected_override":
                rejected = _as(RejectedOverride, event) or RejectedOverride()
                self.rejections[rejection_reason(rejected.rejection_error)] += 1
            case "llm.response":
                self.served |= _served_change(event.data)
        return None

    def tally(self) -> RoutingTally:
        session_outcome = outcome_class(self.end.status if self.end else None)
        pins = Counter[PinClass]()
        for (bucket, axis, match, outcome), count in self.pins.items():
            pins[bucket, axis, match, outcome or session_outcome] += count
        providers, failovers = _failover(self.start, self.end)
        return RoutingTally(
            requests=1,
            routed=int(self.decided or _is_routed(self.start) or _is_routed(self.end)),
            accepted=int(not (self.overrides or self.undecodable or self.rejections)),
            overrides=self.overrides,
            disagreeing=self.disagreeing,
            undecodable=self.undecodable,
            failovers=failovers,
            pins=pins,
            rejections=self.rejections,
            paths={providers: 1} if failovers else {},
            model_changes=_model_change(self.start, self.end),
            served_changes=dict.fromkeys(self.served, 1),
        )


def _inside(window: UsageWindow | None, time_ns: int | None) -> bool:
    if window is None:
        return True
    return window.start_ns is None if time_ns is None else window.contains(time_ns)


def _pins(override: Override) -> list[_Pin]:
    """The pinned axes, each with whether the router agreed; an axis without a verdict did not."""
    bucket = prompt_feature_bucket(override.prompt_features)
    status = (override.outcome or {}).get("status")
    outcome = outcome_class(status) if status else None
    matches = override.match_per_axis or {}
    return [
        (bucket, axis, matches.get(axis) is True, outcome) for axis in dict.fromkeys(override.axes_overridden or ())
    ]


_DECISIONS = frozenset({"routing_decision", "override", "rejected_override"})
_ROUTED = (
    "selected_provider", "selected_route", "selected_endpoint", "requested_harness", "resolved_harness",
    "requested_model_ref", "resolved_model_ref", "attempted_providers", "failover_count", "sticky", "utilization",
)  # fmt: skip
"""Fields that only a router writes into the start or the end of a session."""


def _is_routed(block: SessionStart | SessionEnd | None) -> bool:
    return any(getattr(block, name, None) is not None for name in _ROUTED)


def _failover(start: SessionStart | None, end: SessionEnd | None) -> tuple[tuple[str, ...], int]:
    """The providers tried in order, and the number of failovers; the session's end takes precedence over its start."""
    blocks = [block for block in (end, start) if block is not None]
    tried = next((block.attempted_providers for block in blocks if block.attempted_providers), ())
    counts = (block.failover_count for block in blocks if block.failover_count is not None)
    return tried, max(0, next(counts, len(tried) - 1))


def _model_change(start: SessionStart | None, end: SessionEnd | None) -> dict[tuple[str, str], int]:
    requested = (start and start.requested_model) or (end and end.requested_model)
    resolved = (end and end.resolved_model) or (start and start.resolved_model)
    return {(requested, resolved): 1} if requested and resolved and requested != resolved else {}


def _served_change(data: Any) -> set[tuple[str, str]]:
    attempt = data.get("attempt") if isinstance(data, Mapping) else None
    if not isinstance(attempt, Mapping):
        return set()
    requested, served = attempt.get("requested_model"), attempt.get("response_model")
    if not (isinstance(requested, str) and isinstance(served, str)):
        return set()
    return {(requested, served)} if requested and served and requested != served else set()


_Value = TypeVar("_Value")


def _as(cls: type[_Value], event: Event) -> _Value | None:
    value = payload(event)
    return value if isinstance(value, cls) else None


def _sum(left: Any, right: Any) -> Any:
    """The sum of two counts, or of two mappings to counts."""
    if not left or not right:
        return left or right
    return left + right if isinstance(left, int) else Counter(left) + Counter(right)
