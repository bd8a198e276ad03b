"""Inherited history: read a fork's events together with the conversation it continues from its parent's log.

Some agents write only the fork's own events into its log. Then the parent's conversation is inserted as one event in
the form that our own forks have: `history.add` with the reason `fork`, the messages, and the parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import Message
from sessionlog.messages.message_json import message_to_dict
from sessionlog.sources.protocol import Log, Parent
from sessionlog.transcript.fold import OWN, ConversationFold

_MAX_GENERATIONS = 20
_MAX_SIZE = 16 << 20  # characters of an inherited conversation; older messages are left out
NOT_LOGGED = -1
"""The `seq` of an event that is in no log."""


def read_session(log: Log, session: str | None = None) -> Iterator[Event | Problem]:
    """Yield a session's events and problems, with the inherited conversation after the first event.

    Args:
        log: Its log.
        session: Which of the log's sessions; None for the first.

    Raises:
        LogNotReadable: The log cannot be opened.
        MissingExtra: It is packed, and no decoder is installed.
    """
    return _with_parent(log.source.read(log.path, session), log, log.path, _MAX_GENERATIONS)


def _with_parent(events: Iterable[Event | Problem], log: Log, path: str, generations: int) -> Iterator[Event | Problem]:
    """Yield events, and after the first one what the log at `path` inherits from its parent."""
    parent = log.source.parent_of(path) if generations else None
    rest = iter(events)
    if parent is not None:
        for item in rest:
            yield item
            if isinstance(item, Event):
                yield _inheritance(item, log, parent, generations)
                break
    yield from rest


def _inheritance(first: Event, log: Log, parent: Parent, generations: int) -> Event:
    named: dict[str, Any] = {"session": parent.session}
    messages: list[Message] = []
    left_out = 0
    if parent.path:
        named["path"] = parent.path
        try:
            messages, left_out = _conversation(log, parent, generations)
        except (LogNotReadable, MissingExtra) as error:
            named["missing"] = str(error)
    else:
        named["missing"] = "its log is gone"
    if left_out:
        named["missing"] = f"its first {left_out:,} messages"
    data = {"reason": "fork", "parent": named, "messages": [message_to_dict(message) for message in messages]}
    return Event(session_id=first.session_id, seq=NOT_LOGGED, type="history.add", ts=first.ts, data=data)


class _Element(NamedTuple):
    """An element of the parent's conversation; one that was left out has only the number of its messages."""

    messages: tuple[Message, ...]
    size: int
    left_out: int = 0

    def split(self) -> list[_Element]:
        single = [_Element((message,), _size((message,))) for message in self.messages]
        return single + [_Element((), 0, 1)] * self.left_out


def _conversation(log: Log, parent: Parent, generations: int) -> tuple[list[Message], int]:
    """Return the conversation at the end of a parent's part, and how many of its messages are left out."""
    fold = ConversationFold(own=log.source.id in OWN, finds_new=False)
    elements: list[_Element] = []
    size = kept_from = 0  # characters that are held, and the first element that is
    for item in _with_parent(parent.read(), log, parent.path, generations - 1):
        for splice in fold.apply(item) if isinstance(item, Event) else ():
            splice.split(elements, _Element.split)
            added = [_Element(one.entry.messages, _size(one.entry.messages)) for one in splice.added]
            gone = splice.put(elements, added)
            size += sum(one.size for one in added) - sum(one.size for one in gone)
            kept_from = 0 if splice.is_split else min(kept_from, splice.start)
            while size > _MAX_SIZE and kept_from < len(elements) - 1:
                oldest = elements[kept_from]
                size -= oldest.size
                elements[kept_from] = _Element((), 0, len(oldest.messages) + oldest.left_out)
                kept_from += 1
    messages = [message for one in elements for message in one.messages]
    return messages, sum(one.left_out for one in elements)


def _size(messages: Iterable[Message]) -> int:
    return sum(len(json_text(message_to_dict(message))) for message in messages)
