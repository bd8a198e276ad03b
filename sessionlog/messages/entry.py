"""Entry: one element of a message history as its writer stored it, read into messages.

Providers put several messages into one element: Anthropic and Google the results of all tools of a turn, pydantic-ai
the system prompt and the user's. Histories are counted and truncated by elements, so an entry keeps them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.messages.content_text import item_text
from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import ContentPart, Message, ToolRequest

Kind = Literal["system", "user", "assistant", "thinking", "tool_call", "tool_return"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One part of a message, as reports count and show it.

    Attributes:
        kind: Its kind.
        text: Its text; of a tool call its arguments. Files are in it by name, as `[image]`.
        name: The tool that is called, or whose result it is.
        call_id: The id that joins a call and its result.
        arguments: The arguments of a call as a JSON value.
        failed: Whether a tool's result is an error or a request to retry.
        media: How many pictures, documents or recordings it holds.
    """

    kind: Kind
    text: str
    name: str | None = None
    call_id: str | None = None
    arguments: Any = None
    failed: bool = False
    media: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One element of a history.

    Attributes:
        messages: Its messages, tool results first.
        is_response: It comes from the model.
        is_marked: Its writer marks user prompts. Otherwise a user's text beside tool results is a reminder that the
            agent has added, not a prompt.
        timestamp: RFC 3339; None where there is none.
        usage: The usage of the response, as given.
        instructions: A system prompt that is sent beside the history.
        run: The id of the run that it belongs to.
        not_run: Ids of calls that no tool runs for: a structured answer, or calls that came too late.
        problems: What could not be read as a message and was kept as text.
    """

    messages: tuple[Message, ...]
    is_response: bool = False
    is_marked: bool = False
    timestamp: str | None = None
    usage: Any = None
    instructions: str | None = None
    run: str | None = None
    not_run: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    @property
    def has_results(self) -> bool:
        """Whether it holds tool results."""
        return any(message.role == "tool" for message in self.messages)

    @property
    def is_prompt(self) -> bool:
        """Whether it holds a user's prompt."""
        is_user = any(message.role == "user" for message in self.messages)
        return is_user and (self.is_marked or not self.has_results)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that it calls: one name for each call for which a tool runs."""
        calls = (call for message in self.messages for call in message.tool_calls if call.id not in self.not_run)
        return tuple(call.name or "unknown" for call in calls)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of all its messages."""
        return tuple(piece for message in self.messages for piece in pieces_of(message))


def pieces_of(message: Message) -> Iterator[Piece]:
    """Yield the pieces of a message: its reasoning, texts and media in their order, then its tool calls."""
    if message.role == "tool":
        text, media = content_text(message)
        yield Piece(
            kind="tool_return", text=text, media=media, name=message.name, call_id=message.tool_call_id,
            failed=message.failed,
        )  # fmt: skip
        return
    if message.role == "assistant":
        reasoning = message.extra.get("reasoning_content") or message.extra.get("reasoning")
        if isinstance(reasoning, str):
            yield Piece(kind="thinking", text=reasoning)
    if isinstance(message.content, str):
        if message.content or message.role == "user":
            yield Piece(kind=message.role, text=message.content)
    else:
        for part in message.content:
            text = part_text(part)
            if text:
                yield Piece(kind="thinking" if part.is_reasoning else message.role, text=text, media=part.is_media)
    for call in message.tool_calls:
        yield Piece(
            kind="tool_call",
            text=arguments_text(call),
            name=call.name or None,
            call_id=call.id or None,
            arguments=call.arguments,
        )


def arguments_text(call: ToolRequest) -> str:
    """Return the arguments of a call as the model wrote them, or as JSON text."""
    if call.text is not None:
        return call.text
    return call.arguments if isinstance(call.arguments, str) else json_text(call.arguments)


def content_text(message: Message) -> tuple[str, int]:
    """Return the text of a message's content, with media by name (`[image]`), and how many media there are."""
    if isinstance(message.content, str):
        return message.content, 0
    texts = (part_text(part) for part in message.content if not part.is_reasoning)
    return "\n".join(filter(None, texts)), sum(part.is_media for part in message.content)


def part_text(part: ContentPart) -> str:
    """Return the text of a part; without a text, its type in brackets."""
    if part.text is not None:
        return part.text
    if part.is_media:
        return f"[{part.type}]"
    return item_text({"type": part.type, **part.extra})
