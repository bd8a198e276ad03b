"""Usage objects, our own and those of SDKs, read into disjoint token classes.

In a native log the classes have their own names. The name of an SDK's field decides what it counts, and whether it is
part of another count; the tables below are all that is known about any SDK:

- OpenAI's chat completions and responses, and compatible APIs: cached and reasoning tokens are in details objects, and
  are parts of the input and of the output.
- Anthropic and Bedrock: `cache_read_input_tokens` and `cache_creation_input_tokens` are not part of the input. LiteLLM
  repeats these names with a `prompt_tokens` that is the whole prompt: then they are parts of it.
- Google's usage_metadata: cached content is part of the prompt; thoughts and the prompts of its tools are not part of
  another count.
- pydantic-ai's RequestUsage and RunUsage: cached and reasoning tokens are parts of the input and of the output.

If more tokens were cached than `input_tokens` has, the cached ones are not part of it, whatever the names are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessionlog.events.tokens import MAX_COUNT, TOKEN_CLASSES, TokenUsage, read_count

_PROMPT = ("prompt_tokens", "promptTokens", "promptTokenCount", "prompt_token_count", "prompt_eval_count")
_INPUT = ("input_tokens", *_PROMPT, "request_tokens", "inputTokens")
_OUTPUT = (
    "output_tokens", "completion_tokens", "response_tokens", "outputTokens", "completionTokens",
    "candidatesTokenCount", "candidates_token_count", "eval_count",
)  # fmt: skip
_READ_INSIDE = (
    "cache_read_tokens", "cached_tokens", "cacheReadTokens", "cachedInputTokens", "cachedContentTokenCount",
    "cached_content_token_count", "prompt_cache_hit_tokens",
)  # fmt: skip
_WRITTEN_INSIDE = ("cache_write_tokens", "cacheWriteTokens")
_READ_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens")
_WRITTEN_BESIDE = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheCreationInputTokens")
_SPLIT, _PARTS = "cache_creation", ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_WRITTEN_1H = ("cache_write_1h_tokens", "ephemeral_1h_input_tokens")
_REASONING_INSIDE = (
    "output_reasoning_tokens", "reasoning_tokens", "thinking_tokens", "thoughts_tokens", "reasoningTokens",
)  # fmt: skip
_REASONING_BESIDE = ("thoughtsTokenCount", "thoughts_token_count")
_TOOL_PROMPT_BESIDE = ("toolUsePromptTokenCount", "tool_use_prompt_token_count")
# objects inside a usage object, whose fields are looked up after its own
_INPUT_DETAILS = ("input_tokens_details", "prompt_tokens_details", _SPLIT)
_OUTPUT_DETAILS = ("output_tokens_details", "completion_tokens_details", "details")
_WHOLE_ANSWERS = ("usage", "usage_metadata", "usageMetadata")

_CLASS_NAMES = frozenset({
    *_INPUT, *_OUTPUT, *_READ_INSIDE, *_WRITTEN_INSIDE, *_READ_BESIDE, *_WRITTEN_BESIDE, *_WRITTEN_1H,
    *_REASONING_INSIDE, *_REASONING_BESIDE, *_TOOL_PROMPT_BESIDE,
})  # fmt: skip
_TOTALS = frozenset({"total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "total"})
_NO_CLASS = _TOTALS | frozenset({
    "requests", "tool_calls", "toolCalls", "unmeasured_requests", "cost", "cost_usd", "audio_seconds",
    "input_audio_tokens", "output_audio_tokens", "cache_audio_read_tokens", "prompt_cache_miss_tokens",
    "num_search_queries", "num_sources_used", "citation_tokens", "total_duration", "load_duration",
    "prompt_eval_duration", "eval_duration",
})  # fmt: skip
"""Numbers that are known to be no token class: sums, parts of a class, and counts of other things."""

_DETAILS = frozenset({*_INPUT_DETAILS, *_OUTPUT_DETAILS})
_SUMS = frozenset({*_INPUT, *_OUTPUT})
_NESTED = frozenset({"iterations", "server_tool_use"})  # objects that are billed beside the counts (see `billing`)
_NATIVE = frozenset({*TOKEN_CLASSES, "total"})
_ZEROS = (0,) * len(TOKEN_CLASSES)
_NOTHING: tuple[TokenUsage, tuple[str, ...]] = (TokenUsage(), ())
_READABLE = _CLASS_NAMES | _DETAILS | {*TOKEN_CLASSES, "requests", "tool_calls", "toolCalls"}


def read_usage(value: Any) -> tuple[TokenUsage, tuple[str, ...]]:
    """Read a usage object of any kind; return the token counts, and what could not be read. Never raises.

    A wrong count is 0 and is reported, as is a number under an unknown name; the other counts are kept. A reported
    total is not used: its meaning differs between writers.
    """
    if value is None:
        return _NOTHING
    if isinstance(value, TokenUsage):
        return value, ()
    try:
        return _read(value)
    except Exception as error:  # noqa: BLE001 - a usage object is the caller's code
        return TokenUsage(), (f"usage is a {type(value).__name__} that cannot be read: {type(error).__name__}",)


def loggable_usage(value: Any) -> Any:
    """Return a usage object as it is logged: under the names of native logs if all of it could be read.

    Other fields of an SDK are kept. An object that could not be read wholly is logged as it is, under its own names:
    `read_usage` reads the same from it, and `sessionlog check` reports it.
    """
    if value is None or (type(value) is dict and value.keys() <= _NATIVE):
        return value
    if isinstance(value, TokenUsage):
        return value.to_dict()
    usage, issues = read_usage(value)
    try:
        data = usage_fields(value)
        if issues:
            return data or value
        if not _NESTED.isdisjoint(data):
            data |= {name: _plain(data[name]) for name in _NESTED & data.keys()}
        if not data.keys().isdisjoint(TOKEN_CLASSES):
            return data
        rest = {name: item for name, item in data.items() if item and name not in _CLASS_NAMES | _DETAILS | _TOTALS}
        return usage.to_dict() | rest
    except Exception:  # noqa: BLE001 - a usage object is the caller's code
        return value


def _plain(value: Any) -> Any:
    """Return an SDK's objects, inside its usage object, as dictionaries."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, Mapping | str | int | float) else usage_fields(value)


