"""The names of OpenTelemetry's GenAI conventions, present and former, and what spans with them count for.

One table serves the source of exported spans, the span processor and the export. The first name of a tuple is the
present one (semantic-conventions-genai, schema `gen-ai-dev/1.42`), which the export writes; the others are of earlier
conventions and of OpenLLMetry. The conventions' `input_tokens` includes what was read from and written to a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sessionlog.events.tokens import TokenUsage, read_count

Kind = Literal["call", "sum", "tool", ""]

OPERATION = "gen_ai.operation.name"
PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.vendor")
RESPONSE_MODEL = ("gen_ai.response.model", "llm.response.model")
MODEL = ("gen_ai.request.model", "llm.request.model", *RESPONSE_MODEL)
RESPONSE_ID = "gen_ai.response.id"
SERVICE_TIER = (
    "openai.response.service_tier",
    "gen_ai.openai.response.service_tier",
    "openai.request.service_tier",
    "gen_ai.openai.request.service_tier",
)
"""That of the response goes before the one that was asked for."""
SEARCHES = "gen_ai.usage.details.web_search_requests"
"""Of pydantic-ai: billed searches of the provider's own tool."""
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = ("gen_ai.response.time_to_first_chunk", "gen_ai.client.operation.time_to_first_chunk")
"""Seconds."""
CONVERSATION = ("gen_ai.conversation.id", "session.id", "conversation.id")
AGENT = "gen_ai.agent.name"
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
TOOL_INPUT = "gen_ai.tool.call.arguments"
TOOL_OUTPUT = "gen_ai.tool.call.result"
TOOL_SERVER = "sessionlog.tool.server"
"""The MCP server of a tool, for which the conventions have no name."""
SYSTEM = "gen_ai.system_instructions"
SENT = "gen_ai.input.messages"
ANSWERED = "gen_ai.output.messages"
STATUS = "sessionlog.status"
"""How a session that we have exported has ended; `unfinished` without an end."""
DETAILS = "gen_ai.client.inference.operation.details"
"""The event that has the messages where spans do not."""
FOLDER = "process.working_directory"

USAGE: Mapping[str, tuple[str, ...]] = {
    "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"),
    "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"),
    "cache_read": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
    ),
    "cache_write": (
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
    ),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
    ),
}
"""Token class → attributes, of which the first one that is set counts."""

CALLS = frozenset({
    "chat", "text_completion", "generate_content", "embeddings", "completion", "embedding", "generation", "response",
})  # fmt: skip
"""Operations that are one request to a model."""

SUMS = frozenset({"invoke_agent", "invoke_workflow"})
"""Operations around requests, which repeat their tokens."""

UNIQUE = 16
"""Characters from which a response's id is its provider's, and not a counter."""

_APART = (TOOL, AGENT, "traceloop.span.kind")


def first_text(attributes: Mapping[str, Any], *names: str) -> str:
    """Return the first of these attributes that is a text and not empty; "" for none."""
    for name in names:
        value = attributes.get(name)
        if value and isinstance(value, str):
            return value
    return ""


def kind_of(attributes: Mapping[str, Any]) -> Kind:
    """Return what a span counts for: a `call` of a model, a `sum` of calls, a `tool`, or "" for nothing.

    One without an operation is a call if it has a model and tokens, and belongs to no tool, agent or workflow.
    """
    operation = first_text(attributes, OPERATION, "llm.request.type")
    if operation == "execute_tool":
        return "tool"
    if operation:
        return "call" if operation in CALLS else "sum" if operation in SUMS else ""
    is_counted = any(attributes.get(name) is not None for name in (*USAGE["input"], *USAGE["output"]))
    is_call = is_counted and first_text(attributes, *MODEL) and not any(name in attributes for name in _APART)
    return "call" if is_call else ""


def read_span_usage(attributes: Mapping[str, Any]) -> tuple[TokenUsage, tuple[str, ...]] | None:
    """Return the token counts of a span in disjoint classes, and what is wrong with them; None for a span without.

    An input that is less than its cached part was written by one who counts it apart: it is taken as it is.
    """
    counts = dict.fromkeys(USAGE, 0)
    found = set()
    issues = []
    for kind, names in USAGE.items():
        for name in names:
            value = attributes.get(name)
            if value is not None:
                found.add(kind)
                counts[kind], issue = read_count(value)
                issues += [f"{name}: {issue}"] if issue else []
                break
    if found.isdisjoint(("input", "output")):
        return None
    cached = counts["cache_read"] + counts["cache_write"]
    if cached <= counts["input"]:
        counts["input"] -= cached
    counts["reasoning"] = min(counts["reasoning"], counts["output"])
    return TokenUsage(**counts), tuple(issues)


def span_usage(usage: TokenUsage) -> dict[str, int]:
    """Return token counts as attributes: the input includes cached tokens; caches and reasoning only where they are."""
    counts = {
        "input": usage.input + usage.cache_read + usage.cache_write,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
    }
    return {USAGE[kind][0]: count for kind, count in counts.items() if count or kind in ("input", "output")}
