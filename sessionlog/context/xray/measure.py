"""Measure messages and tool definitions: their pieces, and the tokens of each piece.

`messages.read` reads messages of any provider. Content that is not text is estimated:

- a picture or a page counts `IMAGE` tokens, never the length of its base64;
- reasoning that only its provider can read counts a sixth of its length: base64 of text at about four letters a token;
- each message, call and result takes some tokens of framing in a provider's template, and with tool definitions the
  provider adds instructions for calling them (`TOOLS`). The numbers are rounded averages of what providers document
  and what their counts show; they are the same for every log.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.context.xray.pieces import Piece, digest_of, size_of
from sessionlog.messages.entry import part_text
from sessionlog.messages.json_value import decode_json, valid_text
from sessionlog.messages.message import Content, ContentPart, Message, ToolRequest
from sessionlog.messages.read import ROLES, read_entry

Json = Any

IMAGE = 1500
MESSAGE, CALL, RESULT, TOOLS = 5, 14, 8, 250
_OPAQUE_RATIO = 6
_JSON_OVERHEAD = 40  # bytes of JSON around a text
_MAX_TARGET = 80
_MAX_NAME = 200  # characters of a name or an id
_UNFRAMED = frozenset(
    {"function_call", "function_call_output", "tool_use", "tool", "function"}
)  # they include their framing
_TARGET_KEYS = (
    "file_path", "path", "filePath", "absolute_path", "filename", "file", "target_file", "command", "cmd", "url",
    "query", "pattern",
)  # fmt: skip
_PATH_KEYS = frozenset(_TARGET_KEYS[:7])
_WORDS = re.compile(r"[A-Z]?[a-z]+")
_READ_VERBS = frozenset({"read", "view", "open", "cat"})
_REMINDER = "<system-reminder>"
_MEMORY = re.compile(r"^Contents of [^\n]*\.md\b", re.MULTILINE)
MEMORY, REMINDERS = "memory files", "reminders"
"""What Claude Code adds to a user's message: files such as CLAUDE.md, and its own reminders."""
_PLAIN_ROLES = ("user", "assistant", "system")
_PLACEHOLDER = re.compile(r"^\[(?:image|document)\]$", re.MULTILINE)


TOOL_INSTRUCTIONS = Piece(
    role="system", kind="instructions", tokens=TOOLS, name="how to call tools (added by the provider)"
)
"""What a provider adds to a request with tools."""


class SizedMessage:
    """A message that is measured on first access, because most messages leave the window before.

    Attributes:
        role: Its role, as logged.
        size: Its approximate length as JSON, in bytes.
        count: How many messages it holds: providers put the results of several tools into one.
        uncounted: The bytes that are kept as text; 0 after it was measured.
    """

    __slots__ = ("_message", "_model", "_pieces", "_placeholders", "count", "role", "size", "uncounted")

    def __init__(self, message: Json, model: str | None, *, placeholders: bool, count: int = 1) -> None:
        fields = message if isinstance(message, Mapping) else {}
        content = fields.get("content")
        self.role = fields.get("role")
        self.size = self.uncounted = (
            len(content) + _JSON_OVERHEAD
            if isinstance(content, str) and "tool_calls" not in fields
            else size_of(message)
        )
        self.count = count
        self._message = message
        self._model = model
        self._placeholders = placeholders
        self._pieces: tuple[Piece, ...] | None = None

    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces; measure them on the first call, and drop the text."""
        if self._pieces is None:
            self._pieces = measure_message(self._message, self._model, placeholders=self._placeholders)
            self._message, self.uncounted = None, 0
        return self._pieces


class Summed(SizedMessage):
    """The sums of many messages."""

    __slots__ = ()

    def __init__(self, pieces: tuple[Piece, ...], size: int, *, count: int = 1) -> None:
        super().__init__(None, None, placeholders=False, count=count)
        self._pieces, self.size, self.uncounted = pieces, size, 0


def measure_tools(tools: Json, model: str | None) -> tuple[Piece, ...]:
    """Return one piece for each definition of a request's `tools`, and `TOOL_INSTRUCTIONS` where there are any."""
    if not isinstance(tools, list | tuple) or not tools:
        return ()
    return (*(measure_tool(tool, model) for tool in tools), TOOL_INSTRUCTIONS)


def measure_message(message: Json, model: str | None, *, placeholders: bool = False) -> tuple[Piece, ...]:
    """Return the pieces of one element of a request's `messages`.

    Args:
        message: As logged.
        model: The model whose tokenizer counts.
        placeholders: Whether a line `[image]` stands for a picture, as in events made from other agents' logs.
    """
    fields = message if isinstance(message, Mapping) else {"content": message}
    role, content, named = fields.get("role"), fields.get("content"), ""
    if len(fields) == 2 and role in _PLAIN_ROLES and isinstance(content, str):  # the result of all below, at once
        first, *rest = _text_pieces(valid_text(content), role, model, placeholders=placeholders)
        return (structs.replace(first, tokens=first.tokens + MESSAGE), *rest)
    is_known = role in ROLES if isinstance(role, str) else role is None and isinstance(fields.get("type"), str)
    if not is_known:
        named, message = str(role or "unknown")[:40], {**fields, "role": "user"}
    made = [
        piece for one in read_entry(message).messages for piece in _pieces(one, named, model, placeholders=placeholders)
    ]
    made = made or [Piece(role=ROLES.get(str(role), "user"), kind="text", tokens=0)]
    if any(piece.kind == "result" for piece in made):  # text beside results is the agent's, not a prompt
        made = [structs.replace(piece, role="system") if piece.kind == "text" else piece for piece in made]
    if not any(isinstance(word, str) and word in _UNFRAMED for word in (role, fields.get("type"))):
        made[0] = structs.replace(made[0], tokens=made[0].tokens + MESSAGE)
    return tuple(made)


