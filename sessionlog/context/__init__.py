"""What fills a model's context window, and the token usage of turns and sessions.

For a live agent, `UsageTracker` sums its turns, `extract_context_snapshot` reads the agent and its messages, and the
registry makes snapshots of agents by id. Each of them also works from a log alone. Names are imported on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself costs a start-up 3 ms
if TYPE_CHECKING:
    from typing import Any

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

_MODULES = {
    "AgentRecorder": "registry",
    "ContextSnapshot": "snapshots.snapshot",
    "DEFAULT_CONTEXT_WINDOW": "windows",
    "FullContextSnapshot": "snapshots.full_snapshot",
    "MessageDetailSnapshot": "snapshots.snapshot_items",
    "MessageSnapshot": "snapshots.snapshot_items",
    "PromptSnapshot": "snapshots.full_snapshot",
    "RequestUsageSnapshot": "steps",
    "SessionUsage": "usage",
    "StepRecord": "steps",
    "TokenCount": "tokens",
    "ToolDetailSnapshot": "snapshots.snapshot_items",
    "ToolSnapshot": "snapshots.snapshot_items",
    "TurnUsage": "usage",
    "UsageTracker": "tracker",
    "count_tokens": "tokens",
    "count_tokens_json": "tokens",
    "extract_context_snapshot": "snapshots.extract",
    "extract_full_context_snapshot": "snapshots.extract",
    "find_context_window": "windows",
    "get_agent_context_snapshot": "registry",
    "get_agent_full_context_snapshot": "registry",
    "get_model_context_window": "windows",
    "get_step_history": "snapshots.logged",
    "list_available_tools": "snapshots.tools",
    "record_steps_from_snapshot": "snapshots.snapshot",
    "register_agent": "registry",
    "save_csv": "steps",
    "to_csv": "steps",
    "unregister_agent": "registry",
    "usage_to_dict": "usage",
}

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


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'sessionlog.context' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - it imports warnings, which the command line avoids

    value = getattr(import_module(f"sessionlog.context.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
