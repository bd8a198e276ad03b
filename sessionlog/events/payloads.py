"""One frozen dataclass per payload: every field that logs of this format family have, under its name in the log.

All fields are optional, and unknown ones are kept in `extra`. `payload_json` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.events.tokens import TokenUsage

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Base of the payloads.

    Attributes:
        extra: Fields of the logged object that this version does not know, as they were.
    """

    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingStickyState(Payload):
    """Whether a session was kept on the server that has its cache."""

    key_present: bool | None = None
    assignment: str | None = None
    server_instance: str | None = None
    reason: str | None = None
    bonus: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingUtilizationState(Payload):
    """How busy the chosen server was when it was chosen."""

    source: str | None = None
    freshness: str | None = None
    active_requests: int | None = None
    queued_requests: int | None = None
    max_concurrency: int | None = None
    cache_pressure: float | None = None
    observed_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing(Payload):
    """The routing block that session.start and session.end share."""

    selected_provider: str | None = None
    selected_endpoint: str | None = None
    selected_server_instance: str | None = None
    selected_route: str | None = None
    sticky: RoutingStickyState | None = None
    utilization: RoutingUtilizationState | None = None
    requested_harness: str | None = None
    resolved_harness: str | None = None
    harness_source: str | None = None
    requested_model: str | None = None
    resolved_model: str | None = None
    requested_model_ref: str | None = None
    resolved_model_ref: str | None = None
    reasoning: str | None = None
    reasoning_intent: str | None = None
    reasoning_emitted: str | None = None
    resolved_reasoning: str | None = None
    reasoning_source: str | None = None
    attempted_providers: tuple[str, ...] | None = None
    failover_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart(Routing):
    """session.start: who runs, where, with which prompt. `v` 1 means that token classes are disjoint.

    A fork has a `parent`: the `session` that it was forked from, the `path` of its log, and the `seq` of the fork.
    A session that was recorded on the wire has `wire`: the id of the source whose own log may hold the same requests,
    empty if there is none.
    """

    v: int | None = None
    provider: str | None = None
    model: str | None = None
    work_dir: str | None = None
    max_iterations: int | None = None
    prompt: str | None = None
    system_prompt: str | None = None
    metadata: Mapping[str, Any] | None = None
    parent: Mapping[str, Any] | None = None
    wire: str | None = None

    @property
    def served_by(self) -> str:
        """The session's provider; in logs of the Go original, which have no `v`, else the harness that ran it."""
        return self.provider or (self.resolved_harness if self.v is None else "") or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd(Routing):
    """session.end: status, totals and cost (`cost_usd` None = unknown, 0 = free)."""

    status: str | None = None
    output: str | None = None
    tokens: TokenUsage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    model: str | None = None
    metadata: Mapping[str, Any] | None = None
    error: str | None = None
    process_outcome: str | None = None
    cost_cap_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMRequest(Payload):
    """llm.request: the whole prompt as sent, and the sampling settings.

    With `earlier_messages`, `messages` holds only the new messages; they follow that many messages of earlier requests.
    Sessions write such requests, and other agents' logs are converted to them.
    """

    messages: tuple[Json, ...] | None = None
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: Json = None
    reasoning: str | None = None
    reasoning_intent: str | None = None
    cache_policy: str | None = None
    sampling_source: str | None = None
    attempt_index: int | None = None
    planning: bool | None = None
    messages_count: int | None = None
    earlier_messages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMResponse(Payload):
    """llm.response: the answer, what it used and cost; a failure has `error` and little else.

    `model` is the model that answered; `requested_model` and `provider` are those of its request where several are
    under way in one session. `tool_calls` is a count (int) in the oldest logs. `partial` gives the reason why an answer
    is incomplete (`cancelled`, `failed`, `interrupted`); `message` is the answer if the other fields do not hold all of
    it. `response_id` is the provider's own id of the response. `service_tier`, `speed`, `region` and `searches` (web
    searches of the provider's own tool) are what it bills beside or by other prices; where they are absent, those of an
    SDK's usage object count.
    """

    content: str | None = None
    tool_calls: Json = None
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    latency_ms: float | None = None
    model: str | None = None
    requested_model: str | None = None
    provider: str | None = None
    finish_reason: str | None = None
    reasoning_emitted: str | None = None
    attempt_index: int | None = None
    error: str | None = None
    attempt: Mapping[str, Any] | None = None
    partial: str | None = None
    message: Mapping[str, Any] | None = None
    response_id: str | None = None
    service_tier: str | None = None
    speed: str | None = None
    region: str | None = None
    searches: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMDelta(Payload):
    """llm.delta: a piece of a streamed answer."""

    content: str | None = None
    reasoning_content: str | None = None
    tool_call_id: str | None = None
    tool_call_name: str | None = None
    tool_call_args: str | None = None
    usage: TokenUsage | None = None
    finish_reason: str | None = None
    model: str | None = None
    attempt: Json = None
    done: bool | None = None
    err: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Payload):
    """tool.call: one executed tool with its result or error."""

    tool: str | None = None
    input: Json = None
    output: Json = None
    duration_ms: float | None = None
    error: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Override(Payload):
    """override: a person pinned a harness, provider or model against (or like) the router's choice."""

    session_id: str | None = None
    user_pin: Mapping[str, Any] | None = None
    auto_decision: Mapping[str, Any] | None = None
    axes_overridden: tuple[str, ...] | None = None
    match_per_axis: Mapping[str, Any] | None = None
    auto_score: float | None = None
    auto_components: Mapping[str, Any] | None = None
    prompt_features: Mapping[str, Any] | None = None
    reason_hint: str | None = None
    outcome: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedOverride(Override):
    """rejected_override: a pin that could not be honoured, with the reason."""

    rejection_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingDecision(Payload):
    """routing_decision: what the router chose among which candidates."""

    harness: str | None = None
    provider: str | None = None
    model: str | None = None
    endpoint: str | None = None
    server_instance: str | None = None
    reason: str | None = None
    sticky: RoutingStickyState | None = None
    utilization: RoutingUtilizationState | None = None
    requested_harness: str | None = None
    requested_provider: str | None = None
    requested_model: str | None = None
    candidates: tuple[Json, ...] | None = None
    snapshot_captured_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Payload):
    """progress: the state of a run, for people who watch it."""

    phase: str | None = None
    state: str | None = None
    source: str | None = None
    task_id: str | None = None
    round: int | None = None
    message: str | None = None
    turn_index: int | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call_index: int | None = None
    command: str | None = None
    action: str | None = None
    subject: str | None = None
    output_summary: str | None = None
    output_bytes: int | None = None
    output_lines: int | None = None
    output_excerpt: str | None = None
    duration_ms: float | None = None
    since_last_ms: float | None = None
    tok_per_sec: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    context_messages: int | None = None
    context_tokens_estimate: int | None = None
    session_summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(Payload):
    """compaction.start and compaction.end: history was summarised or cut to make room.

    With `dropped` (half-open spans of indexes) only those messages were removed, and `added` were put in their place
    (`{"at": index, "message"}`).
    """

    messages_before: int | None = None
    messages_after: int | None = None
    mid_turn: bool | None = None
    success: bool | None = None
    summary: str | None = None
    file_ops: Json = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    warning: str | None = None
    error: str | None = None
    no_compaction: bool | None = None
    strategy: str | None = None
    dropped: tuple[Json, ...] | None = None
    added: tuple[Json, ...] | None = None


