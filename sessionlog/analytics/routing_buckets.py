"""The classes of routing quality: kinds of prompt, of outcome, of rejection.

Each function is total: every logged value falls into one class, and a missing one is `unknown`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from sessionlog.events.tokens import read_count

AXES = ("harness", "provider", "model")
"""What a person can pin."""

OUTCOMES = ("success", "stalled", "failed", "cancelled", "unknown")
"""How a pinned session can have ended."""

SIZES = ("tiny", "small", "medium", "large", "xlarge")
SIZE_EDGES = (1_000, 4_000, 16_000, 64_000)
"""Estimated prompt tokens at which the next of `SIZES` begins."""

# The statuses of routers (failed, stalled, timed_out) and of session.end (error, iteration_limit, budget_halted).
_OUTCOME_OF: Mapping[str, str] = {
    "success": "success",
    "iteration_limit": "stalled",
    "budget_halted": "stalled",
    "stalled": "stalled",
    "timed_out": "stalled",
    "error": "failed",
    "failed": "failed",
    "cancelled": "cancelled",
}
_UNKNOWN_NAME = re.compile(r"\bunknown (harness|provider|model)\b", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
_REASON_LENGTH = 60


def prompt_feature_bucket(features: Mapping[str, Any] | None) -> str:
    """Return the kind of prompt: `tokens=SIZE,tools=yes|no,reasoning=WORD|none`."""
    features = features or {}
    tokens, _ = read_count(features.get("estimated_tokens"))
    size = SIZES[bisect_right(SIZE_EDGES, tokens)] if tokens > 0 else "unknown"
    tools = "yes" if features.get("requires_tools") is True else "no"
    reasoning = features.get("reasoning")
    if not isinstance(reasoning, str | int) or isinstance(reasoning, bool):
        reasoning = ""
    return f"tokens={size},tools={tools},reasoning={str(reasoning).strip() or 'none'}"


def outcome_class(status: object) -> str:
    """Return the outcome of a status, one of `OUTCOMES`."""
    return _OUTCOME_OF.get(status, "unknown") if isinstance(status, str) else "unknown"


def rejection_reason(text: str | None) -> str:
    """Reduce a rejection to its class, so that a thousand misspelt models are one reason.

    `unknown model`, `unknown provider` and `unknown harness` are found anywhere in the text; any other text is kept
    up to its first semicolon, without the quoted names in it.
    """
    if match := _UNKNOWN_NAME.search(text or ""):
        return f"unknown {match[1].lower()}"
    words = _QUOTED.sub(" ", (text or "")[: 8 * _REASON_LENGTH]).split(";")[0].split()
    return " ".join(words)[:_REASON_LENGTH].strip(" :,.") or "unknown"
