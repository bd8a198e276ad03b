"""Message: one message of a conversation as a frozen value that can be saved and loaded, pictures included.

A history is a list of messages. Unknown fields are kept in `extra` and written back. Every value in a message is JSON
(see `json_value`) and a copy: later changes to the arguments do not change the message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sessionlog.errors import InvalidHistory
from sessionlog.messages.json_value import decode_object, json_value, valid_text

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(Role)
MEDIA = frozenset({
    "audio", "audio-url", "binary", "document", "document-url", "file", "image", "image-url", "image_url",
    "input_audio", "input_file", "input_image", "media", "uploaded-file", "video", "video-url",
})  # fmt: skip
"""Types of parts that are files, as OpenAI, Anthropic, Google and pydantic-ai name them."""
FILE_FIELDS = ("data", "file", "file_data", "file_id", "file_url", "image_url", "input_audio", "source", "url")
"""A file that is sent has one of these; an entry in a tool's listing of files has none."""
INLINE = ("inlineData", "inline_data", "fileData")
"""Keys under which Google has a file, as an object."""
_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPart:
    """A part of a message's content.

    Attributes:
        type: `text`, `image_url` (a picture by its address), `image` (its bytes), or a provider's own type.
        text: The text of a `text` part.
        image_url: The address of a picture.
        data: The bytes of a picture.
        media_type: The type of `data`, as `image/png`.
        extra: Other fields, unchanged.

    Raises:
        InvalidHistory: A field has the wrong type, `data` has no `media_type`, or `extra` has the name of a field.
    """

    type: str
    text: str | None = None
    image_url: str | None = None
    data: bytes | None = field(default=None, repr=False)
    media_type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_texts(self, ("type", "text", "image_url", "media_type"))
        if not self.type:
            raise InvalidHistory("a piece of content without a type, as `text` or `image`")
        taken = {"type", "text", "image_url", "media_type"}
        if self.media_type is not None:
            taken.add("data")
        if self.data is not None:
            if not isinstance(self.data, bytes):
                raise InvalidHistory(f"data is {type(self.data).__name__}; it must be bytes")
            if self.media_type is None:
                raise InvalidHistory("data without its media_type, as 'image/png'")
        object.__setattr__(self, "extra", _checked_extra(self.extra, taken))

    @property
    def is_reasoning(self) -> bool:
        """Whether it is the model's reasoning, not part of its answer."""
        return self.type in _REASONING

    @property
    def is_media(self) -> bool:
        """Whether it is a picture, a document, a recording or another file."""
        return (
            self.data is not None
            or self.image_url is not None
            or (self.type in MEDIA and any(self.extra.get(key) is not None for key in (*FILE_FIELDS, *INLINE)))
        )

    @classmethod
    def of_text(cls, text: str) -> ContentPart:
        """Make a part of text."""
        return cls(type="text", text=text)

    @classmethod
    def of_image(cls, data: bytes, media_type: str = "image/png") -> ContentPart:
        """Make a picture from its bytes."""
        return cls(type="image", data=bytes(data), media_type=media_type)

    @classmethod
    def of_image_url(cls, url: str) -> ContentPart:
        """Make a picture that the provider fetches from an address."""
        return cls(type="image_url", image_url=url)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model requests; the executed call is the log's `tool.call`.

    Attributes:
        id: Joins the call with its result.
        name: The tool.
        arguments: Values by name; the text itself where the model wrote no JSON object.
        extra: Other fields of the provider, unchanged.
        text: The arguments as the model wrote them, where they came as JSON text. Sending exactly this text back keeps
            the provider's prompt cache valid. It is not saved, and not compared.

    Raises:
        InvalidHistory: The id or the name is not a text, or `extra` has the name of a field.
    """

    id: str
    name: str
    arguments: Any = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    text: str | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        for key in ("id", "name"):
            if not isinstance(getattr(self, key), str):
                raise InvalidHistory(f"{key} of a tool call is {type(getattr(self, key)).__name__}; it must be a text")
        _check_texts(self, ("id", "name", "text"))
        object.__setattr__(self, "arguments", json_value(self.arguments))
        object.__setattr__(self, "extra", _checked_extra(self.extra, {"id", "name", "arguments"}))

    @classmethod
    def of_model(cls, id: str, name: str, arguments: Any, *, extra: Mapping[str, Any] | None = None) -> ToolRequest:  # noqa: A002 - the field
        """Make a request from a model's output: arguments by name, or as JSON text."""
        if not isinstance(arguments, str):
            return cls(id, name, {} if arguments is None else arguments, extra=extra or {})
        return cls(id, name, decode_object(arguments or "{}"), extra=extra or {}, text=arguments or None)


