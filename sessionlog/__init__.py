"""sessionlog: the flight recorder and the meter for AI agents.

Record with `SessionLogger`; read back with `read_events`, `follow` and `replay`; measure with `aggregate_usage`,
`aggregate_tools`, `list_sessions`, `list_blocks` and `scan_routing_quality`; see what is left with `session_status` and
`Budget`. `sessionlog.context` reports what fills the context window; `sessionlog.conversation` has sessions with a
history, and its names can be imported from here as well. Names are imported when they are first used: an agent that
only records loads nothing else.
"""

from __future__ import annotations

from sessionlog._version import __version__
from sessionlog.lazy_imports import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.analytics.blocks import list_blocks
    from sessionlog.analytics.budgets.budget import Budget
    from sessionlog.analytics.routing import RoutingQualityScan, scan_routing_quality
    from sessionlog.analytics.sessions import SessionList, list_sessions
    from sessionlog.analytics.status.reader import session_status
    from sessionlog.analytics.tools import aggregate_tools
    from sessionlog.analytics.usage import aggregate_usage
    from sessionlog.analytics.usage_row import UsageReport, UsageRow
    from sessionlog.analytics.window import UsageWindow
    from sessionlog.analytics.window_grammar import parse_usage_window
    from sessionlog.errors import Problem, SessionLogError
    from sessionlog.events.envelope import Event
    from sessionlog.events.money import Money
    from sessionlog.events.payload_json import payload
    from sessionlog.events.payloads import (
        LLMRequest,
        LLMResponse,
        Override,
        RejectedOverride,
        RoutingStickyState,
        RoutingUtilizationState,
        SessionEnd,
        SessionStart,
        ToolCall,
    )
    from sessionlog.events.tokens import TokenUsage
    from sessionlog.logger.session_logger import SessionLogger
    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.estimate import estimate_cost
    from sessionlog.pricing.model_pricing import ModelPricing
    from sessionlog.pricing.seed_table import DEFAULT_PRICING, PricingTable
    from sessionlog.reader.check import check_logs
    from sessionlog.reader.follow import follow
    from sessionlog.reader.repair import repair_log
    from sessionlog.reader.stream import read_events
    from sessionlog.render.replay import replay

__all__ = [
    "DEFAULT_PRICING",
    "Budget",
    "Event",
    "LLMRequest",
    "LLMResponse",
    "ModelPricing",
    "Money",
    "Override",
    "PriceBook",
    "PricingTable",
    "Problem",
    "RejectedOverride",
    "RoutingQualityScan",
    "RoutingStickyState",
    "RoutingUtilizationState",
    "SessionEnd",
    "SessionList",
    "SessionLogError",
    "SessionLogger",
    "SessionStart",
    "TokenUsage",
    "ToolCall",
    "UsageReport",
    "UsageRow",
    "UsageWindow",
    "__version__",
    "aggregate_tools",
    "aggregate_usage",
    "check_logs",
    "estimate_cost",
    "follow",
    "list_blocks",
    "list_sessions",
    "parse_usage_window",
    "payload",
    "read_events",
    "repair_log",
    "replay",
    "scan_routing_quality",
    "session_status",
]

__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "analytics.blocks": "list_blocks",
        "analytics.budgets.budget": "Budget",
        "analytics.routing": "RoutingQualityScan scan_routing_quality",
        "analytics.sessions": "SessionList list_sessions",
        "analytics.status.reader": "session_status",
        "analytics.tools": "aggregate_tools",
        "analytics.usage": "aggregate_usage",
        "analytics.usage_row": "UsageReport UsageRow",
        "analytics.window": "UsageWindow",
        "analytics.window_grammar": "parse_usage_window",
        "conversation": (
            "Agent AgentError ContentPart Conversation ConversationSettings Done FileStore InvalidHistory "
            "MemoryStore Message MissingField Reply Response SQLiteStore Saved Session SessionNotSaved "
            "SessionStore StaleSession StreamPiece TextDelta TokenCounter Tool ToolCalled ToolRequest "
            "ToolReturned Truncation"
        ),
        "errors": "Problem SessionLogError",
        "events.envelope": "Event",
        "events.money": "Money",
        "events.payload_json": "payload",
        "events.payloads": (
            "LLMRequest LLMResponse Override RejectedOverride RoutingStickyState RoutingUtilizationState "
            "SessionEnd SessionStart ToolCall"
        ),
        "events.tokens": "TokenUsage",
        "logger.session_logger": "SessionLogger",
        "pricing.book": "PriceBook",
        "pricing.estimate": "estimate_cost",
        "pricing.model_pricing": "ModelPricing",
        "pricing.seed_table": "DEFAULT_PRICING PricingTable",
        "reader.check": "check_logs",
        "reader.follow": "follow",
        "reader.repair": "repair_log",
        "reader.stream": "read_events",
        "render.replay": "replay",
    },
)
