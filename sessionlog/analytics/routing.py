"""Routing quality: how often the router's choice was kept, and how often people who overrode it disagreed.

Three figures, each over sessions whose first session.start lies in the window:

    auto_acceptance_rate        sessions without an override or a rejected pin ÷ sessions
    override_disagreement_rate  overrides with a pinned axis the router would have chosen otherwise ÷ overrides
    override_class_breakdown    pinned axes by kind of prompt, axis and agreement, with how those sessions ended

One file is one session, a rate without a denominator is None, and every count is a sum over files in any order.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Self

from sessionlog import files
from sessionlog.analytics.columns import Column
from sessionlog.analytics.report import Report
from sessionlog.analytics.routing_buckets import AXES, OUTCOMES
from sessionlog.analytics.routing_session import RoutingTally, SessionRouting, fold_session
from sessionlog.analytics.window import UsageWindow
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.engine import is_place
from sessionlog.errors import InvalidQuery, LogNotReadable, MissingExtra, Problem, log_problem, problems_dict
from sessionlog.events.envelope import Event
from sessionlog.reader.stream import read_events
from sessionlog.reader.walk import walk_logs

SCHEMA = "sessionlog.routing/1"


_FIGURES = (
    "total_requests", "routed_requests", "accepted_requests", "auto_acceptance_rate", "total_overrides",
    "disagreeing_overrides", "override_disagreement_rate", "undecodable_overrides", "rejected_overrides",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideClassBucket:
    """Pins of one axis on one kind of prompt.

    Attributes:
        prompt_feature_bucket: `tokens=SIZE,tools=yes|no,reasoning=WORD|none`.
        axis: `harness`, `provider` or `model`; other axes in a log are kept.
        match: Whether the router would have chosen the pinned value by itself.
        count: Pins, the sum of the outcomes.
        success_outcomes: Pins whose session succeeded.
        stalled_outcomes: Pins whose session was stopped by a limit, a budget or a timeout.
        failed_outcomes: Pins whose session ended in an error.
        cancelled_outcomes: Pins whose session a person stopped.
        unknown_outcomes: Pins whose session has no end, or an unknown status.
    """

    prompt_feature_bucket: str
    axis: str
    match: bool
    count: int
    success_outcomes: int
    stalled_outcomes: int
    failed_outcomes: int
    cancelled_outcomes: int
    unknown_outcomes: int

    @property
    def success_rate(self) -> float | None:
        """Successes among the known outcomes; None where none is known."""
        known = self.count - self.unknown_outcomes
        return self.success_outcomes / known if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingQualityScan:
    """The routing quality of some sessions. Properties have the JSON names.

    Attributes:
        window: The time window of the sessions; None is all.
        axis: The only axis in the breakdown; None is all. The rates are over all axes either way.
        routing: Counts and problems.
    """

    window: UsageWindow | None = None
    axis: str | None = None
    routing: SessionRouting = field(default_factory=SessionRouting)

    @property
    def _tally(self) -> RoutingTally:
        return self.routing.tally

    @property
    def total_requests(self) -> int:
        """Sessions, with or without a router."""
        return self._tally.requests

    @property
    def routed_requests(self) -> int:
        """Sessions whose log has a router's decision: the others have nothing to judge."""
        return self._tally.routed

    @property
    def accepted_requests(self) -> int:
        """Sessions that ran as the router chose: no override, no rejected pin."""
        return self._tally.accepted

    @property
    def override_events(self) -> tuple[Event, ...]:
        """The logged events of overrides and rejected pins, file by file; not in the JSON."""
        return self.routing.override_events

    @property
    def auto_acceptance_rate(self) -> float | None:
        """Accepted sessions ÷ sessions."""
        return _ratio(self._tally.accepted, self._tally.requests)

    @property
    def total_overrides(self) -> int:
        """Overrides that took effect and can be read."""
        return self._tally.overrides

    @property
    def disagreeing_overrides(self) -> int:
        """Overrides with at least one axis the router would have chosen otherwise."""
        return self._tally.disagreeing

    @property
    def override_disagreement_rate(self) -> float | None:
        """Disagreeing overrides ÷ overrides."""
        return _ratio(self._tally.disagreeing, self._tally.overrides)

    @property
    def undecodable_overrides(self) -> int:
        """Overrides that cannot be decoded; their sessions are not accepted, and no other count includes them."""
        return self._tally.undecodable

    @property
    def rejected_overrides(self) -> int:
        """Pins that were rejected, so that nothing ran."""
        return sum(self._tally.rejections.values())

    @property
    def override_class_breakdown(self) -> tuple[OverrideClassBucket, ...]:
        """Pinned axes of overrides, sorted by bucket, axis, disagreement first."""
        outcomes: dict[tuple[str, str, bool], Counter[str]] = {}
        for (bucket, axis, match, outcome), count in self._tally.pins.items():
            if self.axis in (None, axis):
                outcomes.setdefault((bucket, axis, match), Counter())[outcome] += count
        return tuple(
            OverrideClassBucket(
                prompt_feature_bucket=bucket,
                axis=axis,
                match=match,
                count=counts.total(),
                **{f"{outcome}_outcomes": counts[outcome] for outcome in OUTCOMES},
            )
            for (bucket, axis, match), counts in sorted(outcomes.items(), key=lambda item: item[0])
        )

    @property
    def rejected_breakdown(self) -> tuple[dict[str, Any], ...]:
        """Rejected pins by reason, the most frequent first: `{"reason", "count"}`."""
        return tuple({"reason": reason, "count": count} for reason, count in _ranked(self._tally.rejections))

    @property
    def failovers(self) -> dict[str, Any]:
        """Sessions that lost a provider: `{"sessions", "total", "by_path": [{"providers", "count"}]}`."""
        paths = [{"providers": list(providers), "count": count} for providers, count in _ranked(self._tally.paths)]
        return {"sessions": sum(self._tally.paths.values()), "total": self._tally.failovers, "by_path": paths}

    @property
    def model_changes(self) -> tuple[dict[str, Any], ...]:
        """Sessions whose model name the router resolved to another: `{"requested", "resolved", "count"}`."""
        return _changes(self._tally.model_changes, "resolved")

    @property
    def served_changes(self) -> tuple[dict[str, Any], ...]:
        """Sessions in which a provider returned another model name: `{"requested", "served", "count"}`."""
        return _changes(self._tally.served_changes, "served")

    @property
    def problems(self) -> dict[str, Any]:
        """Damage in the logs that were read: `{"count", "first": ["file:line kind detail"]}`."""
        return problems_dict(self.routing.problem_count, self.routing.first_problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of schema `sessionlog.routing/1`."""
        return {
            "schema": SCHEMA,
            "window": self.window.to_dict() if self.window else None,
            "axis": self.axis,
            **{name: getattr(self, name) for name in _FIGURES},
            "rejected_breakdown": list(self.rejected_breakdown),
            "override_class_breakdown": [asdict(bucket) for bucket in self.override_class_breakdown],
            "failovers": self.failovers,
            "model_changes": list(self.model_changes),
            "served_changes": list(self.served_changes),
            "problems": self.problems,
        }


COLUMNS = (
    Column("prompt_feature_bucket", "text", "PROMPTS"),
    Column("axis", "text", "AXIS"),
    Column("match", "flag", "AGREES"),
    Column("count", "count", "PINS"),
    *(Column(f"{outcome}_outcomes", "count", outcome.upper()) for outcome in OUTCOMES),
)
"""The columns of pins of one axis on one kind of prompt, in the order of JSON and CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingReport(Report):
    """The breakdown of a scan as rows; its JSON is the scan's, `sessionlog.routing/1`.

    Attributes:
        scan: The scan.
    """

    schema = SCHEMA
    title = "Routing quality"
    total_row = False
    columns = COLUMNS

    scan: RoutingQualityScan

    @classmethod
    def of(cls, scan: RoutingQualityScan) -> Self:
        """Return the report of a scan."""
        return cls(window=scan.window, rows=scan.override_class_breakdown, scan=scan)

    def lazy_dict(self) -> dict[str, Any]:
        """The JSON document."""
        return self.scan.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document."""
        return self.scan.to_dict()


def scan_routing_quality(
    directory: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    window: UsageWindow | str | None = None,
    axis: str | None = None,
    now: datetime | None = None,
    tz: str | tzinfo = "UTC",
    keep_events: bool = True,
    progress: Callable[[int, None], None] | None = None,
) -> RoutingQualityScan:
    """Measure the routing quality of the native sessions under some folders or files.

    Args:
        directory: One path or several; a missing or empty one has no sessions.
        window: A window or its text; None is all time.
        axis: Keep only this axis in the breakdown.
        now: The present, for a window such as `7d`.
        tz: The time zone of a window's text.
        keep_events: Whether to return `override_events`; without them memory does not grow with the logs.
        progress: Called with (logs done, None), since the logs are not counted before.

    Raises:
        InvalidQuery: The axis is unknown, or a path has what machines export, which has no routing decisions.
        InvalidWindow: The window's text is outside the grammar.
    """
    if axis and axis not in AXES:
        raise InvalidQuery(f"{axis!r} is not an axis; choose one of {', '.join(AXES)}")
    if isinstance(window, str):
        window = parse_usage_window(window, now=now, tz=tz)
    given = (directory,) if isinstance(directory, str | os.PathLike) else directory
    paths = [os.fspath(path) for path in given]
    for path in paths:
        if path and is_place(path):
            raise InvalidQuery(
                f"{path}: what machines export has no routing decisions: only sessionlog's own logs have"
            )
    routing = SessionRouting()
    existing = (path for path in paths if path and files.stat_path(path) is not None)
    for done, log in enumerate(walk_logs(existing)):
        if progress is not None:
            progress(done, None)
        items = iter((log,)) if isinstance(log, Problem) else _read(log)
        path = log if isinstance(log, str) else log.path
        routing += fold_session(items, window=window, path=path, keep_events=keep_events)
    return RoutingQualityScan(window=window, axis=axis or None, routing=routing)


def _read(path: str) -> Iterator[Event | Problem]:
    """Read a log; one that cannot be read at all is a problem, and the report goes on."""
    try:
        yield from read_events(path)
    except (LogNotReadable, MissingExtra) as error:
        yield log_problem(path, error)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _ranked(counts: Mapping[Any, int]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _changes(counts: Mapping[tuple[str, str], int], became: str) -> tuple[dict[str, Any], ...]:
    return tuple({"requested": asked, became: got, "count": count} for (asked, got), count in _ranked(counts))
