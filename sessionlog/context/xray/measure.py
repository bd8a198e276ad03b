"""Measuring: which pieces a message or a tool definition is made of, and how many tokens each of them takes.

Every shape in which providers send messages is understood, and none raises. What is no text has a rule of its own:

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

import orjson

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.context.xray.pieces import Piece, digest_of, size_of, spelled

Json = Any

IMAGE = 1500
MESSAGE, CALL, RESULT, TOOLS = 5, 14, 8, 250
_SEALED = 6
_AROUND = 40  # bytes of JSON around a text
_TARGET = 80
_PICTURES = frozenset({"image", "image_url", "input_image", "media", "audio", "input_audio", "video"})
_PAGES = frozenset({"document", "file", "input_file"})
_BINARY = frozenset({"inlineData", "inline_data", "fileData", "file_data"})
_THOUGHTS = frozenset({"thinking", "reasoning", "redacted_thinking", "thought"})
_SYSTEM = frozenset({"system", "developer"})
_TEXT_KEYS = ("text", "thinking", "content", "input_text", "output_text")
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
            try:
                self._pieces = measure_message(self._message, self._model, placeholders=self._placeholders)
            except RecursionError:  # results in results in results: no provider was sent that
                self._pieces = (_text("unknown", "", None, self.size // 4),)
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
    if not isinstance(message, Mapping):
        return (_text("unknown", message if isinstance(message, str) else spelled(message), model, MESSAGE),)
    kind, role = message.get("type"), _role(message.get("role"))
    if kind in ("function_call", "tool_use"):
        return (_call(message, model),)
    if kind == "function_call_output":
        return (_result(message.get("call_id"), message.get("output"), model, placeholders=placeholders),)
    content = message["content"] if "content" in message else message.get("parts")
    if role in ("tool", "function"):
        name = _word(message.get("name")) or _word(message.get("tool_name"))
        return (_result(message.get("tool_call_id"), content, model, placeholders=placeholders, name=name),)
    made = [*_thoughts(message, role, model), *_content(content, role, model, placeholders=placeholders)]
    calls = message.get("tool_calls")
    if isinstance(calls, list | tuple):
        made += [_call(call, model) for call in calls if isinstance(call, Mapping)]
    if content is None and not made:
        rest = {key: value for key, value in message.items() if key not in {"role", "content", "parts", "tool_calls"}}
        made = [_text(role, spelled(rest) if rest else "", model)]
    if not made:
        made = [_text(role, "", model)]
    if any(piece.kind == "result" for piece in made):  # words beside results are the agent's, not a prompt
        made = [replace(piece, role="system") if piece.kind == "text" else piece for piece in made]
    return (replace(made[0], tokens=made[0].tokens + MESSAGE), *made[1:])


def measure_tool(tool: Json, model: str | None) -> Piece:
    """Return the size of one tool definition, as templates print it."""
    inner = tool.get("function") if isinstance(tool, Mapping) else None
    named = inner if isinstance(inner, Mapping) else tool
    name = _word(named.get("name")) if isinstance(named, Mapping) else ""
    sent = tool if isinstance(inner, Mapping) else {"type": "function", "function": tool}
    return Piece(role="system", kind="tool", tokens=_json_tokens(sent, model), name=name or "unnamed")


def _content(content: Json, role: str, model: str | None, *, placeholders: bool) -> Iterator[Piece]:
    if isinstance(content, str):
        pictures = len(_PLACEHOLDER.findall(content)) if placeholders and "]" in content else 0
        if content or not pictures:
            yield _text(role, content, model)
        if pictures:
            yield Piece(role=role, kind="image", tokens=pictures * IMAGE, count=pictures)
    elif isinstance(content, list | tuple):
        for part in content:
            yield from _part(part, role, model, placeholders=placeholders)
    elif content is not None:
        yield _text(role, spelled(content), model)


def _part(part: Json, role: str, model: str | None, *, placeholders: bool) -> Iterator[Piece]:
    if not isinstance(part, Mapping):
        yield _text(role, part if isinstance(part, str) else spelled(part), model)
        return
    kind = part.get("type")
    source = part.get("source")
    called, returned = (part.get(key) for key in ("functionCall", "functionResponse"))  # Gemini's
    if isinstance(called, Mapping):
        yield _call(called, model)
    elif isinstance(returned, Mapping):
        name = _word(returned.get("name"))
        yield _result(returned.get("id"), spelled(returned.get("response")), model, placeholders=False, name=name)
    elif kind in ("tool_use", "function_call"):
        yield _call(part, model)
    elif kind == "tool_result":
        yield _result(part.get("tool_use_id"), part.get("content"), model, placeholders=placeholders)
    elif kind in _THOUGHTS:
        yield _thought(part, role, model)
    elif kind in _PAGES and isinstance(source, Mapping) and isinstance(source.get("data"), str):
        data, is_text = source["data"], source.get("type") == "text"
        yield _text(role, data, model) if is_text else Piece(role=role, kind="image", tokens=IMAGE)
    elif kind in _PICTURES or kind in _PAGES or not _BINARY.isdisjoint(part) or part.get("kind") == "binary":
        yield Piece(role=role, kind="image", tokens=IMAGE)
    else:
        found = next((part[key] for key in _TEXT_KEYS if isinstance(part.get(key), str)), None)
        text = spelled(part) if found is None else found
        reminds = text.startswith(_REMINDER)
        piece = _text("system" if reminds else role, text, model)
        yield replace(piece, name=MEMORY if _MEMORY.search(text) else REMINDERS) if reminds else piece


def _thought(part: Mapping[str, Json], role: str, model: str | None) -> Piece:
    texts = [part[key] for key in _TEXT_KEYS if isinstance(part.get(key), str)]
    sealed = "" if texts else next((part[k] for k in ("data", "encrypted_content") if isinstance(part.get(k), str)), "")
    tokens = sum(_tokens(text, model) for text in texts) + len(sealed) // _SEALED
    return Piece(role=role, kind="reasoning", tokens=tokens)


def _thoughts(message: Mapping[str, Json], role: str, model: str | None) -> Iterator[Piece]:
    """The reasoning that some providers send beside a message's content."""
    for key in ("reasoning_content", "reasoning", "thinking"):
        text = message.get(key)
        if isinstance(text, str) and text:
            yield _text(role, text, model, kind="reasoning")
            return


