"""Message: one thing that was said, as a value that survives saving, pictures included.

A message never changes; a history is a list of them. What this version does not know of a saved message is kept in
`extra` and written back. All of it is JSON (see `plain`), and nothing of it is shared with whoever gave it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sessionlog.conversation.history.plain import plain, plain_text
from sessionlog.errors import InvalidHistory

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[str, ...] = get_args(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPart:
    """A piece of a message's content.

    Attributes:
        type: `text`, `image_url` (a picture by its address), `image` (its bytes), or a provider's own word.
        text: What a text says.
        image_url: Where a picture is.
        data: The bytes of a picture.
        media_type: What the bytes are, as `image/png`.
        extra: What else the piece was given, as it was.

    Raises:
        InvalidHistory: A field of another type, bytes of which nobody says what they are, or a field's name in `extra`.
    """

    type: str
    text: str | None = None
    image_url: str | None = None
    data: bytes | None = field(default=None, repr=False)
    media_type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _settle_texts(self, ("type", "text", "image_url", "media_type"))
        if not self.type:
            raise InvalidHistory("a piece of content without a type; `text` and `image` are some")
        taken = {"type", "text", "image_url", "media_type"}
        if self.media_type is not None:
            taken.add("data")
        if self.data is not None:
            if not isinstance(self.data, bytes):
                raise InvalidHistory(f"data is {type(self.data).__name__}; it is bytes")
            if self.media_type is None:
                raise InvalidHistory("data without its media_type, as 'image/png'")
        object.__setattr__(self, "extra", _checked_extra(self.extra, taken))

    @classmethod
    def of_text(cls, text: str) -> ContentPart:
        """Make a piece of text."""
        return cls(type="text", text=text)

    @classmethod
    def of_image(cls, data: bytes, media_type: str = "image/png") -> ContentPart:
        """Make a picture of its bytes."""
        return cls(type="image", data=bytes(data), media_type=media_type)

    @classmethod
    def of_image_url(cls, url: str) -> ContentPart:
        """Make a picture that is fetched by whoever answers."""
        return cls(type="image_url", image_url=url)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model asks for; what ran is the log's `tool.call`.

    Attributes:
        id: Joins it with its result.
        name: The tool.
        arguments: By name; a text where the model wrote what is no JSON object. NaN is a text here, too.
        extra: What else a provider said of the call, as it was.

    Raises:
        InvalidHistory: The id or the name is no text, or a field's name is in `extra`.
    """

    id: str
    name: str
    arguments: Any = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        for key in ("id", "name"):
            if not isinstance(getattr(self, key), str):
                raise InvalidHistory(f"{key} of a tool call is {type(getattr(self, key)).__name__}; it is a text")
        _settle_texts(self, ("id", "name"))
        object.__setattr__(self, "arguments", plain(self.arguments))
        object.__setattr__(self, "extra", _checked_extra(self.extra, {"id", "name", "arguments"}))


Content = str | tuple[ContentPart, ...]
_FIELDS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "partial"})


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a history.

    Attributes:
        role: Who speaks.
        content: A text, or pieces; lists of texts and pieces are taken as well. None is an empty text.
        tool_calls: What an assistant asks for.
        tool_call_id: The call that a tool's message answers.
        name: The tool that answers, or the speaker's name.
        partial: Why the answer is not whole (`cancelled`, `failed`, `interrupted`), None when it is.
        extra: Fields that nobody here knows, as they were given.

    Raises:
        InvalidHistory: The role is none of the four, the content is neither text nor pieces, another field is of the
            wrong type, tools are asked for by anybody but an assistant, or a field's name is in `extra`.
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
        _settle_texts(self, ("tool_call_id", "name", "partial"))
        object.__setattr__(self, "content", _content(self.content))
        object.__setattr__(self, "tool_calls", _calls(self.tool_calls))
        if self.tool_calls and self.role != "assistant":
            raise InvalidHistory(f"tool calls in a message of {self.role}; only an assistant asks for tools")
        object.__setattr__(self, "extra", _checked_extra(self.extra, _FIELDS))

    @classmethod
    def system(cls, content: Any) -> Message:
        """What the agent is told to be."""
        return cls("system", content)

    @classmethod
    def user(cls, content: Any, *, name: str | None = None) -> Message:
        """What a person says: a text, or texts and pieces."""
        return cls("user", content, name=name)

    @classmethod
    def assistant(
        cls, content: Any = "", *, tool_calls: Iterable[ToolRequest] = (), partial: str | None = None
    ) -> Message:
        """What the model answers, and the tools that it asks for."""
        return cls("assistant", content, tool_calls=tuple(tool_calls), partial=partial)

    @classmethod
    def tool(cls, content: Any, tool_call_id: str, *, name: str | None = None) -> Message:
        """What a tool says to a call."""
        return cls("tool", content, tool_call_id=tool_call_id, name=name)

    @property
    def text(self) -> str:
        """What it says, without its pictures."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text or "" for part in self.content if part.type == "text")

    @property
    def is_empty(self) -> bool:
        """It says nothing and asks for nothing."""
        return not self.content and not self.tool_calls


def _content(value: object) -> Content:
    if value is None or isinstance(value, str):
        return plain_text(value) if value else ""
    if isinstance(value, ContentPart):
        return (value,)
    if not isinstance(value, list | tuple):
        raise InvalidHistory(f"content is {type(value).__name__}; it is a text or a list of texts and ContentPart")
    return tuple(_part(item) for item in value)


def _part(item: object) -> ContentPart:
    if isinstance(item, ContentPart):
        return item
    if isinstance(item, str):
        return ContentPart.of_text(item)
    raise InvalidHistory(f"a piece of content is {type(item).__name__}; it is a text or a ContentPart")


def _calls(value: object) -> tuple[ToolRequest, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidHistory(f"tool_calls is {type(value).__name__}; it is a list of ToolRequest")
    for call in value:
        if not isinstance(call, ToolRequest):
            raise InvalidHistory(f"a tool call is {type(call).__name__}; it is a ToolRequest")
    return tuple(value)


def _settle_texts(value: object, names: Iterable[str]) -> None:
    for name in names:
        found = getattr(value, name)
        if found is None:
            continue
        if not isinstance(found, str):
            raise InvalidHistory(f"{name} is {type(found).__name__}; it is a text")
        if not found.isascii():
            object.__setattr__(value, name, plain_text(found))


def _checked_extra(extra: object, taken: Collection[str]) -> dict[str, Any]:
    """A plain copy of it: what is saved as a field could not be told from the field."""
    if not extra and type(extra) is dict:
        return {}
    if not isinstance(extra, Mapping):
        raise InvalidHistory(f"extra is {type(extra).__name__}; it is a mapping")
    for key in extra:
        if not isinstance(key, str):
            raise InvalidHistory(f"a key of extra is {type(key).__name__}; it is a text")
        if key in taken:
            raise InvalidHistory(f"extra has {key!r}, which is a field of its own")
    return {plain_text(key): plain(item) for key, item in extra.items()}