UNREPEATED = ("fork", "restored", "long")
"""Reasons of `history.add` whose messages the next request does not repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange(Payload):
    """history.add, history.pop and history.clear: a session's history was changed between requests.

    The next request repeats none of the messages added for a `reason` in `UNREPEATED`, and all of those with the reason
    `added`. `count` is how many messages history.pop removed, `usage` the usage of a restored history, `state` the
    turn's state if no response shows it.
    """

    messages: tuple[Json, ...] | None = None
    reason: str | None = None
    parent: Mapping[str, Any] | None = None
    usage: TokenUsage | None = None
    count: int | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningStall(Payload):
    """reasoning.stall: a model reasoned without end and was stopped."""

    model: str | None = None
    timeout_ms: float | None = None
    reasoning_tail: str | None = None
    prompt_id: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningTurn(Payload):
    """planning.turn: the plan made before the first turn."""

    plan: str | None = None
    usage: TokenUsage | None = None
    model: str | None = None


PAYLOADS: Mapping[str, type[Payload]] = {
    "session.start": SessionStart,
    "session.end": SessionEnd,
    "llm.request": LLMRequest,
    "llm.response": LLMResponse,
    "llm.delta": LLMDelta,
    "tool.call": ToolCall,
    "override": Override,
    "rejected_override": RejectedOverride,
    "routing_decision": RoutingDecision,
    "progress": Progress,
    "compaction.start": Compaction,
    "compaction.end": Compaction,
    "reasoning.stall": ReasoningStall,
    "planning.turn": PlanningTurn,
    "history.add": HistoryChange,
    "history.pop": HistoryChange,
    "history.clear": HistoryChange,
}