def _call(call: Mapping[str, Json], model: str | None) -> Piece:
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    given = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
    name = sys.intern(_word(inner.get("name")) or _word(call.get("tool_name")) or "unknown")
    call_id = _word(call.get("call_id")) or _word(call.get("id")) or _word(call.get("tool_call_id"))
    size = _tokens(given, model) if isinstance(given, str) else _json_tokens(given, model)
    key, about = _target(given)
    is_read = key in _PATHS and not _LOOKS.isdisjoint(word.lower() for word in _WORDS.findall(name[:200]))
    tokens = _tokens(name, model) + size + CALL
    return Piece(
        role="assistant", kind="call", tokens=tokens, name=name, target=_short(about), is_read=is_read,
        call_id=call_id, mark=digest_of(about) if about else b"",
    )  # fmt: skip


def _result(call_id: Json, content: Json, model: str | None, *, placeholders: bool, name: str = "") -> Piece:
    inside = list(_content(content, "tool", model, placeholders=placeholders))
    tokens = sum(piece.tokens for piece in inside) + RESULT + MESSAGE
    mark = digest_of(content) if content else b""
    return Piece(role="tool", kind="result", tokens=tokens, name=name, call_id=_word(call_id), mark=mark)


def _text(role: str, text: str, model: str | None, framing: int = 0, *, kind: str = "text") -> Piece:
    mark = digest_of(text) if text else b""
    return Piece(role=role, kind=kind, tokens=_tokens(text, model) + framing, mark=mark)


def _target(given: Json) -> tuple[str, str]:
    """What a call is about: the argument that people would name it by, and its name."""
    value = given
    if isinstance(given, str) and given.startswith("{"):
        try:
            value = orjson.loads(given)
        except ValueError:
            return "", ""
    if not isinstance(value, Mapping):
        return "", ""
    for key in _TARGETS:
        text = value.get(key)
        if isinstance(text, str) and text.strip():
            return key, text.strip()
    return "", ""


def _short(text: str) -> str:
    """A path keeps its end, where the name is; a text of more lines its first."""
    line = text.split("\n", 1)[0]
    if len(line) <= _TARGET and line == text:
        return line
    return f"…{line[1 - _TARGET :]}" if line == text and "/" in line and " " not in line else f"{line[: _TARGET - 1]}…"


def _json_tokens(value: Json, model: str | None) -> int:
    return int(count_tokens_json(value, model))


def _tokens(text: str, model: str | None) -> int:
    return int(count_tokens(text, model))


def _role(value: Json) -> str:
    role = _word(value) or "unknown"
    return "system" if role in _SYSTEM else "assistant" if role == "model" else role[:40]


def _word(value: Json) -> str:
    return value[:200] if isinstance(value, str) else str(value) if type(value) is int else ""
