"""Splice: a change of the conversation — where, how many elements go, and which come.

A conversation is a list of elements as a log counts them: an element of a request's `messages`, an answer, or a tool's
result. Applying the splices of a log in their order, each to what the ones before it left, gives the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from sessionlog.messages.entry import Entry
from sessionlog.messages.message import Message
from sessionlog.messages.read import read_entry, read_result
from sessionlog.transcript.meaning import Meaning, meaning_of

Json = Any
T = TypeVar("T")
Cause = Literal[
    "prompt", "request", "answer", "partial", "result", "added", "inherited", "compaction", "undone", "cleared"
]  # fmt: skip
"""Why a conversation changed: the prompt of a log whose requests hold no messages; a request; an answer; what had come
of one that broke off; a tool's result; messages that a program put in; those of a parent, or of before, that no request
repeats; a truncation or a summary; an undo; a clear."""


class Added:
    """An element that comes into the conversation; it is read when its messages are asked for.

    Attributes:
        raw: As logged: an element of `messages`; of an answer or a result the payload of its event.
        spelling: What a request's element is recognised by without reading it; empty for what no request has sent.
        new: The messages in it that were not said before, in their order.
    """

    def __init__(self, raw: Json, read: Callable[[Any], Entry] = read_entry) -> None:
        self.raw = raw
        self.spelling = b""
        self.new: tuple[Message, ...] = ()
        self._read = read

    @property
    def fields(self) -> Mapping[str, Json]:
        """The fields of what was logged; none where it is no object."""
        return self.raw if isinstance(self.raw, Mapping) else {}

    @property
    def is_summary(self) -> bool:
        """Whether it stands for what a compaction took out."""
        return self.fields.get("summary") is True

    @cached_property
    def entry(self) -> Entry:
        """Its messages."""
        return self._read(self.raw)

    @cached_property
    def meaning(self) -> Meaning:
        """The digests of its messages; the fold sets it where it is known without reading them."""
        return meaning_of(self.entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """A change of the conversation.

    Attributes:
        cause: Why.
        start: The index of the first element that changes.
        removed: How many elements go there.
        added: What comes in their place.
        missing: Earlier messages that a request goes on from and the log does not hold.
        is_split: Elements with several messages become as many elements before this change is made: a program counts
            single messages.
        left_out: Messages of the conversation before that a request with a whole prompt does not have.
        kept: Those that it has.
        gone: Of an undo or a clear, the digests of the messages that go, in their order.
        flaw: What does not fit, in words; then nothing changes.
    """

    cause: Cause
    start: int = 0
    removed: int = 0
    added: tuple[Added, ...] = ()
    missing: int = 0
    is_split: bool = False
    left_out: int = 0
    kept: int = 0
    gone: tuple[bytes, ...] = ()
    flaw: str = ""

    def split(self, items: list[T], parts: Callable[[T], Iterable[T]]) -> None:
        """Prepare a list with an item for each element: where single messages count, an item becomes its `parts`."""
        if self.is_split:
            items[:] = [part for item in items for part in parts(item)]

    def put(self, items: list[T], added: Iterable[T]) -> list[T]:
        """Change a list with an item for each element, and return the items that are gone."""
        changed = slice(self.start, self.start + self.removed)
        gone = items[changed]
        items[changed] = added
        return gone


def answer_entry(data: Mapping[str, Json], streamed: str = "") -> Entry:
    """Return the answer of an `llm.response` as an element.

    Args:
        data: The payload.
        streamed: The pieces that came before it; they stand for an answer without a text.
    """
    if isinstance(data.get("message"), Mapping):
        return read_entry(data["message"])
    content = data.get("content")
    rest = {key: data[key] for key in ("tool_calls", "reasoning", "partial") if data.get(key) is not None}
    return read_entry({"role": "assistant", "content": streamed if content is None else content, **rest})


def result_entry(data: Mapping[str, Json], call_id: str | None = None) -> Entry:
    """Return the result of a `tool.call` as an element; an error stands for an output that is missing.

    Args:
        data: The payload.
        call_id: The id of its call, for a payload that has none.
    """
    if isinstance(data.get("message"), Mapping):
        return read_entry(data["message"])
    output, logged, name = data.get("output"), data.get("id"), data.get("tool")
    return read_result(
        data.get("error") if output is None else output,
        call_id=logged if isinstance(logged, str) and logged else call_id,
        name=name if isinstance(name, str) and name else "unknown",
        failed=bool(data.get("error")),
    )