def measure_tool(tool: Json, model: str | None) -> Piece:
    """Return one piece for a tool definition, in the form that providers' templates have."""
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    named = inner if isinstance(inner, Mapping) else tool
    name = named.get("name") if isinstance(named, Mapping) else ""
    sent = tool if isinstance(inner, Mapping) else {"type": "function", "function": tool}
    return Piece(
        role="system", kind="tool", tokens=int(count_tokens_json(sent, model)), name=str(name or "unnamed")[:_MAX_NAME]
    )


def _pieces(message: Message, named: str, model: str | None, *, placeholders: bool) -> list[Piece]:
    """Return the pieces of a message, at least one; `named` is a role that no provider has, or ""."""
    role = named or message.role
    if message.role == "tool":
        inside = _content(message.content, role, model, placeholders=placeholders)
        tokens = sum(piece.tokens for piece in inside) + RESULT + MESSAGE
        name, call_id = (message.name or "")[:_MAX_NAME], (message.tool_call_id or "")[:_MAX_NAME]
        return [
            Piece(role=role, kind="result", tokens=tokens, name=name, call_id=call_id, digest=_digest(message.content))
        ]
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
    if isinstance(content, str):
        yield from _text_pieces(content, role, model, placeholders=placeholders)
        return
    for part in content:
        if part.is_media:
            yield Piece(role=role, kind="image", tokens=IMAGE)
        elif part.is_reasoning:
            yield _reasoning(part, role, model)
        else:
            yield from _text_pieces(part_text(part), role, model, placeholders=placeholders)


def _text_pieces(text: str, role: str, model: str | None, *, placeholders: bool) -> Iterator[Piece]:
    pictures = len(_PLACEHOLDER.findall(text)) if placeholders and "]" in text else 0
    is_reminder = text.startswith(_REMINDER)
    name = "" if not is_reminder else MEMORY if _MEMORY.search(text) else REMINDERS
    yield _text("system" if is_reminder else role, text, model, name=name)
    if pictures:
        yield Piece(role=role, kind="image", tokens=pictures * IMAGE, count=pictures)


def _reasoning(part: ContentPart, role: str, model: str | None) -> Piece:
    texts = [
        text for text in (part.text, part.extra.get("thinking"), part.extra.get("content")) if isinstance(text, str)
    ]
    opaque = [part.extra.get(key) for key in ("data", "encrypted_content")] if not texts else []
    size = next((len(one) for one in opaque if isinstance(one, str)), 0) // _OPAQUE_RATIO
    return Piece(role=role, kind="reasoning", tokens=sum(int(count_tokens(text, model)) for text in texts) + size)


def _call(call: ToolRequest, model: str | None) -> Piece:
    name, given = sys.intern(call.name[:_MAX_NAME] or "unknown"), call.arguments
    text = given if isinstance(given, str) else call.text
    size = count_tokens_json(given, model) if text is None else count_tokens(text, model)
    given = decode_json(given) if isinstance(given, str) else given
    texts = given if isinstance(given, Mapping) else {}
    key = next((key for key in _TARGET_KEYS if isinstance(texts.get(key), str) and texts[key].strip()), "")
    target = texts[key].strip() if key else ""
    is_read = key in _PATH_KEYS and not _READ_VERBS.isdisjoint(word.lower() for word in _WORDS.findall(name))
    return Piece(
        role="assistant", kind="call", tokens=int(count_tokens(name, model)) + int(size) + CALL, name=name,
        target=_short(target), digest=digest_of(target) if target else b"", is_read=is_read,
        call_id=call.id[:_MAX_NAME],
    )  # fmt: skip


def _text(role: str, text: str, model: str | None, *, kind: str = "text", name: str = "") -> Piece:
    return Piece(role=role, kind=kind, tokens=int(count_tokens(text, model)), name=name, digest=_digest(text))


def _digest(content: Content) -> bytes:
    if not content:
        return b""
    if isinstance(content, str):
        return digest_of(content)
    return digest_of([(part.text, part.image_url, part.data, part.extra) for part in content])


def _short(text: str) -> str:
    """Shorten a text to one line: of a path keep the end, of other text the beginning."""
    line = text.split("\n", 1)[0]
    if len(line) <= _MAX_TARGET and line == text:
        return line
    return (
        f"…{line[1 - _MAX_TARGET :]}"
        if line == text and "/" in line and " " not in line
        else f"{line[: _MAX_TARGET - 1]}…"
    )
