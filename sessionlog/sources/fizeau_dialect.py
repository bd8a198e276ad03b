"""fizeau: the Go original's dialect of native logs, known by a session.start without `v`.

Where: `.fizeau/sessions/*.jsonl` under a work folder. Shape: the native envelope. Traps:

- `input` includes cached tokens for OpenAI-style providers and excludes them for Anthropic-style ones. The log does not
  show which; the rule below was checked on 61 Claude sessions (all but one have cache_read > input) and on all Codex
  and vLLM sessions (none has).
- A response's `cost_usd` of 0 means unknown where `attempt.cost.source` is that.
- Harness runs (claude, codex) have an empty provider; `resolved_harness` is who ran.
- Failed calls are llm.response events with only `error` and `latency_ms`.
- The oldest logs have an integer `tool_calls` and `timestamp` instead of `ts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.events.tokens import TokenUsage

ID = "fizeau"


def is_native(start: Any) -> bool:
    """Whether a session.start's payload is of sessionlog, whose token classes are disjoint."""
    version = start.get("v") if isinstance(start, Mapping) else getattr(start, "v", None)
    return type(version) is int and version >= 1


def normalise_usage(usage: TokenUsage, *, harness: str, provider: str) -> TokenUsage:
    """Make the classes disjoint: subtract cached tokens (never the cache writes) from an inclusive `input`."""
    if harness == "claude" or provider == "anthropic" or usage.cache_read > usage.input:
        return usage
    return usage.without_cached_input()


def cost_is_recorded(cost_nano: int | None, attempt: Mapping[str, Any]) -> bool:
    """Whether a response's cost was known to the writer."""
    if cost_nano != 0:
        return cost_nano is not None
    cost = attempt.get("cost")
    return not (isinstance(cost, Mapping) and cost.get("source") == "unknown")
