"""Answers of models, read in the formats in which providers send them: whole, or event by event.

A reader also knows which fields of its provider's requests are those of `llm.request`. The formats:

- OpenAI's chat completions, which most servers of open models speak: https://platform.openai.com/docs/api-reference/chat
- OpenAI's responses: https://platform.openai.com/docs/api-reference/responses
- Anthropic's messages: https://docs.anthropic.com/en/api/messages-streaming
- Gemini's generateContent: https://ai.google.dev/api/generate-content

Readers accept whatever a server sends: a field of another type than the format's counts as absent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from sessionlog.messages.json_value import decode_json, json_text, valid_text

Json = Any
Fields = dict[str, Any]


class AnswerReader(ABC):
    """Reads one answer.

    Attributes:
        texts: The pieces of its text.
        thoughts: The pieces of its reasoning.
        calls: Its tool calls: `id`, `name` and `arguments`, a JSON text or a value.
        usage: The usage object, as it was sent; None until there is one.
        tier: The tier that served it, where that is not in the usage object.
        searches: How many searches of its own the provider bills, where that is not in the usage object.
        id: The response's id.
        model: The model that answered.
        finish_reason: Why it stopped, in the provider's word.
        error: The error that the provider sent in place of the rest.
        is_whole: Whether the end of the answer was read.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[Fields] = []
        self.usage: Mapping[str, Json] | None = None
        self.tier: str | None = None
        self.searches: Json = None
        self.id: str | None = None
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.error: str | None = None
        self.is_whole = False

    @abstractmethod
    def feed(self, event: Mapping[str, Json]) -> str:
        """Read an event of a stream; return the text that it adds to the answer."""

    @abstractmethod
    def read(self, body: Mapping[str, Json]) -> None:
        """Read a whole answer."""

    @staticmethod
    @abstractmethod
    def request_fields(body: Mapping[str, Json]) -> Fields:
        """Return a request's body under the names of `llm.request`; messages and tools stay in the provider's shape."""

    @property
    def has_begun(self) -> bool:
        """Whether anything of the answer itself was read: a text, a thought or a call."""
        return bool(self.texts or self.thoughts or self.calls)

    @property
    def has_ended(self) -> bool:
        """Whether the last event of a stream was read; False where a usage may follow the end of the answer."""
        return False

    def response_fields(self) -> Fields:
        """Return what was read under the names of `llm.response`, without those that are absent."""
        text = valid_text("".join(self.texts))  # half a letter may end one piece, the other half begin the next
        fields = {
            "content": text or None, "tool_calls": self.calls or None, "usage": self.usage, "model": self.model,
            "finish_reason": self.finish_reason, "response_id": self.id, "error": self.error,
            "service_tier": self.tier, "searches": self.searches,
        }  # fmt: skip
        if self.thoughts:
            parts = [{"type": "thinking", "thinking": "".join(self.thoughts)}]
            parts += [{"type": "text", "text": text}] if text else []
            fields["message"] = {"role": "assistant", "content": parts, "tool_calls": self.calls}
        return {name: value for name, value in fields.items() if value is not None}

    def _known(self, body: Mapping[str, Json], *, model: str = "model", usage: str = "usage", id: str = "id") -> None:  # noqa: A002 - the field
        """Read the fields that all formats have, under this format's names."""
        self.model = _text(body.get(model)) or self.model
        self.id = _text(body.get(id)) or self.id
        self.tier = _text(body.get("service_tier")) or self.tier
        self.searches = _mapping(_mapping(body.get("tool_usage")).get("web_search")).get("num_requests", self.searches)
        given = _mapping(body.get(usage))
        self.usage = given or self.usage
        self.error = error_text(body) or self.error


