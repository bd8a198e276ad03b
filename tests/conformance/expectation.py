"""Words for the table of differences: a rule, and what ours says in a case where it differs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Changes = Mapping[str, Mapping[str, Any] | None]
"""Place → name → what ours says; None instead of the names means that ours has no such place."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A way in which ours differs.

    Attributes:
        name: The rule's words.
        reason: Why ours is better.
        cases: The cases that differ, and how.
    """

    name: str
    reason: str
    cases: tuple[tuple[tuple[str, ...], Changes], ...] = ()


def usage(folder: str, *windows: str) -> tuple[str, ...]:
    """Usage cases of one folder; `all` is the one without a window."""
    return tuple(f"usage {folder} {window}" for window in windows or ("all",))


def says(**values: Any) -> dict[str, Any]:
    """Some facts of a place."""
    return values


def nulls(*names: str) -> dict[str, None]:
    """Names whose value is null."""
    return dict.fromkeys(names)


def row(
    *,
    sessions: int = 1,
    success: int = 1,
    tokens: tuple[int, int] = (10, 5),
    ms: int = 1000,
    usd: float | None = 0.25,
    unknown: int = 0,
) -> dict[str, Any]:
    """A whole row of ours; rates by their formulas, None without a denominator.

    No row that only ours has holds failed sessions or cached tokens.
    """
    seconds = ms / 1000
    return {
        "sessions": sessions,
        "success_sessions": success,
        "failed_sessions": 0,
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "total_tokens": sum(tokens),
        "duration_ms": ms,
        "known_cost_usd": usd,
        "unknown_cost_sessions": unknown,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "success_rate": 1.0 if success else None,
        "cost_per_success": usd / success if usd is not None and success else None,
        "input_tokens_per_second": tokens[0] / seconds if seconds else None,
        "output_tokens_per_second": tokens[1] / seconds if seconds else None,
        "cache_hit_rate": 0.0 if tokens[0] else None,
    }


def unused(*, ms: int) -> dict[str, Any]:
    """The row of a session that has used nothing yet."""
    return row(success=0, tokens=(0, 0), ms=ms, usd=None)


def speeds(tokens: tuple[int, int], *, ms: int) -> dict[str, float]:
    """Input and output by wall time."""
    return {"input_tokens_per_second": tokens[0] * 1000 / ms, "output_tokens_per_second": tokens[1] * 1000 / ms}


def accepted(requests: int) -> dict[str, Any]:
    """The routing of a report that the original refused: nobody overrode anything."""
    rates = {"auto_acceptance_rate": 1.0, "override_disagreement_rate": None}
    return {"total_requests": requests, "total_overrides": 0, **rates}


def ended(count: int = 1, **outcomes: int) -> dict[str, Any]:
    """How overrides ended once they are joined with session.end."""
    known = {f"{word}_outcomes": number for word, number in outcomes.items()}
    return {**known, "unknown_outcomes": 0, "success_rate": outcomes.get("success", 0) / count}