def _read(value: Any) -> tuple[TokenUsage, tuple[str, ...]]:
    data = value if type(value) is dict else usage_fields(value)
    if "input" in data or "output" in data or (_SUMS.isdisjoint(data) and not data.keys().isdisjoint(TOKEN_CLASSES)):
        return _read_native(data)
    if _CLASS_NAMES.isdisjoint(data):
        inner = next((data[name] for name in _WHOLE_ANSWERS if data.get(name) is not None), None)
        if inner is not None and not _CLASS_NAMES.isdisjoint(data := usage_fields(inner)):
            return _read_foreign(data)
    else:
        return _read_foreign(data)
    if not isinstance(value, Mapping):
        return TokenUsage(), (f"usage is a {type(value).__name__}",)
    if not value or "total" in value:
        return TokenUsage(), _unknown_counts(value, _NATIVE)
    given = ", ".join(sorted(map(str, value)))[:80]
    return TokenUsage(), (f"no token class in {given}; their names are {', '.join(TOKEN_CLASSES)}",)


def _read_native(data: dict[str, Any]) -> tuple[TokenUsage, tuple[str, ...]]:
    counts = list(map(data.get, TOKEN_CLASSES, _ZEROS))
    is_plain = data.keys() <= _NATIVE
    for value in counts:
        if type(value) is not int or not 0 <= value <= MAX_COUNT:
            break
    else:
        if is_plain:
            return TokenUsage(*counts), ()
    issues: list[str] = []
    for place, value in enumerate(counts):
        counts[place], issue = read_count(value)
        if issue:
            issues.append(f"{TOKEN_CLASSES[place]}: {issue}")
    if not is_plain:
        issues += _unknown_counts(data, _NATIVE)
    return TokenUsage(*counts), tuple(issues)