class ChatCompletion(AnswerReader):
    """OpenAI's chat completions. Of several choices only the first is read."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[Json, Fields] = {}

    def feed(self, event: Mapping[str, Json]) -> str:
        """Read a chunk. The usage may come in any of them, also in one with choices."""
        if self.model is None or event.get("usage") or event.get("error"):
            self._known(event)
        text = ""
        for choice in _mappings(event.get("choices")):
            if not choice.get("index"):
                text += self._choice(choice, _mapping(choice.get("delta")))
        return text

    def read(self, body: Mapping[str, Json]) -> None:
        """Read a completion."""
        self._known(body)
        for choice in _mappings(body.get("choices")):
            if not choice.get("index"):
                self._choice(choice, _mapping(choice.get("message")))

    def _choice(self, choice: Mapping[str, Json], message: Mapping[str, Json]) -> str:
        if reason := _text(choice.get("finish_reason")):
            self.finish_reason, self.is_whole = reason, True
        thought = _text(message.get("reasoning_content")) or _text(
            message.get("reasoning")
        )  # vLLM, DeepSeek; OpenRouter
        if thought:
            self.thoughts.append(thought)
        for call in _mappings(message.get("tool_calls")):
            self._add_call(call)
        if older := _mapping(message.get("function_call")):
            self._add_call({"index": 0, "function": older})
        text = _text(message.get("content")) or _text(message.get("refusal"))
        if text:
            self.texts.append(text)
        return text

    def _add_call(self, piece: Mapping[str, Json]) -> None:
        """Add a fragment: a new id, or a name after arguments, starts a call; its index continues it.

        Some servers give every call index 0, or no id.
        """
        index, id_, function = (
            piece.get("index", len(self.calls)),
            _text(piece.get("id")),
            _mapping(piece.get("function")),
        )
        called = _text(function.get("name"))
        call = self._open.get(index) if isinstance(index, int) else None
        if call is None or (id_ and id_ != call["id"]) or (called and not id_ and call["name"] and call["arguments"]):
            call = {"id": id_, "name": "", "arguments": ""}
            self._open[index if isinstance(index, int) else len(self.calls)] = call
            self.calls.append(call)
        call["name"] = call["name"] or called
        call["arguments"] += _json_piece(function.get("arguments"))

    @staticmethod
    def request_fields(body: Mapping[str, Json]) -> Fields:
        """Return the fields of a request for a completion."""
        return _request(
            body, messages=body.get("messages"), tools=body.get("tools"), reasoning=body.get("reasoning_effort"),
            max_tokens=body.get("max_completion_tokens", body.get("max_tokens")),
            top_k=body.get("top_k"), seed=body.get("seed"), stop=body.get("stop"),
        )  # fmt: skip


class ModelResponse(AnswerReader):
    """OpenAI's responses."""

    @property
    def has_ended(self) -> bool:
        """Whether the response's last event was read."""
        return self.is_whole

    def feed(self, event: Mapping[str, Json]) -> str:
        """Read an event; the last one repeats the whole response, and is what counts."""
        kind, delta = _text(event.get("type")), _text(event.get("delta"))
        if kind in ("response.output_text.delta", "response.refusal.delta") and delta:
            self.texts.append(delta)
            return delta
        if kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta") and delta:
            self.thoughts.append(delta)
        elif kind == "response.output_item.done":
            self._call(_mapping(event.get("item")))
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self.read(_mapping(event.get("response")))
        elif kind == "error":
            self.error = error_text(event) or _text(event.get("message")) or "error"
        elif kind == "response.created":
            self._known(_mapping(event.get("response")))
        return ""

    def read(self, body: Mapping[str, Json]) -> None:
        """Read a response."""
        self._known(body)
        output = [*_mappings(body.get("output"))]
        if output:
            self.texts, self.thoughts, self.calls = [], [], []
        for item in output:
            self._call(item)
            parts = [*_mappings(item.get("content")), *_mappings(item.get("summary"))]
            found = self.thoughts if item.get("type") == "reasoning" else self.texts
            found += filter(None, (_text(part.get("text")) or _text(part.get("refusal")) for part in parts))
        incomplete = _mapping(body.get("incomplete_details"))
        self.finish_reason = _text(incomplete.get("reason")) or _text(body.get("status")) or self.finish_reason
        self.is_whole = True

    def _call(self, item: Mapping[str, Json]) -> None:
        if item.get("type") in ("function_call", "custom_tool_call"):
            arguments = item.get("arguments", item.get("input"))
            self.calls.append({"id": item.get("call_id"), "name": item.get("name"), "arguments": arguments})

    @staticmethod
    def request_fields(body: Mapping[str, Json]) -> Fields:
        """Return the fields of a request for a response; the instructions are a system message."""
        given = body.get("input")
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else _list(given)
        if instructions := _text(body.get("instructions")):
            messages = [{"role": "system", "content": instructions}, *messages]
        return _request(
            body, messages=messages, tools=body.get("tools"), max_tokens=body.get("max_output_tokens"),
            reasoning=_mapping(body.get("reasoning")).get("effort"),
        )  # fmt: skip


