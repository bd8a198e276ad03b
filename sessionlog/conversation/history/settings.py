"""ConversationSettings: how long a history may grow, how it is truncated, how failed requests are retried.

The constructor checks every value, so code that uses the settings need not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sessionlog.errors import InvalidHistory, InvalidSettings
from sessionlog.messages.message import Message

Summary = Callable[[Sequence[Message]], str]
"""Returns the summary of messages that are about to be dropped."""

Strategy = Callable[[Sequence[Message], "ConversationSettings"], Sequence[Message]]
"""A custom truncation: the history and the settings → the remaining history."""

STRATEGIES = ("drop_oldest", "summarise")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSettings:
    """The settings of a conversation, each with its default.

    Attributes:
        max_conversation_tokens: The budget of a history in estimated tokens, the system text included.
        truncation_threshold: The part of the budget at which the history is truncated, 0 to 1.
        truncation_keep_recent: The number of messages at the end that are never dropped.
        truncation_strategy: `drop_oldest`, `summarise` (needs `summary`), or a custom function.
        summary: Returns the text that replaces dropped messages; `summarise` drops down to half of the budget. The
            summary may take a tenth of the budget, and never more than what it replaces; a longer one is cut at its
            end, with a warning in the `Truncation`.
        auto_truncate: Truncate before a turn where needed; False leaves it to `truncate_history`.
        auto_save: Save after every turn where there is a store.
        max_tool_rounds: How often the tools of one turn may run before the turn fails.
        retry_attempts: The largest number of attempts of a request that fails for a transient reason; 1 never retries.
        retry_initial_s: Seconds before the second attempt; doubled before each further one.
        retry_max_s: The longest pause, also where a provider asks for a longer one.
        retry_jitter_s: Random seconds, up to this many, added to each pause.

    Raises:
        InvalidSettings: A value is not allowed; the message names the field and what is. It is a ValueError.
    """

    max_conversation_tokens: int = 100_000
    truncation_threshold: float = 0.8
    truncation_keep_recent: int = 10
    truncation_strategy: str | Strategy = "drop_oldest"
    summary: Summary | None = None
    auto_truncate: bool = True
    auto_save: bool = True
    max_tool_rounds: int = 25
    retry_attempts: int = 4
    retry_initial_s: float = 0.5
    retry_max_s: float = 30.0
    retry_jitter_s: float = 0.5

    def __post_init__(self) -> None:
        for name, (is_allowed, allowed) in _ALLOWED.items():
            value = getattr(self, name)
            if not is_allowed(value):
                raise InvalidSettings(f"{name} is {value!r:.80}; it is {allowed}")
        if self.truncation_strategy == "summarise" and self.summary is None:
            raise InvalidSettings(
                "truncation_strategy 'summarise' needs `summary`, a function of the messages to a text"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON, without functions."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if name != "summary" and not callable(value)}

    def with_saved(self, value: Any) -> ConversationSettings:
        """Return these settings with values saved by `to_dict`; functions are kept from these settings.

        Raises:
            InvalidHistory: The value is not an object, or a saved setting is not allowed.
        """
        if not isinstance(value, Mapping):
            raise InvalidHistory(f"settings: {type(value).__name__}; it is an object")
        known = {one.name for one in fields(self)} - {"summary"}
        try:
            return replace(self, **{name: item for name, item in value.items() if name in known})
        except InvalidSettings as error:
            raise InvalidHistory(
                f"settings: {error}. settings=ConversationSettings(...) replaces the saved ones"
            ) from error


def _whole(least: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: type(value) is int and value >= least, f"a whole number, {least} or more"


def _number(most: float = math.inf) -> tuple[Callable[[Any], bool], str]:
    def is_allowed(value: Any) -> bool:
        return type(value) in {int, float} and math.isfinite(value) and 0 <= value <= most

    return is_allowed, "a number of seconds, 0 or more" if most == math.inf else f"a number from 0 to {most:g}"


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_strategy(value: Any) -> bool:
    return callable(value) or (isinstance(value, str) and value in STRATEGIES)


def _is_function_or_none(value: Any) -> bool:
    return value is None or callable(value)


_ALLOWED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_conversation_tokens": _whole(1),
    "truncation_threshold": _number(1),
    "truncation_keep_recent": _whole(0),
    "truncation_strategy": (_is_strategy, "'drop_oldest', 'summarise', or a function of the history and the settings"),
    "summary": (_is_function_or_none, "a function of the messages to a text, or None"),
    "auto_truncate": (_is_bool, "True or False"),
    "auto_save": (_is_bool, "True or False"),
    "max_tool_rounds": _whole(0),
    "retry_attempts": _whole(1),
    "retry_initial_s": _number(),
    "retry_max_s": _number(),
    "retry_jitter_s": _number(),
}
