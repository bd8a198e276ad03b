"""TokenUsage: the tokens of one response, in classes that do not overlap.

`input` are the tokens neither read from nor written to a cache; `reasoning` is a part of `output`, `cache_write_1h` a
part of `cache_write`; `total = input + cache_read + cache_write + output`. Because the classes are disjoint they are
added, priced and compared without subtraction. Sums are associative and commutative; `TokenUsage()` is the empty
element.

Numbers in logs are not trusted: integral floats and numeric strings count; negatives, booleans, NaN and fractions do
not, and are reported, while the rest of the record stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_COUNT = 2**53
"""The largest count that survives every JSON reader; more in one field is damage, not usage."""

TOKEN_CLASSES = ("input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h")


@dataclass(slots=True, unsafe_hash=True)  # a frozen one takes three times as long to make
class TokenUsage:
    """Token counts of one response, or a sum of many. Treat it as immutable.

    Attributes:
        input: Prompt tokens that touched no cache.
        output: Generated tokens, reasoning included.
        cache_read: Prompt tokens served from a cache.
        cache_write: Prompt tokens written to a cache, for 5 minutes or 1 hour.
        reasoning: The part of `output` that was reasoning.
        cache_write_1h: The part of `cache_write` that was kept for an hour (it has its own price).
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0

    @property
    def prompt(self) -> int:
        """All prompt tokens, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Prompt and output together; reasoning is inside output."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            self.cache_write_1h + other.cache_write_1h,
        )

    def add(self, other: TokenUsage) -> None:
        """Add to this sum in place, which takes half the time: only for a sum that its maker holds alone."""
        self.input += other.input
        self.output += other.output
        self.cache_read += other.cache_read
        self.cache_write += other.cache_write
        self.reasoning += other.reasoning
        self.cache_write_1h += other.cache_write_1h

    def beyond(self, other: TokenUsage) -> TokenUsage:
        """What this usage reports beyond `other`, class by class, never negative."""
        return TokenUsage(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in TOKEN_CLASSES})

    def __bool__(self) -> bool:
        return self.total > 0

    def without_cached_input(self) -> TokenUsage:
        """Normalise a provider's inclusive `input`: take out what was read from the cache."""
        return TokenUsage(
            input=max(0, self.input - self.cache_read),
            output=self.output,
            cache_read=self.cache_read,
            cache_write=self.cache_write,
            reasoning=self.reasoning,
            cache_write_1h=self.cache_write_1h,
        )

    def to_dict(self) -> dict[str, int]:
        """JSON shape of a native log: input, output, total always; the rest when not zero."""
        out = {"input": self.input, "output": self.output}
        if self.cache_read:
            out["cache_read"] = self.cache_read
        if self.cache_write:
            out["cache_write"] = self.cache_write
        if self.reasoning:
            out["reasoning"] = self.reasoning
        if self.cache_write_1h:
            out["cache_write_1h"] = self.cache_write_1h
        out["total"] = self.total
        return out


def read_count(value: Any) -> tuple[int, str | None]:
    """Return a token count, and what is wrong with the value if it is none."""
    if value is None:
        return 0, None
    if type(value) is int:
        if 0 <= value <= MAX_COUNT:
            return value, None
        return 0, "a negative count" if value < 0 else "a count over 2^53"
    if isinstance(value, bool):
        return 0, f"{value} is not a number"
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) <= 16:
            return read_count(int(text))
        return 0, f"{value[:40]!r} is not a count"
    if isinstance(value, float):
        if abs(value) <= MAX_COUNT and value.is_integer():
            return read_count(int(value))
        return 0, f"{value} is not a whole number"
    if isinstance(value, Integral):  # a number of another type, such as numpy's
        return read_count(int(value))
    return 0, f"a {type(value).__name__} is not a count"
