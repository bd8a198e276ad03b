"""Lay out a session's head, routing decisions, pins, compactions, and end with its sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.events.payloads import (
    Compaction,
    Override,
    RejectedOverride,
    Routing,
    RoutingDecision,
    RoutingStickyState,
    RoutingUtilizationState,
    SessionStart,
)
from sessionlog.ledger.schema import RUNNING_NS
from sessionlog.render.replay.blocks import SessionEndBlock, SessionStartBlock
from sessionlog.render.replay.exact import compact_json
from sessionlog.render.replay.figures import count, counted, moment, money, span_of_time, tokens
from sessionlog.render.replay.lines import (
    WORDS,
    Line,
    Span,
    View,
    body,
    clipped,
    failure,
    head,
    joined,
    labelled_text,
    row,
    rule,
    words,
)
from sessionlog.render.times import home_path

Json = Any
_AXES = ("harness", "provider", "model")
_CANDIDATES = 5
Facts = dict[str, list[Span]]


def session_head(view: View, block: SessionStartBlock) -> Iterator[Line]:
    """Yield the head: session, provider and model, time and folder; then how it was routed."""
    start = block.start or SessionStart()
    provider = start.served_by
    served = _names(provider, start.model)
    place = words(home_path(start.work_dir or "", view.home))
    yield from rule(view, [words(block.session_id or "session", "title"), served, moment(view, block.time_ns), place])
    facts: Facts = {
        "logged as": [_named("", block.logged_id, block.session_id)],
        **_routing(start, provider),
        "limit": [Span(counted(view, start.max_iterations, "iteration") if start.max_iterations else "")],
        "metadata": _pairs(view, start.metadata),
    }
    yield from _rows(view, facts)


def session_end(view: View, block: SessionEndBlock) -> Iterator[Line]:
    """Yield the end: a last output, an error, what routing changed since the start, and the sums."""
    end, start = block.end, block.start
    if end is not None:
        if block.output.strip():
            yield from labelled_text(view, (Span("output ▸", "model"),), block.output, view.limits.prose)
            yield ()
        yield from failure(view, end.error or "", view.limits.prose, indent=0)
        provider = start.served_by
        began = _routing(start, provider)
        facts = {label: parts for label, parts in _routing(end, provider).items() if began[label] != parts}
        facts["model"] = [_named("", end.model, start.model or "")]
        if end.metadata != start.metadata:
            facts["metadata"] = _pairs(view, end.metadata)
        yield from _rows(view, facts)
    yield from rule(view, list(session_sums(view, block)))


def session_sums(view: View, block: SessionEndBlock) -> Iterator[Span]:
    """Yield how a session ended, and its sums."""
    end, totals = block.end, block.totals
    if end is None:
        yield Span(_no_end(view, block), "unfinished")
    else:
        style = {"success": "title", "error": "failed", "failed": "failed"}.get(end.status or "", "unfinished")
        yield words(end.status or "ended", style)
        if end.process_outcome and end.process_outcome != end.status:
            yield words(end.process_outcome, "unfinished")
    yield Span(span_of_time(view, block.duration_ms).text)
    for noun in ("request", "tool"):
        if totals[noun]:
            failed = totals[f"failed {noun}"]
            yield Span(counted(view, totals[noun], noun) + (f" ({failed} failed)" if failed else ""))
    if block.usage or (end and end.tokens is not None):
        yield from tokens(view, block.usage, hit_rate=True)
    if block.cost is not None:
        cost, less = money(view, block.cost), money(view, block.end_cost).text
        yield Span(f"{cost.text} (the end has {less})", cost.style) if less else cost
    elif totals["request"] or ("request" in totals and block.usage):  # only the last end counts them
        yield Span("cost unknown", "note")
    if end and end.cost_cap_usd is not None:
        yield Span(f"cap ${end.cost_cap_usd:.10g}")
    if totals["damaged piece"]:
        yield Span(counted(view, totals["damaged piece"], "damaged piece"), "failed")


def _no_end(view: View, block: SessionEndBlock) -> str:
    """Return the status of a log without an end; exact text must not depend on the current time."""
    if view.exact or block.time_ns is None:
        return "no end"
    age_ns = int(view.now.timestamp() * 1e9) - block.time_ns
    return "running" if age_ns < RUNNING_NS else "no end: killed?"


def _routing(routing: Routing, provider: str) -> Facts:
    """Return the routing facts of a start or an end by label, with empty lists for absent ones."""
    tried = routing.attempted_providers or ()
    failovers = routing.failover_count or 0
    return {
        "route": [
            _change("harness ", routing.requested_harness, routing.resolved_harness, routing.harness_source),
            _change("model ", routing.requested_model, routing.resolved_model, always=False),
            _change("model ref ", routing.requested_model_ref, routing.resolved_model_ref),
            _named("provider ", routing.selected_provider, provider),
            _named("route ", routing.selected_route, routing.selected_provider or provider),
        ],
        "server": [
            _named("endpoint ", routing.selected_endpoint),
            _named("instance ", routing.selected_server_instance),
        ],
        "sticky": _sticky_parts(routing.sticky),
        "utilization": _load_parts(routing.utilization),
        "failover": [
            words(f"{failovers} failover{'' if failovers == 1 else 's'}" if failovers else "", "unfinished"),
            words(" → ".join(tried)),
        ],
        "reasoning": [
            _change("", routing.reasoning, routing.resolved_reasoning, routing.reasoning_source),
            _change("intent ", routing.reasoning_intent, routing.reasoning_emitted),
        ],
    }


def _change(word: str, asked: str | None, got: str | None, source: str | None = None, *, always: bool = True) -> Span:
    """Return `asked → got`; where they are equal the name, or nothing unless `always`."""
    if not asked and not got:
        return Span("")
    if not asked or not got or asked == got:
        return words(f"{word}{got or asked}{f' ({source})' if source else ''}") if always else Span("")
    return words(f"{word}{asked} → {got}{f' ({source})' if source else ''}")


def _named(word: str, name: str | None, known: str = "", style: str = "") -> Span:
    return words(f"{word}{name}", style) if name and name != known else Span("")


def _names(*names: str | None) -> Span:
    return Span(" / ".join(words(name).text for name in names if name))


def _rows(view: View, facts: Facts) -> Iterator[Line]:
    for label, parts in facts.items():
        yield from row(view, label, parts)


def _pairs(view: View, metadata: Mapping[str, Any] | None) -> list[Span]:
    pairs = (
        f"{key}={value if isinstance(value, str) else compact_json(value)}" for key, value in (metadata or {}).items()
    )
    return [words(pair, limit=WORDS if view.limits.prose.chars else len(pair) + WORDS) for pair in pairs]


def routed(view: View, chosen: RoutingDecision) -> Iterator[Line]:
    """Yield a router's decision: the choice and its reason, then the candidates."""
    names = _names(chosen.harness, chosen.provider, chosen.model)
    yield clipped((Span("⇢ route  ", "title"), names), view.width)
    yield from body(view, chosen.reason or "", view.limits.prose, indent=2, style="note")
    facts = {
        "  requested": [
            _named("harness ", chosen.requested_harness),
            _named("provider ", chosen.requested_provider),
            _named("model ", chosen.requested_model),
        ],
        "  server": [_named("endpoint ", chosen.endpoint), _named("instance ", chosen.server_instance)],
        "  sticky": _sticky_parts(chosen.sticky),
        "  utilization": _load_parts(chosen.utilization),
    }
    yield from _rows(view, facts)
    yield from _candidates(view, [c for c in chosen.candidates or () if isinstance(c, Mapping)])


