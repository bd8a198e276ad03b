"""FullContextSnapshot: everything in the window with its texts, and the messages that no longer fit.

The invariant: the messages in the window are a suffix of the conversation. A message is never in the window if a newer
one is not. Thinking and refused tool calls count like all other messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.context.snapshots.snapshot_items import MessageDetailSnapshot, ToolDetailSnapshot
from sessionlog.context.usage import CamelCase
from sessionlog.context.windows import DEFAULT_CONTEXT_WINDOW


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSnapshot(CamelCase):
    """A system prompt and its tokens."""

    content: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullContextSnapshot:
    """The window with its texts.

    Attributes:
        agent_id: The agent, or the session.
        model_name: The model; None if unknown.
        context_window: Its window in tokens; 0 = unknown.
        is_window_known: False if the window is the default, because the model's is unknown.
        model_settings: Its settings.
        system_prompts: The system prompts, instructions included.
        tools: The definitions.
        messages: The conversation, oldest first.
        memory_blocks: What the agent keeps from earlier sessions.
        memory_tokens: The tokens of these.
        tool_environment: The keys for tools in the environment, with hidden values.
        tool_rules: Rules for the use of tools.
        estimated: False if all counts are exact.
    """

    agent_id: str
    model_name: str | None = None
    context_window: int = DEFAULT_CONTEXT_WINDOW
    is_window_known: bool = True
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    system_prompts: tuple[PromptSnapshot, ...] = ()
    tools: tuple[ToolDetailSnapshot, ...] = ()
    messages: tuple[MessageDetailSnapshot, ...] = ()
    memory_blocks: tuple[Mapping[str, Any], ...] = ()
    memory_tokens: int = 0
    tool_environment: Mapping[str, str] = field(default_factory=dict)
    tool_rules: tuple[Mapping[str, Any], ...] = ()
    estimated: bool = True

    @property
    def system_prompt_tokens(self) -> int:
        """Tokens of all system prompts."""
        return sum(prompt.tokens for prompt in self.system_prompts)

    @property
    def tool_tokens(self) -> int:
        """Tokens of all tool definitions."""
        return sum(tool.total_tokens for tool in self.tools)

    @property
    def current_tokens(self) -> int:
        """Tokens of the messages that fit in the window."""
        return sum(message.estimated_tokens for message in self.messages if message.in_context)

    @property
    def history_tokens(self) -> int:
        """Tokens of the messages that no longer fit."""
        return sum(message.estimated_tokens for message in self.messages if not message.in_context)

    @property
    def total_tokens(self) -> int:
        """Tokens of everything in the window."""
        return self.system_prompt_tokens + self.tool_tokens + self.memory_tokens + self.current_tokens

    @property
    def usage_percent(self) -> float:
        """How full the window is, with one decimal; 0 where it is unknown."""
        return round(self.total_tokens / self.context_window * 100, 1) if self.context_window else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys, every text whole."""
        return {
            "agentId": self.agent_id,
            "modelConfiguration": {
                "modelName": self.model_name,
                "contextWindow": self.context_window,
                "settings": dict(self.model_settings),
            },
            "systemPrompts": [prompt.to_dict() for prompt in self.system_prompts],
            "systemPromptTokens": self.system_prompt_tokens,
            "tools": [tool.to_dict() for tool in self.tools],
            "toolTokens": self.tool_tokens,
            "messages": [message.to_dict() for message in self.messages],
            "memoryBlocks": [dict(block) for block in self.memory_blocks],
            "memoryTokens": self.memory_tokens,
            "toolEnvironment": dict(self.tool_environment),
            "toolRules": [dict(rule) for rule in self.tool_rules],
            "tokenSummary": {
                "systemPrompts": self.system_prompt_tokens,
                "tools": self.tool_tokens,
                "memory": self.memory_tokens,
                "history": self.history_tokens,
                "current": self.current_tokens,
                "total": self.total_tokens,
                "contextWindow": self.context_window,
                "contextWindowKnown": self.is_window_known and self.context_window > 0,
                "usagePercent": self.usage_percent,
                "estimated": self.estimated,
            },
        }

    def to_table(self) -> Any:
        """Return a `rich.table.Table`: the model, the sums, and every message with its first words."""
        from sessionlog.render.context_table import make_full_context_table

        return make_full_context_table(self)
