"""Points: the metrics of the GenAI conventions for requests, as deltas of their own past times.

There is one point for each hour, model and program of a batch. A request adds what it has used since it was last sent,
so that no token is counted twice while its answer grows. Its duration counts once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)

from sessionlog.export.items import Request, State
from sessionlog.export.spans import SCOPE, request_names, resource_of

_PREFIX = "gen_ai.client.inference"
_COUNTERS: Mapping[str, str] = {
    "input_tokens": "Input tokens, cached ones included",
    "output_tokens": "Output tokens, reasoning included",
    "cache_read.input_tokens": "Input tokens read from a cache",
    "cache_write.input_tokens": "Input tokens written to a cache",
    "reasoning.output_tokens": "Output tokens of reasoning",
}
BOUNDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Seconds; the conventions' boundaries of durations."""

_HOUR_NS = 3600 * 1_000_000_000
_DELTA = AggregationTemporality.DELTA
Names = tuple[tuple[str, str | int], ...]


class _Series:
    """The requests of one hour with the same names.

    Attributes:
        start_ns: The earliest of their beginnings.
        end_ns: The latest of their ends.
        counts: Tokens, in the order of the counters.
        seconds: Durations by whether the requests failed.
    """

    __slots__ = ("counts", "end_ns", "seconds", "start_ns")

    def __init__(self) -> None:
        self.start_ns, self.end_ns = 1 << 63, 0
        self.counts = [0] * len(_COUNTERS)
        self.seconds: dict[bool, list[float]] = {}

    def add(self, item: Request, before: State | None) -> None:
        """Add a request, less what was sent of it before."""
        self.start_ns, self.end_ns = min(self.start_ns, item.start_ns), max(self.end_ns, item.end_ns)
        now, earlier = _included(item.state[3:]), _included(before[3:]) if before else [0] * len(_COUNTERS)
        self.counts = [count + max(0, new - old) for count, new, old in zip(self.counts, now, earlier, strict=True)]
        if before is None and item.end_ns > item.start_ns:
            self.seconds.setdefault(item.failed, []).append((item.end_ns - item.start_ns) / 1e9)


def metrics_of(requests: Iterable[tuple[Request, State | None]]) -> MetricsData:
    """Return the metrics of requests, each with the state in which it was sent before."""
    found: dict[str, dict[tuple[int, Names], _Series]] = {}
    for item, before in requests:
        names = tuple(request_names(item).items())
        series = found.setdefault(item.harness, {}).setdefault((item.end_ns // _HOUR_NS, names), _Series())
        series.add(item, before)
    resources = [_resource(service, series) for service, series in found.items()]
    return MetricsData([one for one in resources if one.scope_metrics[0].metrics])


def count_points(metrics: MetricsData) -> int:
    """Return the number of data points."""
    scopes = (scope for resource in metrics.resource_metrics for scope in resource.scope_metrics)
    return sum(len(metric.data.data_points) for scope in scopes for metric in scope.metrics)


def _included(counts: Sequence[int]) -> list[int]:
    """Return disjoint counts in the order of the counters: the input with what was cached."""
    given, output, cache_read, cache_write, reasoning = counts
    return [given + cache_read + cache_write, output, cache_read, cache_write, reasoning]


def _resource(service: str, found: Mapping[tuple[int, Names], _Series]) -> ResourceMetrics:
    metrics = []
    for index, (name, description) in enumerate(_COUNTERS.items()):
        points = [
            NumberDataPoint(dict(names), *_interval(series), series.counts[index])
            for (_, names), series in found.items()
            if series.counts[index]
        ]
        data = Sum(points, _DELTA, is_monotonic=True)
        metrics += [Metric(f"{_PREFIX}.usage.{name}", description, "{token}", data)] if points else []
    durations = [
        _histogram(dict(names) | ({"error.type": "_OTHER"} if failed else {}), series, seconds)
        for (_, names), series in found.items()
        for failed, seconds in series.seconds.items()
    ]
    if durations:
        metrics.append(Metric(f"{_PREFIX}.duration", "Duration of requests", "s", Histogram(durations, _DELTA)))
    return ResourceMetrics(resource_of(service), [ScopeMetrics(SCOPE, metrics, "")], "")


def _histogram(names: Mapping[str, str | int], series: _Series, seconds: Sequence[float]) -> HistogramDataPoint:
    buckets = [0] * (len(BOUNDS) + 1)
    for one in seconds:
        buckets[bisect_left(BOUNDS, one)] += 1
    return HistogramDataPoint(
        names, *_interval(series), len(seconds), sum(seconds), buckets, BOUNDS, min(seconds), max(seconds)
    )


def _interval(series: _Series) -> tuple[int, int]:
    """Return a point's time: OpenTelemetry's intervals are not empty."""
    return min(series.start_ns, series.end_ns - 1), series.end_ns
