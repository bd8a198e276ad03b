"""Splice: a change of the conversation — the index, how many elements are removed, and the elements added there.

A conversation is a list of elements as a log counts them: an element of a request's `messages`, an answer, or a tool's
result. Applying all splices of a log in order to an empty list gives the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct

from sessionlog.messages.entry import Entry
from sessionlog.messages.json_value import valid_text
from sessionlog.messages.message import Message
from sessionlog.messages.read import read_entry, read_result
from sessionlog.transcript.digests import Digests, digest_text, digests_of, has_content

Json = Any
T = TypeVar("T")
Cause = Literal[
    "prompt", "request", "answer", "partial", "result", "added", "inherited", "compaction", "undone", "cleared"
]  # fmt: skip
"""Why a conversation changed: the prompt of a log whose requests hold no messages; a request; an answer; the received
part of an interrupted answer; a tool's result; messages that a program added; messages of a parent or an earlier part
that no request repeats; a truncation or a summary; an undo; a clear."""


_PLAIN = ("user", "assistant", "system")


class Added:
    """An element added to the conversation; its messages are read on first access.

    Most elements are a role and a text and nothing else. They are counted, digested and compared without being read.

    Attributes:
        raw: As logged: an element of `messages`, or the payload of an answer's or a result's event.
        raw_digest: The digest of a request's element as logged; empty for elements that no request has sent.
        role: Its role where it is a role and a text; empty for any other element.
        text: That text.
    """

    __slots__ = ("_digests", "_entry", "_new", "_read", "raw", "raw_digest", "role", "text")

    def __init__(self, raw: Json, read: Callable[[Any], Entry] = read_entry, *, answer: str | None = None) -> None:
        """Make an element.

        Args:
            raw: As logged.
            read: Reads it.
            answer: Its text, where it is an answer without anything else.
        """
        self.raw = raw
        self.raw_digest = b""
        self.role, self.text = ("", "") if answer is None else ("assistant", answer)
        self._read = read
        self._entry: Entry | None = None
        self._digests: Digests | None = None
        self._new: tuple[Message, ...] | None = ()
        if read is read_entry and type(raw) is dict and len(raw) == 2:
            role, text = raw.get("role"), raw.get("content")
            if type(text) is str and role in _PLAIN:
                self.role, self.text = role, text

    @property
    def fields(self) -> Mapping[str, Json]:
        """`raw` as a mapping; empty where it is no object."""
        return self.raw if isinstance(self.raw, Mapping) else {}

    @property
    def is_summary(self) -> bool:
        """Whether it is the summary that a compaction left."""
        return self.fields.get("summary") is True

    @property
    def entry(self) -> Entry:
        """Its messages."""
        if self._entry is None:
            self._entry = self._read(self.raw)
        return self._entry

    @property
    def digests(self) -> Digests:
        """The digests of its messages; the fold sets them where it knows them without reading the messages."""
        if self._digests is None:
            is_plain = self.role != ""
            self._digests = (digest_text(self.role, valid_text(self.text)),) if is_plain else digests_of(self.entry)
        return self._digests

    @digests.setter
    def digests(self, digests: Digests) -> None:
        self._digests = digests

    @property
    def new(self) -> tuple[Message, ...]:
        """Its messages that are not in the log before, in order."""
        if self._new is None:
            self._new = tuple(filter(has_content, self.entry.messages))
        return self._new

    @new.setter
    def new(self, new: tuple[Message, ...]) -> None:
        self._new = new

    def mark_new(self) -> None:
        """Mark all of its messages as new, except empty ones; there must be one that is not empty."""
        self._new = None

    @property
    def is_new(self) -> bool:
        """Whether any of its messages is new."""
        return self._new != ()

    @property
    def is_new_prompt(self) -> bool:
        """Whether it holds a user's prompt that is new."""
        if self.role:
            return self.role == "user" and self.is_new
        return any(message.role == "user" for message in self.new) and self.entry.is_prompt


class Splice(Struct, frozen=True, kw_only=True):
    """A change of the conversation.

    Attributes:
        cause: Why.
        start: The index of the first element that changes.
        removed: How many elements are removed there.
        added: The elements that replace them.
        missing: How many earlier messages a request builds on that the log does not hold.
        is_split: Before this change, elements with several messages are split into one element per message, because
            the change counts single messages.
        left_out: How many messages of the conversation before are not in a request with a whole prompt.
        kept: How many of them are in it.
        removed_digests: Of an undo or a clear, the digests of the removed messages, in order.
        problem: Why the change does not fit; then nothing changes.
    """

    cause: Cause
    start: int = 0
    removed: int = 0
    added: tuple[Added, ...] = ()
    missing: int = 0
    is_split: bool = False
    left_out: int = 0
    kept: int = 0
    removed_digests: tuple[bytes, ...] = ()
    problem: str = ""

    def split(self, items: list[T], parts: Callable[[T], Iterable[T]]) -> None:
        """Replace, if `is_split`, each item of a list with its `parts`; the list has an item for each element."""
        if self.is_split:
            items[:] = [part for item in items for part in parts(item)]

    def put(self, items: list[T], added: Iterable[T]) -> list[T]:
        """Apply the change to a list with an item for each element; return the removed items."""
        changed = slice(self.start, self.start + self.removed)
        gone = items[changed]
        items[changed] = added
        return gone


def answer_entry(data: Mapping[str, Json], streamed: str = "") -> Entry:
    """Return the answer of an `llm.response` as an element.

    Args:
        data: The payload.
        streamed: The text of its deltas, used for an answer without a text.
    """
    if isinstance(data.get("message"), Mapping):
        return read_entry(data["message"])
    content = data.get("content")
    rest = {key: data[key] for key in ("tool_calls", "reasoning", "partial") if data.get(key) is not None}
    return read_entry({"role": "assistant", "content": streamed if content is None else content, **rest})


def plain_answer(data: Mapping[str, Json], streamed: str = "") -> str | None:
    """Return the text of an answer that has nothing else (see `answer_entry`); None for any other."""
    content = data.get("content")
    text = streamed if content is None else content
    if type(text) is not str or data.get("tool_calls") is not None or data.get("reasoning") is not None:
        return None
    return text if data.get("partial") is None and data.get("message") is None else None


def result_entry(data: Mapping[str, Json], call_id: str | None = None) -> Entry:
    """Return the result of a `tool.call` as an element; without an output it is the error.

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
