"""What a usage object has beside token counts that has a price: tier, region, searches, and responses inside one.

One request of Anthropic's may run several: `iterations` lists them. Those of the type `message` make up the counts of
the usage object. A compaction and the answers of an advisor are billed beside them, unless the counts of all
iterations are those of the usage object: some gateways add them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sessionlog.events.names import UNKNOWN
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.events.usage import read_usage

_STANDARD = frozenset({"", "auto", "default", "standard", "standard_only"})
_ANYWHERE = frozenset({"", "global", "not_available", "unspecified", "unknown"})
_COUNTED = ("message", "fallback_message")
"""Iterations of which the counts of the usage object are made."""

BILLED = ("iterations", "server_tool_use", "service_tier", "speed", "inference_geo")
"""The fields of a usage object that have a price beside its token counts, or change theirs."""

_SEARCHES = (
    ("server_tool_use", "web_search_requests"),  # Anthropic
    ("tool_usage", "web_search", "num_requests"),  # OpenAI's responses
    ("prompt_tokens_details", "web_search_requests"),  # LiteLLM
)


class Billed(NamedTuple):
    """What changes the price of a response's tokens, and what is billed beside them; empty where that is standard."""

    service_tier: str = ""
    speed: str = ""
    region: str = ""
    searches: int = 0


class Inner(NamedTuple):
    """A response inside another one.

    Attributes:
        name: Names it among those of its response.
        kind: What it was for: `compaction`, `advisor`.
        model: The model that answered; "" = that of the response.
        usage: Its tokens.
        searches: As in `read_searches`.
        fields: All that is known of it, under the provider's names.
    """

    name: str
    kind: str
    model: str
    usage: TokenUsage
    searches: int
    fields: Mapping[str, Any]


def read_inner(usage: object, total: TokenUsage) -> tuple[list[Inner], tuple[str, ...]]:
    """Return the responses that are billed beside those counts of a usage object, and what could not be read of them.

    Args:
        usage: The usage object; only a mapping has any.
        total: Its tokens.
    """
    listed = usage.get("iterations") if isinstance(usage, Mapping) else None
    if not isinstance(listed, list | tuple) or all(_kind(one) in _COUNTED for one in listed):
        return [], ()
    found: list[Inner] = []
    issues: list[str] = []
    everything = TokenUsage()
    for one in listed:
        kind, fields = _kind(one), _fields(one)
        used, flaws = read_usage(fields)
        everything += used
        if kind in _COUNTED:
            continue
        searches, flaw = read_searches(fields)
        issues += (f"{kind}: {text}" for text in (*flaws, flaw) if text)
        kind = kind.removesuffix("_message")
        number = 1 + sum(other.kind == kind for other in found)
        model = fields.get("model")
        found.append(Inner(f"{kind}-{number}", kind, model if isinstance(model, str) else "", used, searches, fields))
    is_sum = _counts(everything) == _counts(total)
    return ([], ()) if is_sum else ([one for one in found if one.usage or one.searches], tuple(issues))


def read_billed(response: Mapping[str, Any]) -> tuple[Billed, str | None]:
    """Return what the price of a payload of llm.response depends on, and what is wrong with it."""
    usage = _fields(response.get("usage"))
    searches, issue = read_searches(usage)
    if response.get("searches") is not None:
        searches, issue = read_count(response["searches"])
    return Billed(
        read_tier(response.get("service_tier") or usage.get("service_tier")),
        read_speed(response.get("speed") or usage.get("speed")),
        read_region(response.get("region") or usage.get("inference_geo")),
        searches,
    ), issue


def read_whole(usage: object) -> tuple[TokenUsage, tuple[str, ...]]:
    """Return the tokens of a usage object with those of the responses inside it, and what could not be read."""
    total, issues = read_usage(usage)
    inner, flaws = read_inner(usage, total)
    for one in inner:
        total += one.usage
    return total, issues + flaws


def billed_fields(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an SDK's usage object that are billed, under Anthropic's names, for one with our counts.

    pydantic-ai has them as `details`: its counts include those of compactions, but not those of an advisor, whose model
    it does not name.
    """
    found = {name: usage[name] for name in BILLED if usage.get(name)}
    details = _fields(usage.get("details"))
    searches = read_searches(usage)[0] or read_count(details.get("web_search_requests"))[0]
    if searches and "server_tool_use" not in found:
        found["server_tool_use"] = {"web_search_requests": searches}
    advised = {name.removeprefix("advisor_"): details[name] for name in details if name.startswith("advisor_")}
    if advised:
        found["iterations"] = [advised | {"type": "advisor_message", "model": UNKNOWN}]
    return found


def read_searches(data: Mapping[str, Any]) -> tuple[int, str | None]:
    """Return how many web searches of the provider's own tool are billed, and what is wrong with the number."""
    for path in _SEARCHES:
        value: Any = data
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if value is not None:
            count, issue = read_count(value)
            return count, issue and f"{path[-1]}: {issue}"
    return 0, None


def read_tier(value: object) -> str:
    """Return the tier of a request that may have a price of its own, such as `flex`; "" for the standard one.

    OpenAI's `fast` is the tier that its price list calls `priority`.
    """
    tier = _word(value)
    return "" if tier in _STANDARD else "priority" if tier == "fast" else tier


def read_speed(value: object) -> str:
    """Return the mode of a request that may have a price of its own, such as `fast`; "" for the standard one."""
    speed = _word(value)
    return "" if speed in _STANDARD else speed


def read_region(value: object) -> str:
    """Return where a response was computed, in lower case; "" for anywhere."""
    region = _word(value)
    return "" if region in _ANYWHERE else region


def _kind(iteration: object) -> str:
    """The type of an iteration; what has none is a message."""
    return _word(_fields(iteration).get("type")) or "message"


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _word(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


def _counts(usage: TokenUsage) -> tuple[int, int, int, int]:
    return usage.input, usage.cache_read, usage.cache_write, usage.output