def pinned(view: View, override: Override) -> Iterator[Line]:
    """Yield a person's pin, and whether routing would have chosen the same."""
    label = "⇄ rejected override " if isinstance(override, RejectedOverride) else "⇄ override "
    yield from labelled_text(view, (Span(label, "title"),), _comparison(override), view.limits.prose)
    score = "" if override.auto_score is None else f"score {override.auto_score:.15g}"
    status = (override.outcome or {}).get("status")
    facts = joined([
        words(score, "note"),
        _named("reason: ", override.reason_hint, style="note"),
        words(f"outcome {status}" if isinstance(status, str) else "", "note"),
    ])  # fmt: skip
    if facts:
        yield clipped((Span("  "), *facts), view.width)
    if isinstance(override, RejectedOverride):
        yield from failure(view, override.rejection_error or "", view.limits.prose, indent=2)


def compacting(view: View, value: Compaction) -> Iterator[Line]:
    """Yield the line of a compaction that begins."""
    size = [] if value.messages_before is None else [Span(counted(view, value.messages_before, "message"), "note")]
    yield (Span("⇣ compacting", "note"), Span("  " if size else ""), *size)


def compacted(view: View, value: Compaction) -> Iterator[Line]:
    """Yield a compaction: sizes before and after, and the summary that replaces the messages."""
    failed = value.success is False or bool(value.error)
    label = Span("⇣ compaction failed" if failed else "⇣ compacted", "failed" if failed else "title")
    figures = [
        _shrunk(view, value.messages_before, value.messages_after, "messages"),
        _shrunk(view, value.tokens_before, value.tokens_after, "tokens"),
        Span("in the middle of a turn" if value.mid_turn else "", "note"),
    ]
    yield from head(view, (label,), figures)
    for text, style, gutter in (
        (value.error, "failed", ""),
        (value.warning, "unfinished", ""),
        (value.summary, "", "│ "),
    ):
        yield from body(view, text or "", view.limits.prose, indent=2, style=style, gutter=gutter)
    if value.file_ops:
        yield from body(view, compact_json(value.file_ops), view.limits.arguments, indent=2, style="note")


def _sticky_parts(sticky: RoutingStickyState | None) -> list[Span]:
    """Return whether the session stayed on the server that has its cache; empty where it is not logged."""
    if sticky is None or not (sticky.key_present or sticky.assignment or sticky.reason):
        return []
    return [
        Span(f"key {'present' if sticky.key_present else 'absent'}"),
        words(f"assignment {sticky.assignment or 'unknown'}"),
        _named("", sticky.reason),
        _named("instance ", sticky.server_instance),
        Span(f"bonus {sticky.bonus:.15g}" if sticky.bonus else ""),
    ]


def _load_parts(load: RoutingUtilizationState | None) -> list[Span]:
    """Return the load of the server; empty where it is not logged."""
    if load is None:
        return []
    numbers = [(load.active_requests, "active"), (load.queued_requests, "queued"), (load.max_concurrency, "max")]
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
    """Compare a pin with the choice of routing, the axes that differ first.

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


def _shrunk(view: View, before: int | None, after: int | None, noun: str) -> Span:
    if before is None and after is None:
        return Span("")
    sizes = ("?" if size is None else count(view, size) for size in (before, after))
    return Span(f"{' → '.join(sizes)} {noun}")
