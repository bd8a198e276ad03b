"""Usage as others spell it, read into one set of numbers; and the usage of a turn and of a session.

The numbers of this room are inclusive, as pydantic-ai's are: `input_tokens` is the whole prompt, and
`cache_read_tokens` and `cache_write_tokens` are parts of it, so that `input_tokens` can be compared with a context
window. Logs and reports keep disjoint classes (`TokenUsage`): there `input` is what touched no cache, and
`input_tokens = input + cache_read + cache_write`. A writer whose cached tokens stand beside its input is recognised by
its names (`input`, `cache_read_input_tokens` without `prompt_tokens`), or because more was cached than the prompt is
long.

What is no count (a word, a negative, a fraction) counts 0 and never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.events.usage import read_usage, usage_fields

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class CamelCase:
    """A dataclass with a JSON form."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys, every text whole."""
        return camel_dict(self)


def camel_dict(value: Any, *names: str) -> dict[str, Any]:
    """Return these attributes of a value, all fields by default, as a JSON value with camelCase keys."""
    return {_camel(name): _json(getattr(value, name)) for name in names or [field.name for field in fields(value)]}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(CamelCase):
    """What some requests used; requests and calls of tools are 0 where nobody says.

    Attributes:
        input_tokens: The whole prompts, cached or not.
        output_tokens: What was generated.
        cache_read_tokens: The part of the input that came from a cache.
        cache_write_tokens: The part of the input that was written to a cache.
        requests: Calls of the model.
        tool_calls: Calls of tools, each counted.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage(Counts):
    """What one turn used: a user prompt and everything until the next one.

    Attributes:
        tool_names: One name a call, in their order, where the calls are known by name.
        duration_seconds: From its first request to its last answer.
    """

    tool_names: tuple[str, ...] = ()
    duration_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage(Counts):
    """What the turns of a session used together.

    Attributes:
        turns: User prompts.
        duration_seconds: The sum over the turns; the time between them does not count.
    """

    turns: int = 0
    duration_seconds: float = 0.0


def tokens_of(*used: Any) -> dict[str, Any]:
    """Return the token counts that usage, a step and a turn share, added up."""
    return _added(used, _TOKENS)


def _added(used: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: sum(getattr(one, name) for one in used) for name in names}


def counts_of(usage: TokenUsage) -> Counts:
    """Add disjoint classes up."""
    return Counts(
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )


def sum_turns(turns: Iterable[TurnUsage]) -> SessionUsage:
    """Add turns up."""
    listed = list(turns)
    return SessionUsage(turns=len(listed), **_added(listed, (*_TOKENS, "requests", "tool_calls", "duration_seconds")))


def usage_to_dict(usage: object) -> dict[str, Any]:
    """Return a usage object as a dictionary, under its own names; nothing for what is none.

    Mappings, pydantic models (`model_dump`, `dict`), named tuples, any object with fields; of one whose fields have no
    name that is known here, the known names that it answers to. Our `TokenUsage` gets the names of this room.
    """
    return usage_fields(counts_of(usage) if isinstance(usage, TokenUsage) else usage)


def read_counts(usage: object) -> Counts:
    """Read any usage object: pydantic-ai's, ours, the providers' own."""
    if type(usage) is Counts:
        return usage
    data = usage_to_dict(usage)
    return replace(
        counts_of(read_usage(usage)[0]),
        requests=read_count(data.get("requests"))[0],
        tool_calls=read_count(data.get("tool_calls"))[0] or read_count(data.get("toolCalls"))[0],
    )
