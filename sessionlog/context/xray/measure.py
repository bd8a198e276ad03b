"""Measuring: which pieces a message or a tool definition is made of, and how many tokens each of them takes.

Messages are read by `messages.read`, whatever their provider. What is no text has a rule of its own:

- a picture or a page counts `IMAGE` tokens, never the length of its base64;
- reasoning that only its provider can read counts a sixth of its length: base64 of text at about four letters a token;
- each message, call and result takes some tokens of framing in a provider's template, and tool definitions bring the
  provider's own words about calling tools (`TOOLS`). The numbers are the round middle of what providers document and
  what their counts show; they are the same for every log.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.context.xray.pieces import Piece, digest_of, size_of
from sessionlog.messages.entry import part_text
from sessionlog.messages.json_value import decode_json
from sessionlog.messages.message import Content, ContentPart, Message, ToolRequest
from sessionlog.messages.read import ROLES, read_entry

Json = Any

IMAGE = 1500
MESSAGE, CALL, RESULT, TOOLS = 5, 14, 8, 250
_SEALED = 6
_AROUND = 40  # bytes of JSON around a text
_TARGET = 80
_LONGEST = 200  # characters of a name or an id
_ALONE = frozenset({"function_call", "function_call_output", "tool_use", "tool", "function"})  # framed as they are
_TARGETS = (
    "file_path", "path", "filePath", "absolute_path", "filename", "file", "target_file", "command", "cmd", "url",
    "query", "pattern",
)  # fmt: skip
_PATHS = frozenset(_TARGETS[:7])
_WORDS = re.compile(r"[A-Z]?[a-z]+")
_LOOKS = frozenset({"read", "view", "open", "cat"})
_REMINDER = "<system-reminder>"
_MEMORY = re.compile(r"^Contents of [^\n]*\.md\b", re.MULTILINE)
MEMORY, REMINDERS = "memory files", "reminders"
"""What Claude Code puts into a user's message: files such as CLAUDE.md, and words of its own."""
_PLACEHOLDER = re.compile(r"^\[(?:image|document)\]$", re.MULTILINE)


HOW_TO_CALL = Piece(role="system", kind="words", tokens=TOOLS, name="how to call tools (the provider's words)")
"""What a provider adds where there are tools."""


class SizedMessage:
    """A message of which the pieces are measured when they are asked for: most messages are gone by then.

    Attributes:
        role: Who says it.
        size: Its length in bytes as JSON, about.
        count: How many messages it holds: providers put the results of several tools into one.
    """

    __slots__ = ("_message", "_model", "_pieces", "_placeholders", "count", "role", "size")

    def __init__(self, message: Json, model: str | None, *, placeholders: bool, count: int = 1) -> None:
        content = message.get("content") if isinstance(message, Mapping) else None
        self.role = message.get("role") if isinstance(message, Mapping) else None
        self.size = (
            len(content) + _AROUND if isinstance(content, str) and "tool_calls" not in message else size_of(message)
        )
        self.count = count
        self._message = message
        self._model = model
        self._placeholders = placeholders
        self._pieces: tuple[Piece, ...] | None = None

    @property
    def is_measured(self) -> bool:
        """Whether the text is gone."""
        return self._pieces is not None

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces; the text is let go."""
        if self._pieces is None:
            self._pieces = measure_message(self._message, self._model, placeholders=self._placeholders)
            self._message = None
        return self._pieces


class Summed(SizedMessage):
    """Many messages of which only sums are left."""

    __slots__ = ()

    def __init__(self, pieces: tuple[Piece, ...], size: int, *, count: int = 1) -> None:
        super().__init__(None, None, placeholders=False, count=count)
        self._pieces, self.size = pieces, size


def measure_tools(tools: Json, model: str | None) -> tuple[Piece, ...]:
    """Return one piece for each definition of a request's `tools`, and `HOW_TO_CALL` where there are any."""
    if not isinstance(tools, list | tuple) or not tools:
        return ()
    return (*(measure_tool(tool, model) for tool in tools), HOW_TO_CALL)


def measure_message(message: Json, model: str | None, *, placeholders: bool = False) -> tuple[Piece, ...]:
    """Return the pieces of one element of a request's `messages`.

    Args:
        message: As logged.
        model: Whose tokenizer counts.
        placeholders: Whether a line `[image]` stands for a picture, as in what is made from other agents' logs.
    """
    fields = message if isinstance(message, Mapping) else {"content": message}
    role, named = fields.get("role"), ""
    is_known = role in ROLES if isinstance(role, str) else role is None and isinstance(fields.get("type"), str)
    if not is_known:
        named, message = str(role or "unknown")[:40], {**fields, "role": "user"}
    made = [
        piece for one in read_entry(message).messages for piece in _pieces(one, named, model, placeholders=placeholders)
    ]
    made = made or [Piece(role=ROLES.get(str(role), "user"), kind="text", tokens=0)]
    if any(piece.kind == "result" for piece in made):  # words beside results are the agent's, not a prompt
        made = [replace(piece, role="system") if piece.kind == "text" else piece for piece in made]
    if not any(isinstance(word, str) and word in _ALONE for word in (role, fields.get("type"))):
        made[0] = replace(made[0], tokens=made[0].tokens + MESSAGE)
    return tuple(made)


