"""What a GenAI span counts for: a call with its record, a tool's use, an agent's sum, or nothing.

Names of attributes are those of the conventions since 1.36, older ones after them; the first that is there counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.sources.gather import server_of
from sessionlog.sources.otel.messages import result_size
from sessionlog.sources.otel.spans import Span
from sessionlog.sources.record import UNKNOWN, CopyRank, Record, ToolUse, read_name

Kind = Literal["call", "sum", "tool", ""]

CONVERSATION = ("gen_ai.conversation.id", "session.id")

_CALLS = frozenset({"chat", "text_completion", "generate_content", "embeddings", "completion", "embedding"})
_SUMS = frozenset({"invoke_agent", "invoke_workflow"})
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
)
_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
)
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
)
_PROVIDER = ("gen_ai.provider.name", "gen_ai.system", "llm.vendor")
_ANSWERED = ("gen_ai.response.model", "llm.response.model")
_MODEL = ("gen_ai.request.model", "llm.request.model", *_ANSWERED)
_APART = ("gen_ai.tool.name", "gen_ai.agent.name", "traceloop.span.kind")


def name_in(span: Span, names: Iterable[str]) -> str | None:
    """Return the first of these attributes that is a name."""
    return next((found for name in names if (found := read_name(span.attributes.get(name)))), None)


def kind_of(span: Span) -> Kind:
    """Say what a span stands for; one without an operation is a call if it names a model and its tokens."""
    operation = name_in(span, ("gen_ai.operation.name", "llm.request.type"))
    if operation is None:
        counted = _told(span) and name_in(span, _MODEL)
        return "call" if counted and all(name not in span.attributes for name in _APART) else ""
    if operation == "execute_tool":
        return "tool"
    return "call" if operation in _CALLS else "sum" if operation in _SUMS else ""


def has_failed(span: Span) -> bool:
    """Whether the operation ended in an error."""
    return span.failed or name_in(span, ("error.type",)) is not None


def error_of(span: Span) -> str:
    """Why it failed, as far as the span tells; empty when it has not."""
    return (span.message or name_in(span, ("error.type",)) or "failed") if has_failed(span) else ""


def latency_ms(span: Span) -> float | None:
    """Return how long a span took."""
    if span.start_ns is None or span.end_ns is None or span.end_ns < span.start_ns:
        return None
    return (span.end_ns - span.start_ns) / 1_000_000


def read_record(span: Span, kind: Kind) -> tuple[Record, list[str]]:
    """Return the record of a call or a sum, and which of its counts are none.

    A sum stands aside where another log tells its trace's calls.
    """
    usage, issues = _usage(span)
    failed = has_failed(span)
    record = Record(
        time_ns=span.end_ns,
        provider=name_in(span, _PROVIDER) or UNKNOWN,
        model=name_in(span, _MODEL) or UNKNOWN,
        response_model=name_in(span, _ANSWERED),
        usage=usage,
        cost_nano=None,
        latency_ms=latency_ms(span) if kind == "call" else None,
        failed=failed,
        granularity="request" if kind == "call" else "session",
        quality="exact" if failed or _told(span) else "partial",
        key=f"{span.trace}:{span.id}",
        family=span.trace,
        copy_rank=CopyRank.ORIGINAL if kind == "call" else CopyRank.SIDECHAIN,
        version=read_name(span.resource.get("service.version")) or UNKNOWN,
    )
    return record, issues


def _told(span: Span) -> bool:
    return any(span.attributes.get(name) is not None for name in (*_INPUT, *_OUTPUT))


def _usage(span: Span) -> tuple[TokenUsage, list[str]]:
    """Read the counts into disjoint classes, and say which are none."""
    issues: list[str] = []

    def count(names: Iterable[str]) -> int:
        name = next((name for name in names if span.attributes.get(name) is not None), "")
        number, issue = read_count(span.attributes.get(name))
        issues.extend([f"{name}: {issue}"] if issue else [])
        return number

    whole, output, read, written = count(_INPUT), count(_OUTPUT), count(_READ), count(_WRITTEN)
    usage = TokenUsage(
        input=whole if whole < read + written else whole - read - written,  # else somebody left the cache out of it
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=min(output, count(_REASONING)),
    )
    return usage, issues


def read_tool(span: Span) -> ToolUse:
    """Return the use of a tool that a span tells of."""
    tool, server = server_of(name_in(span, ("gen_ai.tool.name",)) or UNKNOWN)
    return ToolUse(
        key=f"{span.trace}:{span.id}", time_ns=span.start_ns, tool=tool, server=server, finished=True,
        failed=has_failed(span), duration_ms=latency_ms(span), output_bytes=result_size(span),
    )  # fmt: skip