class AnthropicMessage(AnswerReader):
    """Anthropic's messages.

    The pieces of a block are joined at its end: added one by one, a long text would be copied thousands of times.
    """

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Fields] = []
        self._open: dict[Json, Fields] = {}
        self._calls: dict[Json, Fields] = {}  # those of open blocks
        self._pieces: dict[Json, dict[str, list[str]]] = {}  # of an open block's texts, by their names

    @property
    def blocks(self) -> list[Fields]:
        """The content blocks, as they were sent, assembled."""
        for index, block in self._open.items():
            self._join(index, block)
        return self._blocks

    @property
    def has_ended(self) -> bool:
        """Whether the event `message_stop` was read."""
        return self.is_whole

    def feed(self, event: Mapping[str, Json]) -> str:
        """Read an event."""
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event.get("index"), _mapping(event.get("delta")))
        if kind == "message_start":
            self._known(_mapping(event.get("message")))
        elif kind == "content_block_start":
            self._begin(event.get("index"), _mapping(event.get("content_block")))
        elif kind == "content_block_stop":
            self._end(event.get("index"))
        elif kind == "message_delta":
            self.finish_reason = _text(_mapping(event.get("delta")).get("stop_reason")) or self.finish_reason
            self._add_usage(_mapping(event.get("usage")))
        elif kind == "message_stop":
            self.is_whole = True
        elif kind == "error":
            self.error = error_text(event) or "error"
        return ""

    def read(self, body: Mapping[str, Json]) -> None:
        """Read a message."""
        self._known(body)
        self.error = error_text(body) if body.get("type") == "error" else None
        for index, block in enumerate(_mappings(body.get("content"))):
            self._begin(index, block)
            self._end(index)
        self.finish_reason = _text(body.get("stop_reason")) or None
        self.is_whole = True

    def _begin(self, index: Json, block: Mapping[str, Json]) -> None:
        self._end(index)  # of a server that did not end the block before
        kept = self._open[index] = dict(block)
        self._blocks.append(kept)
        self.texts += filter(None, [_text(block.get("text"))])
        self.thoughts += filter(None, [_text(block.get("thinking"))])
        if block.get("type") == "tool_use":
            call = {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
            self._calls[index] = call
            self.calls.append(call)

    def _delta(self, index: Json, delta: Mapping[str, Json]) -> str:
        block, kind = self._open.get(index), delta.get("type")
        if block is None:
            return ""
        if kind == "citations_delta":
            block["citations"] = [*_list(block.get("citations")), delta.get("citation")]
        named = {name: _text(delta.get(name)) for name in ("text", "thinking", "signature")}
        if kind == "input_json_delta":
            named = {"partial_json": _json_piece(delta.get("partial_json"))}
        for name, piece in named.items():
            if piece:
                self._pieces.setdefault(index, {}).setdefault(name, []).append(piece)
        self.texts += filter(None, [_text(delta.get("text"))])
        self.thoughts += filter(None, [_text(delta.get("thinking"))])
        return _text(delta.get("text"))

    def _end(self, index: Json) -> None:
        block = self._open.pop(index, None)
        if block is not None:
            self._join(index, block)
        self._calls.pop(index, None)

    def _join(self, index: Json, block: Fields) -> None:
        """Add the pieces that have come to a block."""
        pieces = self._pieces.pop(index, {})
        given = "".join(pieces.pop("partial_json", ()))
        for name, texts in pieces.items():
            block[name] = "".join([_text(block.get(name)), *texts])
        if given:
            block["input"] = decode_json(given)
            if index in self._calls:
                self._calls[index]["arguments"] = block["input"]

    def _add_usage(self, later: Mapping[str, Json]) -> None:
        """Later counts replace earlier ones, also by 0; a later total of cache writes wins over the earlier details."""
        usage = {**(self.usage or {}), **{name: count for name, count in later.items() if count is not None}}
        if "cache_creation_input_tokens" in later and "cache_creation" not in later:
            details = _mapping(usage.get("cache_creation"))
            if (
                sum(count for count in details.values() if isinstance(count, int))
                != usage["cache_creation_input_tokens"]
            ):
                usage.pop("cache_creation", None)
        self.usage = usage or None

    @staticmethod
    def request_fields(body: Mapping[str, Json]) -> Fields:
        """Return the fields of a request for a message; the system text is a system message."""
        system = body.get("system")
        messages = [*([{"role": "system", "content": system}] if system else []), *_list(body.get("messages"))]
        return _request(
            body, messages=messages, tools=body.get("tools"), max_tokens=body.get("max_tokens"),
            top_k=body.get("top_k"), stop=body.get("stop_sequences"),
        )  # fmt: skip


class GeneratedContent(AnswerReader):
    """Gemini's generateContent. Of several candidates only the first is read.

    The server of Gemini CLI's Google login wraps the same bodies: `{"model": …, "request": …}`, `{"response": …}`.
    """

    def feed(self, event: Mapping[str, Json]) -> str:
        """Read a piece of a stream, which has the form of a whole answer."""
        event = _mapping(event.get("response")) or event
        self._known(event, model="modelVersion", usage="usageMetadata", id="responseId")
        blocked = _text(_mapping(event.get("promptFeedback")).get("blockReason"))
        self.finish_reason = blocked or self.finish_reason
        text = ""
        for candidate in (one for one in _mappings(event.get("candidates")) if not one.get("index")):
            self.finish_reason = _text(candidate.get("finishReason")) or self.finish_reason
            for part in _mappings(_mapping(candidate.get("content")).get("parts")):
                text += self._part(part)
        self.is_whole = self.finish_reason is not None
        return text

    def read(self, body: Mapping[str, Json]) -> None:
        """Read an answer."""
        self.feed(body)

    def _part(self, part: Mapping[str, Json]) -> str:
        call, text = _mapping(part.get("functionCall")), _text(part.get("text"))
        if call:
            self.calls.append({"id": _text(call.get("id")), "name": call.get("name"), "arguments": call.get("args")})
        if text:
            (self.thoughts if part.get("thought") else self.texts).append(text)
        return "" if part.get("thought") else text

    @staticmethod
    def request_fields(body: Mapping[str, Json]) -> Fields:
        """Return the fields of a request for content; the system instruction is a system message."""
        body = {**_mapping(body.get("request")), "model": body.get("model")} if "request" in body else body
        system = _mapping(body.get("systemInstruction")) or _mapping(body.get("system_instruction"))
        messages = [*([{**system, "role": "system"}] if system else []), *_list(body.get("contents"))]
        config = _mapping(body.get("generationConfig"))
        settings = {"temperature": config.get("temperature"), "top_p": config.get("topP")}
        return _request(
            {**body, **settings}, messages=messages, tools=body.get("tools"), max_tokens=config.get("maxOutputTokens"),
            top_k=config.get("topK"), seed=config.get("seed"), stop=config.get("stopSequences"),
        )  # fmt: skip


def reader_of(path: str) -> type[AnswerReader] | None:
    """Return the reader for the answers of an endpoint, by its path; None if no model answers there."""
    last = path.partition("?")[0].rstrip("/").rpartition("/")[2]
    action = last.rpartition(":")[2]
    if action in ("rawPredict", "streamRawPredict"):  # Anthropic's models on Vertex AI
        return AnthropicMessage if "/publishers/anthropic/" in path else None
    kind = _ENDPOINTS.get(action)
    if kind is None or (kind is ChatCompletion and not path.partition("?")[0].rstrip("/").endswith("chat/completions")):
        return None
    return kind


def model_in(path: str) -> str | None:
    """Return the model that an address names, as Gemini's do: `…/models/gemini-2.5-pro:generateContent`."""
    place, _, last = path.partition("?")[0].rpartition("/")
    name, colon, _ = last.rpartition(":")
    return name or None if colon and place.endswith(("/models", "/tunedModels", "/endpoints")) else None


def error_text(body: Mapping[str, Json]) -> str | None:
    """Return the error in a body: `overloaded_error: Overloaded`; None without one."""
    error = body.get("error")
    if isinstance(error, str):
        return error or None
    if not isinstance(error, Mapping):
        return None
    kind = next((_text(error.get(name)) for name in ("type", "status", "code") if _text(error.get(name))), "")
    return ": ".join(filter(None, (kind, _text(error.get("message"))))) or "error"


_ENDPOINTS: Mapping[str, type[AnswerReader]] = {
    "completions": ChatCompletion,
    "responses": ModelResponse,
    "messages": AnthropicMessage,
    "generateContent": GeneratedContent,
    "streamGenerateContent": GeneratedContent,
}


def _request(body: Mapping[str, Json], **fields: Json) -> Fields:
    same = {name: body.get(name) for name in ("model", "temperature", "top_p")}
    return {name: value for name, value in {**same, **fields}.items() if value is not None and value != []}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _json_piece(value: Json) -> str:
    """Return a piece of a call's arguments as JSON text; some servers send a value in place of its text."""
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _mappings(value: Json) -> Iterable[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else ()