def measure_tool(tool: Json, model: str | None) -> Piece:
    """Return the size of one tool definition, as templates print it."""
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    named = inner if isinstance(inner, Mapping) else tool
    name = named.get("name") if isinstance(named, Mapping) else ""
    sent = tool if isinstance(inner, Mapping) else {"type": "function", "function": tool}
    return Piece(
        role="system", kind="tool", tokens=int(count_tokens_json(sent, model)), name=str(name or "unnamed")[:_LONGEST]
    )


def _pieces(message: Message, named: str, model: str | None, *, placeholders: bool) -> list[Piece]:
    """What a message is made of, one piece at least; `named` is a role that providers do not have."""
    role = named or message.role
    if message.role == "tool":
        inside = _content(message.content, role, model, placeholders=placeholders)
        tokens = sum(piece.tokens for piece in inside) + RESULT + MESSAGE
        name, call_id = (message.name or "")[:_LONGEST], (message.tool_call_id or "")[:_LONGEST]
        return [Piece(role=role, kind="result", tokens=tokens, name=name, call_id=call_id, mark=_mark(message.content))]
    made: list[Piece] = []
    for key in ("reasoning_content", "reasoning", "thinking"):  # some providers send it beside the content
        text = message.extra.get(key)
        if isinstance(text, str) and text:
            made.append(_text(role, text, model, kind="reasoning"))
            break
    if message.content or not message.tool_calls:
        made += _content(message.content, role, model, placeholders=placeholders)
    return [*made, *(_call(call, model) for call in message.tool_calls)]


def _content(content: Content, role: str, model: str | None, *, placeholders: bool) -> Iterator[Piece]:
    for part in (ContentPart.of_text(content),) if isinstance(content, str) else content:
        text, pictures = part_text(part), 0
        if part.is_media:
            pictures = 1
        elif part.is_reasoning:
            yield _thought(part, role, model)
            continue
        elif placeholders and "]" in text:
            pictures = len(_PLACEHOLDER.findall(text))
        if not part.is_media and (text or not pictures):
            reminds = text.startswith(_REMINDER)
            name = "" if not reminds else MEMORY if _MEMORY.search(text) else REMINDERS
            yield _text("system" if reminds else role, text, model, name=name)
        if pictures:
            yield Piece(role=role, kind="image", tokens=pictures * IMAGE, count=pictures)


def _thought(part: ContentPart, role: str, model: str | None) -> Piece:
    texts = [
        text for text in (part.text, part.extra.get("thinking"), part.extra.get("content")) if isinstance(text, str)
    ]
    sealed = [part.extra.get(key) for key in ("data", "encrypted_content")] if not texts else []
    size = next((len(one) for one in sealed if isinstance(one, str)), 0) // _SEALED
    return Piece(role=role, kind="reasoning", tokens=sum(int(count_tokens(text, model)) for text in texts) + size)


def _call(call: ToolRequest, model: str | None) -> Piece:
    name, given = sys.intern(call.name[:_LONGEST] or "unknown"), call.arguments
    text = given if isinstance(given, str) else call.text
    size = count_tokens_json(given, model) if text is None else count_tokens(text, model)
    given = decode_json(given) if isinstance(given, str) else given
    texts = given if isinstance(given, Mapping) else {}
    key = next((key for key in _TARGETS if isinstance(texts.get(key), str) and texts[key].strip()), "")
    about = texts[key].strip() if key else ""
    is_read = key in _PATHS and not _LOOKS.isdisjoint(word.lower() for word in _WORDS.findall(name))
    return Piece(
        role="assistant", kind="call", tokens=int(count_tokens(name, model)) + int(size) + CALL, name=name,
        target=_short(about), is_read=is_read, call_id=call.id[:_LONGEST], mark=digest_of(about) if about else b"",
    )  # fmt: skip


def _text(role: str, text: str, model: str | None, *, kind: str = "text", name: str = "") -> Piece:
    return Piece(role=role, kind=kind, tokens=int(count_tokens(text, model)), name=name, mark=_mark(text))


def _mark(content: Content) -> bytes:
    if not content:
        return b""
    if isinstance(content, str):
        return digest_of(content)
    return digest_of([(part.text, part.image_url, part.data, part.extra) for part in content])


def _short(text: str) -> str:
    """A path keeps its end, where the name is; a text of more lines its first."""
    line = text.split("\n", 1)[0]
    if len(line) <= _TARGET and line == text:
        return line
    return f"…{line[1 - _TARGET :]}" if line == text and "/" in line and " " not in line else f"{line[: _TARGET - 1]}…"
