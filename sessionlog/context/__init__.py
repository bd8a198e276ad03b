"""What fills a model's context window, and the token usage of turns and sessions.

For a live agent, `UsageTracker` sums its turns, `extract_context_snapshot` reads the agent and its messages, and the
registry makes snapshots of agents by id. Each of them also works from a log alone. Names are imported on first use.
"""

from __future__ import annotations

from sessionlog.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.context.registry import (
        AgentRecorder,
        get_agent_context_snapshot,
        get_agent_full_context_snapshot,
        register_agent,
        unregister_agent,
    )
    from sessionlog.context.snapshots.extract import extract_context_snapshot, extract_full_context_snapshot
    from sessionlog.context.snapshots.full_snapshot import FullContextSnapshot, PromptSnapshot
    from sessionlog.context.snapshots.logged import get_step_history
    from sessionlog.context.snapshots.snapshot import ContextSnapshot, record_steps_from_snapshot
    from sessionlog.context.snapshots.snapshot_items import (
        MessageDetailSnapshot,
        MessageSnapshot,
        ToolDetailSnapshot,
        ToolSnapshot,
    )
    from sessionlog.context.snapshots.tools import list_available_tools
    from sessionlog.context.steps import RequestUsageSnapshot, StepRecord, save_csv, to_csv
    from sessionlog.context.tokens import TokenCount, count_tokens, count_tokens_json
    from sessionlog.context.tracker import UsageTracker
    from sessionlog.context.usage import SessionUsage, TurnUsage, usage_to_dict
    from sessionlog.context.windows import DEFAULT_CONTEXT_WINDOW, find_context_window, get_model_context_window

__all__ = [
    "DEFAULT_CONTEXT_WINDOW",
    "AgentRecorder",
    "ContextSnapshot",
    "FullContextSnapshot",
    "MessageDetailSnapshot",
    "MessageSnapshot",
    "PromptSnapshot",
    "RequestUsageSnapshot",
    "SessionUsage",
    "StepRecord",
    "TokenCount",
    "ToolDetailSnapshot",
    "ToolSnapshot",
    "TurnUsage",
    "UsageTracker",
    "count_tokens",
    "count_tokens_json",
    "extract_context_snapshot",
    "extract_full_context_snapshot",
    "find_context_window",
    "get_agent_context_snapshot",
    "get_agent_full_context_snapshot",
    "get_model_context_window",
    "get_step_history",
    "list_available_tools",
    "record_steps_from_snapshot",
    "register_agent",
    "save_csv",
    "to_csv",
    "unregister_agent",
    "usage_to_dict",
]

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "context.registry": (
            "AgentRecorder get_agent_context_snapshot get_agent_full_context_snapshot register_agent unregister_agent"
        ),
        "context.snapshots.extract": "extract_context_snapshot extract_full_context_snapshot",
        "context.snapshots.full_snapshot": "FullContextSnapshot PromptSnapshot",
        "context.snapshots.logged": "get_step_history",
        "context.snapshots.snapshot": "ContextSnapshot record_steps_from_snapshot",
        "context.snapshots.snapshot_items": "MessageDetailSnapshot MessageSnapshot ToolDetailSnapshot ToolSnapshot",
        "context.snapshots.tools": "list_available_tools",
        "context.steps": "RequestUsageSnapshot StepRecord save_csv to_csv",
        "context.tokens": "TokenCount count_tokens count_tokens_json",
        "context.tracker": "UsageTracker",
        "context.usage": "SessionUsage TurnUsage usage_to_dict",
        "context.windows": "DEFAULT_CONTEXT_WINDOW find_context_window get_model_context_window",
    },
)
