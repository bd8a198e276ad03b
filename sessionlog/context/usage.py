"""Read usage objects of any kind into one set of counts; the usage of a turn and of a session.

The counts in this package are inclusive, like pydantic-ai's: `input_tokens` is the whole prompt, and
`cache_read_tokens` and `cache_write_tokens` are parts of it, so that `input_tokens` can be compared with a context
window. Logs and reports keep disjoint classes (`TokenUsage`): there `input` excludes cached tokens, and
`input_tokens = input + cache_read + cache_write`. Usage with disjoint classes is recognised by its names (`input`,
`cache_read_input_tokens` without `prompt_tokens`), or because more tokens were cached than the input has.

An invalid count (a text, a negative, a fraction) counts as 0; nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.events.usage import read_usage, usage_fields

_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class CamelCase:
    """Base of dataclasses with a JSON form."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys, every text whole."""
        return camel_dict(self)


def camel_dict(value: Any, *names: str) -> dict[str, Any]:
    """Return the named attributes of a value, by default all fields, as a JSON value with camelCase keys."""
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
    """The usage of some requests; `requests` and `tool_calls` are 0 if unknown.

    Attributes:
        input_tokens: The whole prompts, cached or not.
        output_tokens: The generated tokens.
        cache_read_tokens: The part of the input that came from a cache.
        cache_write_tokens: The part of the input that was written to a cache.
        requests: Calls of the model.
        tool_calls: Calls of tools.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnUsage(Counts):
    """The usage of one turn: a user prompt and everything until the next prompt.

    Attributes:
        tool_names: One name per call, in order, if the names are known.
        duration_seconds: From its first request to its last answer.
    """

    tool_names: tuple[str, ...] = ()
    duration_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage(Counts):
    """The usage of all turns of a session.

    Attributes:
        turns: User prompts.
        duration_seconds: The sum over the turns, without the time between them.
    """

    turns: int = 0
    duration_seconds: float = 0.0


def tokens_of(*used: Any) -> dict[str, Any]:
    """Return the sums of the token counts that usage, steps and turns have in common."""
    return _added(used, _TOKENS)


def _added(used: Sequence[Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: sum(getattr(one, name) for one in used) for name in names}


def counts_of(usage: TokenUsage) -> Counts:
    """Convert disjoint token classes into inclusive counts."""
    return Counts(
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
    )


def sum_turns(turns: Iterable[TurnUsage]) -> SessionUsage:
    """Return the sum of turns."""
    listed = list(turns)
    return SessionUsage(turns=len(listed), **_added(listed, (*_TOKENS, "requests", "tool_calls", "duration_seconds")))


def usage_to_dict(usage: object) -> dict[str, Any]:
    """Return a usage object as a dictionary under its own names; empty for anything else.

    It may be a mapping, a pydantic model (`model_dump`, `dict`), a named tuple, or any object with fields or properties
    of known names. Our `TokenUsage` gets the names of `Counts`.
    """
    return usage_fields(counts_of(usage) if isinstance(usage, TokenUsage) else usage)


def read_counts(usage: object) -> Counts:
    """Read any usage object: pydantic-ai's, ours, or a provider's."""
    if type(usage) is Counts:
        return usage
    data = usage_to_dict(usage)
    return replace(
        counts_of(read_usage(usage)[0]),
        requests=read_count(data.get("requests"))[0],
        tool_calls=read_count(data.get("tool_calls"))[0] or read_count(data.get("toolCalls"))[0],
    )
