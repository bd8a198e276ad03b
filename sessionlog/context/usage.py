"""Usage as others spell it, read into one set of numbers; and the usage of a turn and of a session.

The numbers of this room are inclusive, as pydantic-ai's are: `input_tokens` is the whole prompt, and
`cache_read_tokens` and `cache_write_tokens` are parts of it, so that `input_tokens` can be compared with a context
window. Logs and reports keep disjoint classes (`TokenUsage`): there `input` is what touched no cache, and
`input_tokens = input + cache_read + cache_write`. A writer whose cached tokens stand beside its input is recognised by
its names (`input`, `cache_read_input_tokens`), or because more was cached than the prompt is long.

What is no count (a word, a negative, a fraction) counts 0 and never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from sessionlog.events.tokens import TokenUsage, read_count, read_usage

_INPUT = ("input_tokens", "prompt_tokens", "request_tokens")
_OUTPUT = ("output_tokens", "completion_tokens", "response_tokens")
_INSIDE = ("cache_read_tokens", "cached_tokens")
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
_DETAILS = ("input_tokens_details", "prompt_tokens_details")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of one usage object.

    Attributes:
        input_tokens: The whole prompt, cached or not.
        output_tokens: What was generated.
        cache_read_tokens: The part of the prompt that came from a cache.
        cache_write_tokens: The part of the prompt that was written to a cache.
        requests: Calls of the model; 0 where the object does not say.
        tool_calls: Calls of tools; 0 where the object does not say.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and output."""
        return self.input_tokens + self.output_tokens

    @classmethod
    def of_usage(cls, usage: TokenUsage) -> Counts:
        """Add disjoint classes up."""
        return cls(
            input_tokens=usage.prompt,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage:
    """What one turn used: a user prompt and everything until the next one.

    Attributes:
        input_tokens: The prompts of its requests, cached or not.
        output_tokens: What was generated.
        requests: Calls of the model.
        tool_calls: Calls of tools, each counted.
        tool_names: One name a call, in their order, where the calls are known by name.
        duration_seconds: From its first request to its last answer.
        cache_read_tokens: The part of the input that came from a cache.
        cache_write_tokens: The part of the input that was written to a cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    tool_names: tuple[str, ...] = ()
    duration_seconds: float = 0.0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys."""
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cacheReadTokens": self.cache_read_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "requests": self.requests,
            "toolCalls": self.tool_calls,
            "toolNames": list(self.tool_names),
            "durationSeconds": self.duration_seconds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage:
    """What the turns of a session used together; the names are those of `TurnUsage`.

    Attributes:
        turns: User prompts.
        duration_seconds: The sum over the turns; the time between them does not count.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    turns: int = 0
    duration_seconds: float = 0.0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys."""
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cacheReadTokens": self.cache_read_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "requests": self.requests,
            "toolCalls": self.tool_calls,
            "turns": self.turns,
            "durationSeconds": self.duration_seconds,
        }


def sum_turns(turns: Iterable[TurnUsage]) -> SessionUsage:
    """Add turns up."""
    listed = list(turns)
    return SessionUsage(
        input_tokens=sum(turn.input_tokens for turn in listed),
        output_tokens=sum(turn.output_tokens for turn in listed),
        requests=sum(turn.requests for turn in listed),
        tool_calls=sum(turn.tool_calls for turn in listed),
        turns=len(listed),
        duration_seconds=sum(turn.duration_seconds for turn in listed),
        cache_read_tokens=sum(turn.cache_read_tokens for turn in listed),
        cache_write_tokens=sum(turn.cache_write_tokens for turn in listed),
    )


def usage_to_dict(usage: object) -> dict[str, Any]:
    """Return a usage object as a dictionary, under its own names; nothing for what is none.

    Mappings, pydantic models (`model_dump`, `dict`), any object with fields; our `TokenUsage` gets the names of this
    room.
    """
    if usage is None:
        return {}
    if isinstance(usage, Mapping):
        return dict(usage)
    if isinstance(usage, TokenUsage):
        usage = Counts.of_usage(usage)
    for method in ("model_dump", "dict"):
        made = _called(usage, method)
        if made is not None:
            return made
    held = getattr(usage, "__dict__", None)
    own = dict(held) if isinstance(held, Mapping) else {}
    if is_dataclass(usage) and not isinstance(usage, type):  # defaults of its class, and fields that have slots
        return {f.name: getattr(usage, f.name) for f in fields(usage) if hasattr(usage, f.name)} | own
    return own


def _called(usage: object, method: str) -> dict[str, Any] | None:
    function = getattr(usage, method, None)
    if not callable(function):
        return None
    try:
        made = function()
    except Exception:  # noqa: BLE001 - somebody's own class: the next way may work
        return None
    return dict(made) if isinstance(made, Mapping) else None


def read_counts(usage: object) -> Counts:
    """Read any usage object: pydantic-ai's, ours, the providers' own."""
    if isinstance(usage, Counts):
        return usage
    data = usage_to_dict(usage)
    if not any(name in data for name in _INPUT) and ("input" in data or "output" in data):
        counts = Counts.of_usage(read_usage(data)[0])
        prompt, output = counts.input_tokens, counts.output_tokens
        read, written = counts.cache_read_tokens, counts.cache_write_tokens
    else:
        prompt, output = _first(data, _INPUT), _first(data, _OUTPUT)
        read, written = _first(data, _INSIDE), _count(data.get("cache_write_tokens"))
        if not read:
            read = max((_nested(data, details) for details in _DETAILS), default=0)
        if any(name in data for name in _BESIDE):
            read, written = _count(data.get(_BESIDE[0])), _count(data.get(_BESIDE[1]))
            prompt += read + written
        elif read + written > prompt:
            prompt += read + written
    return Counts(
        input_tokens=prompt,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        requests=_count(data.get("requests")),
        tool_calls=_count(data.get("tool_calls")),
    )


def _count(value: object) -> int:
    return read_count(value)[0]


def _first(data: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((_count(data[name]) for name in names if data.get(name) is not None), 0)


def _nested(data: Mapping[str, Any], name: str) -> int:
    details = data.get(name)
    return _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