def _read_foreign(data: dict[str, Any]) -> tuple[TokenUsage, tuple[str, ...]]:
    reader = _Reader(data)
    has_prompt = any(data.get(name) is not None for name in _PROMPT)
    given_input, given_output = reader.count(_INPUT), reader.count(_OUTPUT)
    read, written = reader.count(_READ_BESIDE), reader.count(_WRITTEN_BESIDE)
    is_beside = not has_prompt and any(name in data for name in (*_READ_BESIDE, *_WRITTEN_BESIDE, _SPLIT))
    if data.get(_SPLIT) is not None:  # some gateways log the parts alone
        written = max(written, sum(reader.count((name,), (_SPLIT,)) for name in _PARTS))
    read = read or reader.count(_READ_INSIDE, _INPUT_DETAILS)
    written = written or reader.count(_WRITTEN_INSIDE, _INPUT_DETAILS)
    if not is_beside and (has_prompt or read + written <= given_input):
        given_input = max(0, given_input - read - written)
    thoughts = reader.count(_REASONING_BESIDE)
    output = min(MAX_COUNT, given_output + thoughts)
    return TokenUsage(
        input=min(MAX_COUNT, given_input + reader.count(_TOOL_PROMPT_BESIDE)),
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=min(output, thoughts or reader.count(_REASONING_INSIDE, _OUTPUT_DETAILS)),
        cache_write_1h=min(written, reader.count(_WRITTEN_1H, _INPUT_DETAILS)),
    ), (*dict.fromkeys(reader.issues), *_unknown_counts(data, _CLASS_NAMES))


def _unknown_counts(data: Mapping[str, Any], known: frozenset[str]) -> tuple[str, ...]:
    """Name the numbers of a usage object that are not counted because their names are unknown."""
    strange = data.keys() - known - _NO_CLASS
    counted = sorted(str(name)[:80] for name in strange if read_count(data[name])[0])
    return tuple(f"{name}: a number under an unknown name" for name in counted)


def usage_fields(usage: object) -> dict[str, Any]:
    """Return a usage object as a dictionary, under its own names; empty for None.

    Reads mappings, pydantic models (`model_dump`, `dict`), named tuples and any object with fields; if no field has a
    known name, the known names that are attributes of the object.
    """
    if usage is None:
        return {}
    if isinstance(usage, Mapping):
        return dict(usage)
    for method in ("model_dump", "dict", "_asdict"):
        made = _called(usage, method)
        if made is not None:
            return made
    held = getattr(usage, "__dict__", None)
    own = dict(held) if isinstance(held, Mapping) else {}
    if hasattr(type(usage), "__dataclass_fields__"):  # defaults of its class, and fields that have slots
        from dataclasses import fields

        kind: Any = type(usage)
        return {f.name: getattr(usage, f.name) for f in fields(kind) if hasattr(usage, f.name)} | own
    return own if _READABLE & own.keys() else own | _known_attributes(usage)


class _Reader:
    """Reads counts of one usage object by name, and collects what is wrong with them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.issues: list[str] = []

    def count(self, names: Iterable[str], details: Iterable[str] = ()) -> int:
        """Return the first count under one of these names, in the object itself or in its details."""
        for place in (None, *details):
            data = self._data
            if place is not None:
                inner = data.get(place)
                if inner is None:
                    continue
                data = inner if type(inner) is dict else usage_fields(inner)
            if data.keys().isdisjoint(names):
                continue
            for name in names:
                if data.get(name) is None:
                    continue
                count, issue = read_count(data[name])
                if issue:
                    self.issues.append(f"{name}: {issue}")
                if count:
                    return count
        return 0


def _called(usage: object, method: str) -> dict[str, Any] | None:
    try:
        function = getattr(usage, method, None)
        made = function() if callable(function) else None
    except Exception:  # noqa: BLE001 - the caller's code: the next method may work
        return None
    return dict(made) if isinstance(made, Mapping) else None


def _known_attributes(usage: object) -> dict[str, Any]:
    """Return the attributes of an object with known names: slots, properties or attributes of its class."""
    found: dict[str, Any] = {}
    for name in sorted(_READABLE):
        try:
            value = getattr(usage, name, None)
        except Exception:  # noqa: BLE001, S112 - a property is the caller's code: the next name may have a value
            continue
        if value is not None and not callable(value):
            found[name] = value
    return found
