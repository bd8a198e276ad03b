"""Qwen Code's token counts: Google's names, filled by four kinds of provider that do not mean the same.

`promptTokenCount` includes what came from a cache. `candidatesTokenCount` includes the thoughts where an
OpenAI-compatible or Anthropic-compatible service answered, which is nearly always (reasoning is then a part of the
completion, sometimes estimated from its text), and excludes them where Google's own API did. `totalTokenCount` tells
which: it is prompt + candidates in the first case and prompt + candidates + thoughts in the second. Without a usable
total the thoughts are inside, unless there are more of them than candidates. Services that report only a total get it
as input, marked `estimated`. Cache writes are not logged apart: they stay in the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.sources.record import Quality

NAMES = (
    "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount",
    "toolUsePromptTokenCount", "totalTokenCount",
)  # fmt: skip
_TELEMETRY = (
    "input_token_count", "cached_content_token_count", "output_token_count", "thoughts_token_count",
    "tool_token_count", "total_token_count",
)  # fmt: skip


def telemetry_counts(event: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a telemetry event under the names of a usage."""
    return {name: event.get(other) for name, other in zip(NAMES, _TELEMETRY, strict=True)}


def fingerprint(counts: Mapping[str, Any]) -> str:
    """What two copies of one response's counts have in common, however they were written down."""
    return ":".join(str(read_count(counts.get(name))[0]) for name in NAMES if name != "toolUsePromptTokenCount")


def read_usage(counts: Mapping[str, Any]) -> tuple[TokenUsage, Quality, list[str]]:
    """Return the tokens in disjoint classes, how exact they are, and what was no number."""
    numbers: list[int] = []
    issues: list[str] = []
    for name in NAMES:
        number, issue = read_count(counts.get(name))
        numbers.append(number)
        if issue:
            issues.append(f"{name}: {issue}")
    prompt, cached, candidates, thoughts, tool, total = numbers
    if total and not (prompt or candidates or cached or thoughts):
        return TokenUsage(input=total), "estimated", issues
    inside = {prompt + candidates, prompt + tool + candidates}
    told = total in inside and thoughts <= candidates
    apart = not told and (total - thoughts in inside or thoughts > candidates)
    usage = TokenUsage(
        input=(prompt if cached > prompt else prompt - cached) + tool,
        output=candidates + thoughts if apart else candidates,
        cache_read=cached,
        reasoning=thoughts,
    )
    return usage, "exact", issues