Content = str | tuple[ContentPart, ...]
FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "partial"})
"""The fields of a message besides `extra`."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a history.

    Attributes:
        role: The author.
        content: A text, or parts; a list of texts and parts is accepted, too. None is an empty text.
        tool_calls: The tool calls that an assistant requests.
        tool_call_id: The id of the call whose result a `tool` message is.
        name: The tool, or the name of a user.
        partial: Why the answer is incomplete (`cancelled`, `failed`, `interrupted`); None where it is complete.
        extra: Unknown fields, unchanged.

    Raises:
        InvalidHistory: The role is none of the four, the content is neither text nor parts, another field has the wrong
            type, a message of another role than `assistant` has tool calls, or `extra` has the name of a field.
    """

    role: Role
    content: Content = ""
    tool_calls: tuple[ToolRequest, ...] = field(default=(), kw_only=True)
    tool_call_id: str | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    partial: str | None = field(default=None, kw_only=True)
    extra: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidHistory(f"unknown role {self.role!r:.40}; a message is of {', '.join(ROLES)}")
        _check_texts(self, ("tool_call_id", "name", "partial"))
        object.__setattr__(self, "content", _content(self.content))
        object.__setattr__(self, "tool_calls", _calls(self.tool_calls))
        if self.tool_calls and self.role != "assistant":
            raise InvalidHistory(f"tool calls in a {self.role} message; only an assistant message has them")
        object.__setattr__(self, "extra", _checked_extra(self.extra, FIELDS))

    @classmethod
    def system(cls, content: Any) -> Message:
        """Make a system message."""
        return cls("system", content)

    @classmethod
    def user(cls, content: Any, *, name: str | None = None) -> Message:
        """Make a user's message: a text, or a list of texts and parts."""
        return cls("user", content, name=name)

    @classmethod
    def assistant(
        cls, content: Any = "", *, tool_calls: Iterable[ToolRequest] = (), partial: str | None = None
    ) -> Message:
        """Make a model's answer, with the tool calls that it requests."""
        return cls("assistant", content, tool_calls=tuple(tool_calls), partial=partial)

    @classmethod
    def tool(cls, content: Any, tool_call_id: str, *, name: str | None = None) -> Message:
        """Make the result of a tool call."""
        return cls("tool", content, tool_call_id=tool_call_id, name=name)

    @property
    def text(self) -> str:
        """The texts of its content, joined; without pictures."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text or "" for part in self.content if part.type == "text")

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        """Its content as parts; a text is one."""
        return (ContentPart.of_text(self.content),) if isinstance(self.content, str) else self.content

    @property
    def failed(self) -> bool:
        """Whether it is the result of a failed tool (`is_error`, as in Anthropic's API)."""
        return bool(self.extra.get("is_error"))

    @property
    def is_empty(self) -> bool:
        """Whether it has neither content nor tool calls."""
        return not self.content and not self.tool_calls


def _content(value: object) -> Content:
    if value is None or isinstance(value, str):
        return valid_text(value) if value else ""
    if isinstance(value, ContentPart):
        return (value,)
    if not isinstance(value, list | tuple):
        raise InvalidHistory(f"content is {type(value).__name__}; it must be a text or a list of texts and ContentPart")
    return tuple(_part(item) for item in value)


def _part(item: object) -> ContentPart:
    if isinstance(item, ContentPart):
        return item
    if isinstance(item, str):
        return ContentPart.of_text(item)
    raise InvalidHistory(f"a piece of content is {type(item).__name__}; it must be a text or a ContentPart")


def _calls(value: object) -> tuple[ToolRequest, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidHistory(f"tool_calls is {type(value).__name__}; it must be a list of ToolRequest")
    for call in value:
        if not isinstance(call, ToolRequest):
            raise InvalidHistory(f"a tool call is {type(call).__name__}; it must be a ToolRequest")
    return tuple(value)


def _check_texts(value: object, names: Iterable[str]) -> None:
    for name in names:
        found = getattr(value, name)
        if found is None:
            continue
        if not isinstance(found, str):
            raise InvalidHistory(f"{name} is {type(found).__name__}; it must be a text")
        if not found.isascii():
            object.__setattr__(value, name, valid_text(found))


def _checked_extra(extra: object, taken: Collection[str]) -> dict[str, Any]:
    """Return a JSON copy; refuse names of fields, because they would be read back as the field."""
    if not extra and type(extra) is dict:
        return {}
    if not isinstance(extra, Mapping):
        raise InvalidHistory(f"extra is {type(extra).__name__}; it must be a mapping")
    for key in extra:
        if not isinstance(key, str):
            raise InvalidHistory(f"a key of extra is {type(key).__name__}; it must be a text")
        if key in taken:
            raise InvalidHistory(f"extra has {key!r}, which is the name of a field")
    return {valid_text(key): json_value(item) for key, item in extra.items()}


def content_of(parts: Sequence[ContentPart]) -> str | tuple[ContentPart, ...]:
    """Return parts as the content of a message; plain texts are joined into one text."""
    if all(part.type == "text" and not part.extra for part in parts):
        return "".join(part.text or "" for part in parts)
    return tuple(parts)
