"""How routing looks: decisions, pins against them, and compactions of the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.events.payloads import Override, RoutingStickyState, RoutingUtilizationState
from sessionlog.render.replay.blocks import Compacted, Pinned, Routed
from sessionlog.render.replay.exact import compact_json
from sessionlog.render.replay.figures import count, counted
from sessionlog.render.replay.lines import Line, Span, body, clipped, failure, head, joined, row, span, told, words
from sessionlog.render.replay.view import View

Json = Any
_AXES = ("harness", "provider", "model")
_CANDIDATES = 5


def routed(view: View, block: Routed) -> Iterator[Line]:
    """A router's decision: what it chose and why, then the candidates."""
    chosen = block.decision
    names = [words(name) for name in (chosen.harness, chosen.provider, chosen.model) if name]
    yield clipped((Span("⇢ route  ", "title"), Span(" / ".join(name.text for name in names))), view.width)
    yield from body(view, chosen.reason or "", view.limits.prose, indent=2, style="note")
    asked = (chosen.requested_harness, chosen.requested_provider, chosen.requested_model)
    facts = {
        "  requested": [words(f"{axis} {name}") for axis, name in zip(_AXES, asked, strict=True) if name],
        "  server": [
            words(f"endpoint {chosen.endpoint}" if chosen.endpoint else ""),
            words(f"instance {chosen.server_instance}" if chosen.server_instance else ""),
        ],
        "  sticky": sticky_parts(chosen.sticky),
        "  utilization": load_parts(chosen.utilization),
    }
    for label, parts in facts.items():
        yield from row(view, label, parts)
    yield from _candidates(view, [c for c in chosen.candidates or () if isinstance(c, Mapping)])


def pinned(view: View, block: Pinned) -> Iterator[Line]:
    """A person's pin, and whether routing would have chosen the same."""
    override = block.override
    label = "⇄ override " if block.rejected is None else "⇄ rejected override "
    yield from told(view, (Span(label, "title"),), _comparison(override), view.limits.prose)
    score = "" if override.auto_score is None else f"score {override.auto_score:.15g}"
    reason = f"reason: {override.reason_hint}" if override.reason_hint else ""
    outcome = override.outcome or {}
    ended = f"outcome {outcome['status']}" if isinstance(outcome.get("status"), str) else ""
    facts = joined([words(part, "note") for part in (score, reason, ended)])
    if facts:
        yield clipped((Span("  "), *facts), view.width)
    if block.rejected:
        yield from failure(view, block.rejected, view.limits.prose, indent=2)


def compacted(view: View, block: Compacted) -> Iterator[Line]:
    """A compaction: how much became how much, and the summary that stands for the rest."""
    value = block.compaction
    if not block.done:
        size = [] if value.messages_before is None else [Span(counted(view, value.messages_before, "message"), "note")]
        yield (Span("⇣ compacting", "note"), Span("  " if size else ""), *size)
        return
    failed = value.success is False or bool(value.error)
    label = Span("⇣ compaction failed" if failed else "⇣ compacted", "failed" if failed else "title")
    figures = [
        span(_shrunk(view, value.messages_before, value.messages_after, "messages")),
        span(_shrunk(view, value.tokens_before, value.tokens_after, "tokens")),
        Span("in the middle of a turn" if value.mid_turn else "", "note"),
    ]
    yield from head(view, (label,), figures)
    yield from body(view, value.error or "", view.limits.prose, indent=2, style="failed")
    yield from body(view, value.warning or "", view.limits.prose, indent=2, style="unfinished")
    yield from body(view, value.summary or "", view.limits.prose, indent=2, gutter="│ ")
    if value.file_ops:
        yield from body(view, compact_json(value.file_ops), view.limits.arguments, indent=2, style="note")


def sticky_parts(sticky: RoutingStickyState | None) -> list[Span]:
    """Whether the session stayed on the server that has its cache; nothing where the log says nothing."""
    if sticky is None or not (sticky.key_present or sticky.assignment or sticky.reason):
        return []
    return [
        Span(f"key {'present' if sticky.key_present else 'absent'}"),
        words(f"assignment {sticky.assignment or 'unknown'}"),
        words(sticky.reason or ""),
        words(f"instance {sticky.server_instance}" if sticky.server_instance else ""),
        Span(f"bonus {sticky.bonus:.15g}" if sticky.bonus else ""),
    ]


def load_parts(load: RoutingUtilizationState | None) -> list[Span]:
    """How busy the server was; nothing where the log says nothing."""
    if load is None:
        return []
    numbers = [
        (load.active_requests, "active"),
        (load.queued_requests, "queued"),
        (load.max_concurrency, "max"),
    ]
    parts = [Span(f"{number} {word}") for number, word in numbers if number is not None]
    if load.cache_pressure is not None:
        parts.append(Span(f"cache pressure {load.cache_pressure:.15g}"))
    if not parts and not load.source and not load.freshness:
        return []
    return [words(f"source {load.source or 'unknown'}"), words(load.freshness or "freshness unknown"), *parts]


def _candidates(view: View, candidates: list[Mapping[str, Json]]) -> Iterator[Line]:
    shown = len(candidates) if view.limits.prose.chars is None else _CANDIDATES
    for candidate in candidates[:shown]:
        names = " / ".join(str(candidate[axis]) for axis in _AXES if isinstance(candidate.get(axis), str))
        score, eligible = candidate.get("score"), candidate.get("eligible") is not False
        refused = candidate.get("filter_reason")
        parts = [
            words(names or compact_json(candidate)),
            words(f"score {compact_json(score)}" if isinstance(score, int | float) else ""),
            Span("" if eligible else "not eligible", "unfinished"),
            words(refused if isinstance(refused, str) else "", "unfinished"),
        ]
        yield clipped((Span("  │ ", "note"), *joined(parts)), view.width)
    if len(candidates) > shown:
        yield (Span(f"  │ … +{count(view, len(candidates) - shown)} candidates (--full)", "note"),)


def _comparison(override: Override) -> str:
    """What was pinned against what routing had chosen, the axes that differ first.

    An overridden axis without a verdict counts as disagreement, as in the routing report.
    """
    pin, auto, matches = override.user_pin or {}, override.auto_decision or {}, override.match_per_axis or {}
    named = override.axes_overridden or ()
    axes = [axis for axis in _AXES if pin.get(axis) or axis in named]
    agreed = [axis for axis in axes if (matches.get(axis) if axis in named else pin.get(axis) == auto.get(axis))]
    against = [axis for axis in axes if axis not in agreed]
    if not against:
        return f"you pinned {_values(pin, agreed) or 'nothing'}; routing had chosen the same (agrees)"
    same = f" · agrees on {_values(pin, agreed)}" if agreed else ""
    return f"you pinned {_values(pin, against)}; routing had chosen {_values(auto, against)} (disagrees){same}"


def _values(choice: Mapping[str, Json], axes: list[str]) -> str:
    return " ".join(f"{axis}={choice.get(axis) or 'nothing'}" for axis in axes)


def _shrunk(view: View, before: int | None, after: int | None, noun: str) -> str:
    if before is None and after is None:
        return ""
    sizes = [f"{'?' if size is None else count(view, size)}" for size in (before, after)]
    return f"{' → '.join(sizes)} {noun}"
