"""Conversation: the history of one session, its token estimate and its token usage, in memory.

The estimate is a running sum: each message is estimated once. `restore_from` reads and checks all of its input before
it changes anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sessionlog.conversation.history.rules import check_history
from sessionlog.conversation.history.settings import ConversationSettings
from sessionlog.conversation.history.truncation import Count, Truncation, truncate
from sessionlog.conversation.history.weight import cap_message, estimate_tokens
from sessionlog.errors import InvalidHistory, MissingField
from sessionlog.events.times import format_time, parse_time
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.events.usage import read_usage
from sessionlog.messages.message import Message, Role, ToolRequest
from sessionlog.messages.message_json import content_from_json, message_to_dict, messages_from, request_from_dict


class TokenCounter:
    """The token usage of a session, summed up.

    Attributes:
        usage: Tokens in disjoint classes.
        requests: The number of requests to a model.
    """

    __slots__ = ("requests", "usage")

    def __init__(self, usage: TokenUsage | None = None, requests: int = 0) -> None:
        self.usage = usage or TokenUsage()
        self.requests = requests

    def add(self, usage: TokenUsage | None) -> None:
        """Count one more request; its usage is None where it is unknown."""
        self.requests += 1
        if usage is not None:
            self.usage += usage

    def to_dict(self) -> dict[str, int]:
        """Return the token classes of a native log, and `requests`."""
        return {**self.usage.to_dict(), "requests": self.requests}

    @classmethod
    def from_dict(cls, value: Any) -> TokenCounter:
        """Read what `to_dict` returned; None gives an empty counter.

        Raises:
            InvalidHistory: A count is not a number.
        """
        if value is None:
            return cls()
        usage, issues = read_usage(value)
        requests, issue = read_count(value.get("requests") if isinstance(value, Mapping) else None)
        problems = [*issues, *([f"requests: {issue}"] if issue else [])]
        if problems:
            raise InvalidHistory(f"token_usage: {'; '.join(problems)}")
        return cls(usage, requests)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Conversation:
    """A history that can be extended, truncated and saved.

    Attributes:
        settings: Its budget and strategy.
        token_counter: The usage of its requests.
    """

    def __init__(
        self,
        settings: ConversationSettings | None = None,
        *,
        messages: Iterable[Message] = (),
        count: Count | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Start with a copy of `messages`.

        Args:
            settings: None uses the defaults.
            messages: The history so far.
            count: Estimates the tokens of one message; None uses `estimate_tokens`.
            clock: Returns nanoseconds since 1970.
        """
        self.settings = settings or ConversationSettings()
        self.token_counter = TokenCounter()
        self._count: Count = count or estimate_tokens
        self._start_ns = clock()
        self._messages: list[Message] = []
        self._counts: list[int] = []
        self._tokens = 0
        self.replace_messages(messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history."""
        return tuple(self._messages)

    @property
    def message_count(self) -> int:
        """The number of messages."""
        return len(self._messages)

    @property
    def estimated_tokens(self) -> int:
        """The estimated tokens of the history, without the system text."""
        return self._tokens

    @property
    def start_time(self) -> datetime:
        """When the conversation started, UTC."""
        return _EPOCH + timedelta(microseconds=self._start_ns // 1000)

    def get_history(self) -> list[Message]:
        """Return a copy of the history."""
        return list(self._messages)

    def add_message(self, role: Role | Message, content: Any = None, **extra: Any) -> Message:
        """Append a message and return it as stored: one of more than 24 MiB is shortened, with a note in its text.

        Args:
            role: The role, or a whole message, then without other arguments.
            content: A text, or a list of texts and content parts, as values or as JSON.
            **extra: `tool_calls` (as values or as JSON), `tool_call_id`, `name` and `partial` are fields; anything
                else goes into the message's `extra`.

        Raises:
            InvalidHistory: The arguments make no valid message; the history is unchanged.
        """
        if isinstance(role, Message) and (content is not None or extra):
            raise TypeError("a whole message is added without content and fields; dataclasses.replace changes one")
        message = cap_message(role if isinstance(role, Message) else _message(role, content, extra))
        tokens = self._count(message)
        self._messages.append(message)
        self._counts.append(tokens)
        self._tokens += tokens
        return message

    def pop_last_message(self) -> Message | None:
        """Remove the last message and return it; None if there is none."""
        if not self._messages:
            return None
        self._tokens -= self._counts.pop()
        return self._messages.pop()

    def clear_history(self) -> None:
        """Remove all messages and reset the token counter."""
        self._set([], [])
        self.token_counter = TokenCounter()

    def replace_messages(self, messages: Iterable[Message]) -> None:
        """Replace the history; messages that it has already are not estimated again.

        Raises:
            InvalidHistory: An element is not a Message; the history is unchanged.
        """
        found = list(messages)
        for n, message in enumerate(found):
            if not isinstance(message, Message):
                raise InvalidHistory(f"messages[{n}]: {type(message).__name__}; it is a Message")
            found[n] = cap_message(message)
        known = {id(message): tokens for message, tokens in zip(self._messages, self._counts, strict=True)}
        counts = [known[id(message)] if id(message) in known else self._count(message) for message in found]
        self._set(found, counts)

    def needs_truncation(self, system_estimate: int = 0) -> bool:
        """Whether the estimate has reached the threshold.

        Args:
            system_estimate: Tokens of a request besides the history: system text and tools.
        """
        threshold = self.settings.truncation_threshold * self.settings.max_conversation_tokens
        return self._tokens + system_estimate >= threshold

    def truncate_history(self, system_estimate: int = 0) -> Truncation:
        """Truncate the history if it has reached the threshold, and return what that did.

        Args:
            system_estimate: Tokens of a request besides the history: system text and tools.

        Raises:
            InvalidHistory: The user's own strategy or summary returned something unusable. Exceptions raised by these
                functions pass through. Either way the history is unchanged.
        """
        cut = truncate(self._messages, self._counts, self.settings, count=self._count, system_estimate=system_estimate)
        self._set(cut.messages, cut.counts)
        return cut.truncation

    def to_serializable(self) -> dict[str, Any]:
        """Return a JSON value that `restore_from` reads; functions in the settings are left out."""
        return {
            "messages": [message_to_dict(message) for message in self._messages],
            "token_usage": self.token_counter.to_dict(),
            "start_time": format_time(self._start_ns),
            "settings": self.settings.to_dict(),
        }

    def restore_from(self, data: Mapping[str, Any], *, settings: ConversationSettings | None = None) -> None:
        """Replace this conversation with a saved one, its token usage included.

        Args:
            data: What `to_serializable` returned. Without `token_usage` the counter is reset; without `start_time` or
                `settings` the current ones stay.
            settings: Used instead of the saved ones.

        Raises:
            MissingField: There are no messages, or a message lacks a field.
            InvalidHistory: It is no saved conversation; the message states where and why. Nothing is changed.
        """
        if not isinstance(data, Mapping):
            raise InvalidHistory(f"a saved conversation is an object, not {type(data).__name__}")
        if "messages" not in data:
            raise MissingField("no 'messages'; a saved conversation has them")
        messages = messages_from(data["messages"])
        check_history(messages)
        counter = TokenCounter.from_dict(data.get("token_usage"))
        start_ns = _start(data["start_time"]) if data.get("start_time") is not None else self._start_ns
        if settings is None:
            saved = data.get("settings")
            settings = self.settings if saved is None else self.settings.with_saved(saved)
        self.replace_messages(messages)
        self.settings, self.token_counter, self._start_ns = settings, counter, start_ns

    def _set(self, messages: list[Message], counts: list[int]) -> None:
        self._messages, self._counts, self._tokens = messages, counts, sum(counts)


def _message(role: Role, content: Any, extra: dict[str, Any]) -> Message:
    calls = extra.pop("tool_calls", None) or ()
    if isinstance(calls, list | tuple):
        calls = tuple(
            call if isinstance(call, ToolRequest) else request_from_dict(call, f"tool_calls[{n}]")
            for n, call in enumerate(calls)
        )
    known = {key: extra.pop(key, None) for key in ("tool_call_id", "name", "partial")}
    more = extra.pop("extra", None) or {}
    pieces = content_from_json(content) if isinstance(content, list | tuple) else content
    return Message(role, pieces, tool_calls=calls, extra={**more, **extra}, **known)


def _start(value: Any) -> int:
    start_ns = parse_time(value)
    if start_ns is None:
        raise InvalidHistory(f"start_time: {value!r:.60} is no RFC 3339 time")
    return start_ns
