"""How a session begins and ends: a rule with the names, the facts of routing below; a rule with the sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog.events.payloads import Routing, SessionStart
from sessionlog.render.replay.blocks import Ended, Opened
from sessionlog.render.replay.exact import compact_json
from sessionlog.render.replay.figures import counted, moment, money, span_of_time, tokens
from sessionlog.render.replay.layout_routing import load_parts, sticky_parts
from sessionlog.render.replay.lines import WORDS, Line, Span, failure, row, rule, told, words
from sessionlog.render.replay.view import View
from sessionlog.render.times import home_path

Facts = dict[str, list[Span]]
_RUNNING_NS = 600 * 10**9


def opened(view: View, block: Opened) -> Iterator[Line]:
    """The head: session, provider and model, when and where; then how it was routed."""
    start = block.start or SessionStart()
    provider = start.provider or start.resolved_harness or ""
    served = Span(" / ".join(words(name).text for name in (provider, start.model) if name))
    place = words(home_path(start.work_dir or "", view.home))
    yield from rule(view, [words(block.session_id or "session", "title"), served, moment(view, block.time_ns), place])
    facts: Facts = {}
    if block.logged_id not in {"", block.session_id}:
        facts["logged as"] = [words(block.logged_id)]
    facts |= _routing(start, provider)
    if start.max_iterations:
        facts["limit"] = [Span(counted(view, start.max_iterations, "iteration"))]
    facts["metadata"] = _pairs(view, start.metadata)
    for label, parts in facts.items():
        yield from row(view, label, parts)


def ended(view: View, block: Ended) -> Iterator[Line]:
    """What it came to: a last output, an error, what routing changed on the way, and the sums."""
    end, start = block.end, block.start
    if end is not None:
        if block.output.strip():
            yield from told(view, (Span("output ▸", "model"),), block.output, view.limits.prose)
            yield ()
        yield from failure(view, end.error or "", view.limits.prose, indent=0)
        provider = start.provider or start.resolved_harness or ""
        began = _routing(start, provider)
        facts = {label: parts for label, parts in _routing(end, provider).items() if began[label] != parts}
        if end.model and end.model != start.model:
            facts["model"] = [words(end.model)]
        if end.metadata != start.metadata:
            facts["metadata"] = _pairs(view, end.metadata)
        for label, parts in facts.items():
            yield from row(view, label, parts)
    yield from rule(view, list(_sums(view, block)))


def _sums(view: View, block: Ended) -> Iterator[Span]:
    end, totals = block.end, block.totals
    if end is None:
        yield Span(_no_end(view, block), "unfinished")
    else:
        yield _status(end.status or "ended")
        if end.process_outcome and end.process_outcome != end.status:
            yield words(end.process_outcome, "unfinished")
    yield span_of_time(view, block.duration_ms)._replace(style="")
    if totals.requests:
        yield Span(counted(view, totals.requests, "request") + _failures(totals.failed_requests))
    if totals.tools:
        yield Span(counted(view, totals.tools, "tool") + _failures(totals.failed_tools))
    if block.usage or (end and end.tokens is not None):
        yield from tokens(view, block.usage, hit_rate=True)
    if block.cost is not None:
        cost, less = money(view, block.cost), money(view, block.end_cost).text
        yield cost._replace(text=f"{cost.text} (the end says {less})") if less else cost
    elif totals.requests or (end and end.tokens is not None):
        yield Span("cost unknown", "note")
    if end and end.cost_cap_usd is not None:
        yield Span(f"cap ${end.cost_cap_usd:.10g}")
    if totals.damaged:
        yield Span(counted(view, totals.damaged, "damaged piece"), "failed")


def _no_end(view: View, block: Ended) -> str:
    """A text for a diff must not depend on when it was made."""
    if view.exact or block.time_ns is None:
        return "no end"
    age_ns = int(view.now.timestamp() * 1e9) - block.time_ns
    return "running" if age_ns < _RUNNING_NS else "no end: killed?"


def _status(status: str) -> Span:
    style = {"success": "title", "error": "failed", "failed": "failed"}.get(status, "unfinished")
    return words(status, style)


def _failures(count: int) -> str:
    return f" ({count} failed)" if count else ""


def _routing(routing: Routing, provider: str) -> Facts:
    """What start and end both say about routing, by label; empty lists for what they do not say."""
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
        "sticky": sticky_parts(routing.sticky),
        "utilization": load_parts(routing.utilization),
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
    """`asked → got`, or the one name where they are the same; that is left out unless `always`."""
    if not asked and not got:
        return Span("")
    if not asked or not got or asked == got:
        return words(f"{word}{got or asked}{f' ({source})' if source else ''}") if always else Span("")
    return words(f"{word}{asked} → {got}{f' ({source})' if source else ''}")


def _named(word: str, name: str | None, known: str = "") -> Span:
    return words(f"{word}{name}") if name and name != known else Span("")


def _pairs(view: View, metadata: Mapping[str, Any] | None) -> list[Span]:
    pairs = (
        f"{key}={value if isinstance(value, str) else compact_json(value)}" for key, value in (metadata or {}).items()
    )
    return [words(pair, limit=WORDS if view.limits.prose.chars else len(pair) + WORDS) for pair in pairs]
