"""ContextSnapshot: what fills a model's window now, and the usage of the last turn and the session.

The invariant: every token counts in one field. All sums are computed from the fields. The percentage is that of all of
them, because the window also holds the current turn's answers and tool calls.

The fields are estimates from the texts of messages and tools. The provider's count for the last request is exact; where
it is known (from a log), the percentage is based on it, and `not_in_messages` is the difference to the estimates (a
system prompt that was not logged, tools, overhead).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessionlog.context.snapshots.snapshot_items import MessageSnapshot, ToolSnapshot
from sessionlog.context.steps import RequestUsageSnapshot, StepRecord, record_steps, to_csv
from sessionlog.context.usage import SessionUsage, TurnUsage, camel_dict
from sessionlog.context.windows import DEFAULT_CONTEXT_WINDOW

_BEFORE_WINDOW = (
    "agent_id", "system_prompts", "system_prompt_tokens", "tools", "tool_tokens", "history_tool_call_tokens",
    "history_tool_return_tokens", "current_tool_call_tokens", "current_tool_return_tokens", "tool_call_tokens",
    "tool_return_tokens", "messages", "history_user_tokens", "history_assistant_tokens", "current_user_tokens",
    "current_assistant_tokens", "history_tokens", "current_message_tokens", "user_message_tokens",
    "assistant_message_tokens", "total_tokens", "estimated", "model_input_tokens", "model_output_tokens",
    "sum_response_input_tokens", "sum_response_output_tokens", "per_request_usage", "not_in_messages",
)  # fmt: skip
"""The keys in the JSON of a snapshot before its window, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSnapshot:
    """What fills the window, in tokens: `history` is everything before the last user prompt, `current` the rest.

    Attributes:
        agent_id: The agent, or the session.
        system_prompts: Their texts, instructions included.
        system_prompt_tokens: Their tokens.
        tools: The definitions.
        messages: The texts of user and model.
        model_input_tokens: The prompt tokens that the provider reported for the last request, from a log or the
            caller.
        model_output_tokens: The same of the output.
        per_request_usage: The usage of each request.
        context_window: The model's window; 0 = unknown.
        is_window_known: False if the window is the default, because the model's is unknown.
        turn_usage: The usage of the last turn; None if unknown.
        session_usage: The same of the session.
        estimated: False if all counts are exact.
    """

    agent_id: str
    system_prompts: tuple[str, ...] = ()
    system_prompt_tokens: int = 0
    tools: tuple[ToolSnapshot, ...] = ()
    history_user_tokens: int = 0
    history_assistant_tokens: int = 0
    history_tool_call_tokens: int = 0
    history_tool_return_tokens: int = 0
    current_user_tokens: int = 0
    current_assistant_tokens: int = 0
    current_tool_call_tokens: int = 0
    current_tool_return_tokens: int = 0
    messages: tuple[MessageSnapshot, ...] = ()
    model_input_tokens: int | None = None
    model_output_tokens: int | None = None
    per_request_usage: tuple[RequestUsageSnapshot, ...] = ()
    context_window: int = DEFAULT_CONTEXT_WINDOW
    is_window_known: bool = True
    turn_usage: TurnUsage | None = None
    session_usage: SessionUsage | None = None
    estimated: bool = True

    @property
    def tool_tokens(self) -> int:
        """Tokens of all tool definitions."""
        return sum(tool.total_tokens for tool in self.tools)

    @property
    def tool_call_tokens(self) -> int:
        """Tokens of all tool calls."""
        return self.history_tool_call_tokens + self.current_tool_call_tokens

    @property
    def tool_return_tokens(self) -> int:
        """Tokens of all tool results."""
        return self.history_tool_return_tokens + self.current_tool_return_tokens

    @property
    def history_tokens(self) -> int:
        """Texts before the last prompt, without tool calls and results (`get_history_total` includes them)."""
        return self.history_user_tokens + self.history_assistant_tokens

    @property
    def current_message_tokens(self) -> int:
        """Tokens of the last prompt."""
        return self.current_user_tokens

    @property
    def user_message_tokens(self) -> int:
        """Tokens of all user messages."""
        return self.history_user_tokens + self.current_user_tokens

    @property
    def assistant_message_tokens(self) -> int:
        """Tokens of all answers and thinking of the model."""
        return self.history_assistant_tokens + self.current_assistant_tokens

    @property
    def total_tokens(self) -> int:
        """The estimated sum of all parts; `get_context_total` prefers the provider's count."""
        messages = self.user_message_tokens + self.assistant_message_tokens
        return self.system_prompt_tokens + self.tool_tokens + messages + self.tool_call_tokens + self.tool_return_tokens

    @property
    def not_in_messages(self) -> int | None:
        """The provider's count less the parts; None without a count."""
        return None if not self.model_input_tokens else max(0, self.model_input_tokens - self.total_tokens)

    @property
    def sum_response_input_tokens(self) -> int:
        """The reported prompt tokens of all requests: what is paid for, not what fills the window."""
        return sum(step.input_tokens for step in self.per_request_usage)

    @property
    def sum_response_output_tokens(self) -> int:
        """The reported output tokens of all requests."""
        return sum(step.output_tokens for step in self.per_request_usage)

    @property
    def turn_steps(self) -> tuple[RequestUsageSnapshot, ...]:
        """The requests of the last turn."""
        if not self.per_request_usage or (self.turn_usage is not None and not self.turn_usage.requests):
            return ()
        last = self.per_request_usage[-1].turn_id
        return tuple(step for step in self.per_request_usage if step.turn_id == last)

    def get_history_total(self) -> int:
        """Return the tokens of everything before the last prompt, with tool calls and results."""
        return self.history_tokens + self.history_tool_call_tokens + self.history_tool_return_tokens

    def get_context_total(self) -> int:
        """Return the tokens in the window: the provider's count, else the sum of all parts."""
        return self.model_input_tokens or self.total_tokens

    def get_context_percentage(self) -> float:
        """Return how full the window is, in percent; 0 if its size is 0. A guess if not `is_window_known`."""
        return self.get_context_total() / self.context_window * 100 if self.context_window else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON value with camelCase keys; messages are cut at 200 characters."""
        return camel_dict(self, *_BEFORE_WINDOW) | {
            "contextTokens": self.get_context_total(),
            "contextWindow": self.context_window,
            "contextWindowKnown": self.is_window_known and self.context_window > 0,
            "contextPercentage": self._known_percentage(),
            **camel_dict(self, "turn_usage", "session_usage"),
            "distribution": self._distribution(),
        }

    def _known_percentage(self) -> float | None:
        """Return the percentage; None if the window is a guess, or smaller than its content."""
        is_known = self.is_window_known and self.context_window > 0 and self.get_context_total() <= self.context_window
        return self.get_context_percentage() if is_known else None

    def _distribution(self) -> dict[str, Any]:
        """Return the non-empty parts for a treemap, with their sum as the value."""
        parts = {
            "System Prompts": self.system_prompt_tokens,
            "Tool Definitions": self.tool_tokens,
            "User Messages": self.user_message_tokens,
            "Assistant Messages": self.assistant_message_tokens,
            "Tool Usage": self.tool_call_tokens + self.tool_return_tokens,
        }
        children = [{"name": name, "value": value} for name, value in parts.items() if value > 0]
        return {"name": "Context", "value": self.total_tokens, "children": children}

    def to_csv(self, *, durations: bool = True) -> str:
        """Return its requests as CSV with a heading, one row each (see `steps.to_csv`)."""
        return to_csv(record_steps(self.per_request_usage, self.agent_id), durations=durations)

    def to_table(self, show_context: bool = True) -> Any:
        """Return a `rich.table.Table`: what fills the window (if `show_context`), the last turn, and the session."""
        from sessionlog.render.context_table import make_context_table

        return make_context_table(self, show_context=show_context)


def record_steps_from_snapshot(snapshot: ContextSnapshot, session_id: str | None = None) -> tuple[StepRecord, ...]:
    """Return the requests of a snapshot as rows of the CSV; the session's id is the agent's by default."""
    return record_steps(snapshot.per_request_usage, snapshot.agent_id if session_id is None else session_id)
