"""The texts of a native log's events, as steps: prompts, answers, tool calls and results, each once.

A request repeats the conversation so far. Only its messages after those of the request before are new; where a request
begins otherwise (a history was cut), only messages that no request had yet. An answer and a tool's result have events
of their own, and the next request repeats them. Reports do not need any of this: only search reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw, Struct

from sessionlog.events.names import UNKNOWN
from sessionlog.hashes import hash_name
from sessionlog.sources.contents import read_json
from sessionlog.sources.steps import Prompt, Response, Session, Step, Text, ToolCall, ToolResult
from sessionlog.sources.values import folder, mapping, name, objects, text

_SEED = b""


class SeenTexts(Struct, dict=True):
    """The texts of a log's events so far.

    Attributes:
        sent: Hashes of the messages of the last request, in their order.
        known: Hashes of all messages, answers, calls and results.
        prompt: The hash of session.start's prompt until a request repeats it.
    """

    sent: list[int] = []
    known: list[int] = []
    prompt: int | None = None

    def __post_init__(self) -> None:
        self._messages: list[Raw] = []
        self._known = set(self.known)

    def is_new(self, *texts: str) -> bool:
        """Whether a text occurs for the first time; it is known from now on."""
        hashed = _hash("\0".join(texts))
        if hashed in self._known:
            return False
        self._known.add(hashed)
        self.known.append(hashed)
        return True

    def new_messages(self, messages: list[Raw], *, is_only_new: bool) -> list[Raw]:
        """Return the messages of a request that are new."""
        common = 0 if is_only_new else self._common(messages)
        hashes = [_hash_bytes(message) for message in messages[common:]]
        is_continued = is_only_new or common > 0 or not self.sent
        found = []
        for message, hashed in zip(messages[common:], hashes, strict=True):
            if is_continued or hashed not in self._known:
                found.append(message)
            if hashed not in self._known:
                self._known.add(hashed)
                self.known.append(hashed)
        self.sent = hashes if is_only_new else [*self.sent[:common], *hashes]
        self._messages = messages
        return found

    def _common(self, messages: list[Raw]) -> int:
        """Return how many messages a request repeats from the beginning of the one before."""
        before = self._messages
        count = min(len(before), len(messages))
        common = next((place for place in range(count) if bytes(before[place]) != bytes(messages[place])), count)
        if before:
            return common
        pairs = zip(self.sent, messages, strict=False)  # the request before was read by an earlier scan
        differing = (place for place, (known, one) in enumerate(pairs) if known != _hash_bytes(one))
        return next(differing, min(len(self.sent), len(messages)))


def _hash(words: str) -> int:
    return hash_name(words, _SEED)


def _hash_bytes(message: Raw) -> int:
    return _hash(bytes(message).decode("utf-8", "surrogateescape"))


def text_steps(kind: str, data: Any, time: int | None, seen: SeenTexts) -> Iterable[Step]:
    """Return the steps of an event's texts; `data` is its payload with all texts."""
    match kind:
        case "session.start":
            return _start(data, time, seen)
        case "llm.request":
            return _request(data, time, seen)
        case "llm.delta":
            return (Text(time, text(data.content), text(data.reasoning_content), is_piece=True),)
        case "llm.response":
            return _response(data, time, seen)
        case "tool.call":
            return _call(data, time, seen)
        case "compaction.end":
            return (Prompt(time, text(data.summary), "system"),) if text(data.summary) else ()
    return ()


def _start(data: Any, time: int | None, seen: SeenTexts) -> Iterator[Step]:
    if project := folder(data.work_dir):
        yield Session(project=project)
    if isinstance(data.prompt, str) and data.prompt:
        seen.prompt = _hash(data.prompt)
        yield Prompt(time, data.prompt)


def _request(data: Any, time: int | None, seen: SeenTexts) -> Iterator[Step]:
    from sessionlog.messages.read import read_entry  # scans, which need no texts, would load it too

    messages = data.messages if isinstance(data.messages, list) else []
    for message in seen.new_messages(messages, is_only_new=bool(data.earlier_messages)):
        entry = read_entry(read_json(message))
        for one in entry.messages:
            words, call_id = one.text, one.tool_call_id or ""
            if one.role == "tool":
                if words and seen.is_new("tool", words):
                    yield ToolResult(time, call_id, words, failed=one.failed)
            elif one.role == "user" and _hash(words) == seen.prompt:
                seen.prompt = None
            elif words and (one.role == "user" or seen.is_new(one.role, words)):
                yield Prompt(time, words, one.role)
            for call in one.tool_calls:
                yield from _new_call(call.name, call.id, call.arguments, time, seen)


def _response(data: Any, time: int | None, seen: SeenTexts) -> Iterator[Step]:
    words, thought = text(data.content), text(data.reasoning) or text(data.reasoning_content)
    if words:
        seen.is_new("assistant", words)
    yield Response(time=time, text=words, reasoning=thought, error=text(data.error))
    for call in objects(data.tool_calls):
        made = mapping(call, "function") or call
        yield from _new_call(name(made, "name"), name(call, "id"), made.get("arguments", made.get("input")), time, seen)


def _call(data: Any, time: int | None, seen: SeenTexts) -> Iterator[Step]:
    output = data.output if data.output is not None else data.error
    words = output if isinstance(output, str) else None
    if words is not None:
        seen.is_new("tool", words)
    call_id = name(data.id)
    yield from _new_call(name(data.tool), call_id, data.input, time, seen)
    yield ToolResult(time, call_id, output, failed=bool(data.error), tool=name(data.tool))


def _new_call(tool: str, call_id: str, given: Any, time: int | None, seen: SeenTexts) -> Iterator[Step]:
    """Yield a call, unless the answer that made it or its own event had it before."""
    decoded = read_json(given) if isinstance(given, str) and given.startswith("{") else given
    if not call_id or seen.is_new("call", tool, call_id, repr(decoded or None)):
        yield ToolCall(time, call_id, tool or UNKNOWN, decoded)
