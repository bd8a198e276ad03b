"""Gates: what the second of two sessions may cost more than the first, for tests in CI.

A limit is absolute (`0.50`), a share more than the first session has (`+10%`), or an amount more (`+2`). A figure that
is not known, or of which a part is not known, fails its gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sessionlog.errors import InvalidQuery

Figures = Mapping[str, Any]
GateName = Literal["max-cost", "max-requests", "max-tokens", "max-duration", "same-tools"]
GATED: Mapping[str, tuple[str, str]] = {
    "max-cost": ("cost_usd", "cost"),
    "max-requests": ("requests", "requests"),
    "max-tokens": ("total_tokens", "tokens"),
    "max-duration": ("duration_ms", "duration"),
}
"""Gate → the figure that it limits, and its name for people."""

_FORMS = {
    "max-cost": "0.50, +10% or +0.05",
    "max-requests": "12, +10% or +2",
    "max-tokens": "50000, +10% or +2000",
    "max-duration": "90s, 5m, +10% or +30s",
}
_LIMIT = re.compile(r"([+-]?)(\d{1,15}(?:\.\d{1,9})?)\s*(%|s|m|h)?")
_MILLISECONDS = {None: 1_000, "s": 1_000, "m": 60_000, "h": 3_600_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much is allowed.

    Attributes:
        text: As it was given, `+10%`.
        amount: The number: of US dollars, requests, tokens, milliseconds or percent.
        kind: What it is: the whole, an amount more than the first session, or percent more.
    """

    text: str
    amount: Decimal
    kind: Literal["absolute", "more", "percent"] = "absolute"

    def allowed(self, base: Decimal) -> Decimal:
        """Return the greatest allowed figure where the first session has `base`."""
        if self.kind == "percent":
            return base * (1 + self.amount / 100)
        return self.amount + (base if self.kind == "more" else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What a gate found.

    Attributes:
        gate: Its name.
        limit: The limit as it was given; empty for `same-tools`.
        has_passed: Whether the second session keeps it.
        left: The first session's figure, as in the comparison; None where it is not known or there is none.
        right: The second session's.
        allowed: The greatest allowed figure; None where it is not known.
        reason: Why it failed, one sentence; empty if it has passed.
    """

    gate: GateName
    limit: str
    has_passed: bool
    left: float | None = None
    right: float | None = None
    allowed: float | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "gate": self.gate, "limit": self.limit or None, "passed": self.has_passed, "left": self.left,
            "right": self.right, "allowed": self.allowed, "reason": self.reason or None,
        }  # fmt: skip


def parse_limit(gate: GateName, text: str) -> Limit:
    """Return the limit that a text gives: `0.50`, `+10%`, `+2`; for `max-duration` seconds, or `90s`, `5m`, `1h`.

    Raises:
        InvalidQuery: It is none.
    """
    found = _LIMIT.fullmatch(text.strip())
    sign, number, unit = found.groups() if found else ("", "", None)
    is_time = unit in ("s", "m", "h")
    if found is None or (is_time and gate != "max-duration") or (unit == "%" and not sign):
        raise InvalidQuery(f"--{gate} {text!r}: a limit is given as {_FORMS[gate]}")
    amount = Decimal(f"{sign}{number}")
    if unit == "%":
        return Limit(text=text.strip(), amount=amount, kind="percent")
    scale = _MILLISECONDS[unit] if gate == "max-duration" else 1
    return Limit(text=text.strip(), amount=amount * scale, kind="more" if sign else "absolute")


def check_limits(limits: Mapping[GateName, Limit], left: Figures, right: Figures) -> Iterator[GateResult]:
    """Yield the result of each limit.

    Args:
        limits: The limit of each gate.
        left: The first session's figures, as the comparison has them.
        right: The second session's.
    """
    for gate, limit in limits.items():
        name, what = GATED[gate]
        is_relative = limit.kind != "absolute"
        reason = _unknown(gate, right, "B") or (_unknown(gate, left, "A") if is_relative else "")
        allowed = None if reason else limit.allowed(_exact(left[name] or 0))
        has_passed = allowed is not None and _exact(right[name]) <= allowed
        if allowed is not None and not has_passed:
            base = f" (A: {_shown(gate, _exact(left[name]))})" if is_relative else ""
            reason = f"{what} of B: {_shown(gate, _exact(right[name]))}, allowed {_shown(gate, allowed)}{base}"
        yield GateResult(
            gate=gate, limit=limit.text, has_passed=has_passed, left=left[name], right=right[name],
            allowed=None if allowed is None else float(allowed), reason=reason,
        )  # fmt: skip


def check_same_tools(left: Iterable[str], right: Iterable[str]) -> GateResult:
    """Return whether the second session calls the tools that the first one calls, however often.

    Args:
        left: The tools that the first session calls.
        right: The tools that the second one calls.
    """
    more, fewer = sorted({*right} - {*left}), sorted({*left} - {*right})
    words = [f"B calls {', '.join(more)}"] if more else []
    words += [f"B does not call {', '.join(fewer)}"] if fewer else []
    return GateResult(gate="same-tools", limit="", has_passed=not words, reason="; ".join(words))


def _unknown(gate: GateName, figures: Figures, side: str) -> str:
    """Return why a figure is not known; "" if it is."""
    name, what = GATED[gate]
    if figures[name] is None:
        return f"{what} of {side}: not known"
    is_partial = name == "cost_usd" and figures["cost_is_partial"]
    return f"cost of {side}: a part of it has no price" if is_partial else ""


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))


def _shown(gate: str, value: Decimal) -> str:
    if gate == "max-cost":
        return f"${max(value.normalize(), round(value, 2), key=_places):,f}"
    return f"{value / 1000:,.1f} s" if gate == "max-duration" else f"{value.normalize():,f}"


def _places(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)
