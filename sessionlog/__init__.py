"""sessionlog: the flight recorder and the meter for AI agents.

Record with `SessionLogger`; read back with `read_events`, `follow` and `replay`; measure with `aggregate_usage`,
`aggregate_tools`, `list_sessions`, `list_blocks` and `scan_routing_quality`; ask what is left with `session_status` and
`Budget`; what fills the window is `sessionlog.context`'s. Sessions that remember are `sessionlog.conversation`'s; its
names can be had from here as well. Names are loaded when they are first used: an agent that only records pays for
nothing else.
"""

from __future__ import annotations

from sessionlog._version import __version__

TYPE_CHECKING = False  # typing itself costs an agent's start 3 ms
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.analytics.blocks import list_blocks
    from sessionlog.analytics.budgets.budget import Budget
    from sessionlog.analytics.routing import RoutingQualityScan, scan_routing_quality
    from sessionlog.analytics.sessions import SessionList, list_sessions
    from sessionlog.analytics.status.reader import session_status
    from sessionlog.analytics.tools import aggregate_tools
    from sessionlog.analytics.usage import aggregate_usage
    from sessionlog.analytics.usage_row import UsageReport, UsageRow
    from sessionlog.analytics.window import UsageWindow, parse_usage_window
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

_HOMES = {
    "Budget": "analytics.budgets.budget",
    "DEFAULT_PRICING": "pricing.seed_table",
    "Event": "events.envelope",
    "LLMRequest": "events.payloads",
    "LLMResponse": "events.payloads",
    "ModelPricing": "pricing.model_pricing",
    "Money": "events.money",
    "Override": "events.payloads",
    "PriceBook": "pricing.book",
    "PricingTable": "pricing.seed_table",
    "Problem": "errors",
    "RejectedOverride": "events.payloads",
    "RoutingQualityScan": "analytics.routing",
    "RoutingStickyState": "events.payloads",
    "RoutingUtilizationState": "events.payloads",
    "SessionEnd": "events.payloads",
    "SessionList": "analytics.sessions",
    "SessionLogError": "errors",
    "SessionLogger": "logger.session_logger",
    "SessionStart": "events.payloads",
    "TokenUsage": "events.tokens",
    "ToolCall": "events.payloads",
    "UsageReport": "analytics.usage_row",
    "UsageRow": "analytics.usage_row",
    "UsageWindow": "analytics.window",
    "aggregate_tools": "analytics.tools",
    "aggregate_usage": "analytics.usage",
    "check_logs": "reader.check",
    "estimate_cost": "pricing.estimate",
    "follow": "reader.follow",
    "list_blocks": "analytics.blocks",
    "list_sessions": "analytics.sessions",
    "parse_usage_window": "analytics.window",
    "payload": "events.payload_json",
    "read_events": "reader.stream",
    "repair_log": "reader.repair",
    "replay": "render.replay",
    "scan_routing_quality": "analytics.routing",
    "session_status": "analytics.status.reader",
}

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


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - it imports warnings, which the command line saves

    home = _HOMES.get(name)
    # rooms are asked for in this way too, by every `from sessionlog import files`, and must not load one another
    if home is None and name[:1].isupper() and name in import_module("sessionlog.conversation").__all__:
        home = "conversation"
    if home is None:
        raise AttributeError(f"module 'sessionlog' has no attribute {name!r}")
    value = getattr(import_module(f"sessionlog.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
