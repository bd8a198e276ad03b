"""The items of snapshots: tool definitions and messages, short and detailed, each with its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessionlog.context.usage import CamelCase, camel_dict

CUT = 200
"""Characters of a message in `to_dict`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSnapshot(CamelCase):
    """A tool's definition in the window.

    Attributes:
        name: The tool.
        description: Its description for the model.
        parameters_tokens: Tokens of its schema alone.
        total_tokens: Tokens of name, description and schema together.
    """

    name: str
    description: str | None
    parameters_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDetailSnapshot(CamelCase):
    """A tool's definition with more about the tool.

    Attributes:
        name: The tool.
        description: Its description for the model.
        parameters_schema: The JSON schema of its arguments.
        parameters_tokens: Tokens of the schema alone.
        total_tokens: Tokens of name, description and schema together.
        source_type: function, mcp, codemode, runtime or unknown.
        is_async: Its function is a coroutine.
        requires_approval: A person must approve each call.
        source_code: The source code of its function, if available.
    """

    name: str
    description: str | None
    parameters_schema: Mapping[str, Any]
    parameters_tokens: int
    total_tokens: int
    source_type: str = "unknown"
    is_async: bool = False
    requires_approval: bool = False
    source_code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSnapshot(CamelCase):
    """A text of the conversation: `user` or `assistant`, with its tokens and its time (RFC 3339, None = unknown)."""

    role: str
    content: str
    estimated_tokens: int
    timestamp: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys; a long content is cut."""
        shown = self.content if len(self.content) <= CUT else f"{self.content[:CUT]}..."
        return camel_dict(self) | {"content": shown}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDetailSnapshot(CamelCase):
    """A piece of the conversation, which may be a tool call, a result or thinking.

    Attributes:
        role: user, assistant or tool.
        content: Its text; of a tool call its arguments.
        estimated_tokens: Tokens of the content.
        timestamp: RFC 3339; None if unknown.
        in_context: Whether it fits in the window together with all newer pieces.
        tool_name: The tool of a call or a result.
        tool_call_id: The id that joins a call and its result.
        is_tool_call: It is a call.
        is_tool_result: It is a result.
    """

    role: str
    content: str
    estimated_tokens: int
    timestamp: str | None = None
    in_context: bool = True
    tool_name: str | None = None
    tool_call_id: str | None = None
    is_tool_call: bool = False
    is_tool_result: bool = False
