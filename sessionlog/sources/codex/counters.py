"""What Codex's counters say: the use of one response from a thread's running total.

A `token_count` row holds the thread's total so far and the last response's share. The total is the truth: rows are
repeated with every look at the rate limits, so adding up the shares counts some responses twice, while the difference
to the total before is zero for a repeat. The input of both includes what was read from and written to a cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessionlog.events.tokens import MAX_COUNT, TokenUsage, read_count

Vector = tuple[int, int, int, int, int]
"""Input (cached tokens included), cached input, output (reasoning included), reasoning, cache writes (in the input)."""

_new = object.__new__  # and all fields set: a quarter of the time that the class takes to be called

NOTHING: Vector = (0, 0, 0, 0, 0)

_FIELDS = (
    "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "cache_write_input_tokens",
)  # fmt: skip


def read_vector(data: Any, before: Sequence[int] | None = None) -> tuple[Vector | None, list[str]]:
    """Read a counter object.

    A field that is missing or no count keeps its value from `before`, or is 0: the next whole row makes up for it.

    Returns:
        The counter, None when there is none; and what was wrong with it.
    """
    try:
        given, cached = data["input_tokens"], data["cached_input_tokens"]
        output, reasoning = data["output_tokens"], data["reasoning_output_tokens"]
        written = data.get("cache_write_input_tokens", before[4] if before else 0)
        whole = type(given) is type(cached) is type(output) is type(reasoning) is type(written) is int
        if (
            whole
            and min(given, cached, output, reasoning, written) >= 0
            and max(given, cached, output, reasoning, written) <= MAX_COUNT
        ):
            return (given, cached, output, reasoning, written), []
    except (KeyError, TypeError, AttributeError, IndexError):
        pass
    return _read_slowly(data, before)


def _read_slowly(data: Any, before: Sequence[int] | None) -> tuple[Vector | None, list[str]]:
    if not isinstance(data, Mapping) or not any(name in data for name in _FIELDS):
        return None, [] if data is None else ["a token counter without counts"]
    counts, issues = [], []
    for number, name in enumerate(_FIELDS):
        value = data.get(name)
        count, issue = read_count(value)
        if issue:
            issues.append(f"{name}: {issue}")
        if (issue or value is None) and before:
            count = before[number]
        counts.append(count)
    return (counts[0], counts[1], counts[2], counts[3], counts[4]), issues


def advance(
    before: Vector | None, total: Vector | None, last: Vector | None, *, inherits: bool = False
) -> tuple[Vector | None, Vector | None]:
    """Move a thread's counter on by one row.

    Args:
        before: The total before; None at the thread's start.
        total: The row's total.
        last: The row's share of the last response.
        inherits: The thread may have begun with a total that is somebody else's.

    Returns:
        The total from now on, and what was used; None when the row tells nothing new.
    """
    if total is None:
        if last is None or last == NOTHING:
            return before, None
        return _plus(before or NOTHING, last), last
    if before is None:
        used = last if inherits and last is not None else total
        return total, used if any(used) else None
    if total == before:
        return before, None
    used = (
        total[0] - before[0], total[1] - before[1], total[2] - before[2], total[3] - before[3], total[4] - before[4],
    )  # fmt: skip
    if min(used) >= 0:
        return total, used
    was, now = before[0] + before[2], total[0] + total[2]
    share = last[0] + last[2] if last else 0
    if now * 100 >= was * 98 or now >= was - 2 * share:
        return before, None  # an older row that was written late
    used = last or total  # the counter began anew
    return total, used if any(used) else None


def _plus(a: Vector, b: Vector) -> Vector:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4]


def usage_of(vector: Vector) -> TokenUsage:
    """Spell a counter's difference in disjoint classes."""
    given, cached, output, reasoning, written = vector
    if cached > given or written > given - cached or reasoning > output:  # a part is never more than the whole
        cached = min(cached, given)
        written = min(written, given - cached)
        reasoning = min(reasoning, output)
    usage = _new(TokenUsage)
    usage.input, usage.output, usage.cache_read = given - cached - written, output, cached
    usage.cache_write, usage.reasoning, usage.cache_write_1h = written, reasoning, 0
    return usage
