"""The messages of pi and OpenClaw: what one row says, in our words. Nothing here knows of files.

Both agents write the same rows: a header, then a tree of entries (`id`, `parentId`), most of them messages by role. The
file order is the order in which things happened; every branch of the tree was billed, so the tree is not looked at.
Input excludes the cache; reasoning is a part of output, the hour's cache writes one of all cache writes. An entry's own
time is when it was stored, its message's time when the answer began.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sessionlog.events.money import read_usd
from sessionlog.events.times import SECOND, epoch_ns, parse_time
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.sources.gather import first_words
from sessionlog.sources.record import UNKNOWN, read_name

Row = Mapping[str, Any]
FAILED = frozenset({"error", "aborted"})
SUMMARIES = frozenset({"compaction", "branch_summary"})
RESULTS = frozenset({"toolResult", "tool"})
_ENDED = {"stop": "success", "length": "success", "error": "error", "aborted": "cancelled"}
_CALL_HOURS = 1  # a longer wait was a closed laptop, not a call
_FIELDS = ("input", "output", "cacheRead", "cacheWrite", "reasoning", "cacheWrite1h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """In what the agents of this family differ.

    Attributes:
        key: (row, its message, usage) → the name of the response wherever it is copied to; empty = it has none.
        skips: message → whether it is no answer of a model at all.
        superseded_by: (message, provider) → the session of another agent whose own log has the response; empty = none.
    """

    key: Callable[[Row, Row, TokenUsage], str]
    skips: Callable[[Row], bool] = lambda _: False
    superseded_by: Callable[[Row, str], str] = lambda _, __: ""


@dataclass(slots=True)
class Model:
    """The model in force: rows that name none were answered by it.

    Attributes:
        provider: Who serves it.
        name: What it is called.
    """

    provider: str = ""
    name: str = ""

    def change(self, row: Row) -> None:
        """Take what a header, a `model_change` or a `model-snapshot` says."""
        data = row.get("data")
        source = data if isinstance(data, Mapping) else row
        provider = read_name(source.get("provider"))
        name = read_name(source.get("modelId")) or read_name(source.get("model"))
        if name and not provider and "/" in name:
            provider, _, name = name.partition("/")
        self.provider = provider or self.provider
        self.name = name or self.name

    def answered(self, message: Row) -> tuple[str, str]:
        """Return provider and model of an answer, and let them be in force from here on."""
        self.provider = read_name(message.get("provider")) or self.provider
        self.name = read_name(message.get("model")) or self.name
        return self.provider or UNKNOWN, self.name or UNKNOWN


def changes_model(row: Row) -> bool:
    """Whether a row is there to say which model answers from now on."""
    kind = row.get("type")
    return kind == "model_change" or (kind == "custom" and row.get("customType") == "model-snapshot")


def read_stamp(value: Any) -> int | None:
    """Return nanoseconds since 1970 for RFC 3339, or for an epoch in s, ms, µs or ns told by its magnitude."""
    return parse_time(value) if isinstance(value, str) else epoch_ns(value)


def read_response_usage(value: Any) -> tuple[TokenUsage, int | None, tuple[str, ...]]:
    """Read a message's `usage`: tokens, the recorded cost in nano-dollars, and what was wrong with the numbers.

    A cost of 0 is what these agents write where they know no price: only one above 0 counts.
    """
    if not isinstance(value, Mapping):
        return TokenUsage(), None, () if value is None else (f"usage is a {type(value).__name__}",)
    issues = []
    counts = {}
    for name in _FIELDS:
        counts[name], issue = read_count(value.get(name))
        if issue:
            issues.append(f"{name}: {issue}")
    usage = TokenUsage(
        input=counts["input"], output=counts["output"],
        cache_read=counts["cacheRead"], cache_write=counts["cacheWrite"],
        reasoning=min(counts["reasoning"], counts["output"]),
        cache_write_1h=min(counts["cacheWrite1h"], counts["cacheWrite"]),
    )  # fmt: skip
    cost = value.get("cost")
    nano, issue = read_usd(cost.get("total") if isinstance(cost, Mapping) else None)
    if issue:
        issues.append(issue)
    return usage, nano or None, tuple(issues)


def kind_of(row: Row) -> str:
    """Return a row's type, "" where it has none."""
    kind = row.get("type")
    return kind if isinstance(kind, str) else ""


def role_of(message: Row) -> str:
    """Return whose message it is, "" where that is not told."""
    role = message.get("role")
    return role if isinstance(role, str) else ""


def message_of(row: Row) -> Row | None:
    """Return the message in a row, None where there is none."""
    message = row.get("message")
    return message if row.get("type") == "message" and isinstance(message, Mapping) else None


def time_of(row: Row, message: Row | None = None) -> int | None:
    """Return when a row was stored, else when its message began."""
    stored = read_stamp(row.get("timestamp"))
    return stored if stored is not None or message is None else read_stamp(message.get("timestamp"))


def latency_of(row: Row, message: Row, asked_ns: int | None) -> float | None:
    """Return the milliseconds from the answer's beginning to its end, else from what was last said before it."""
    done_ns = time_of(row, message)
    if done_ns is None:
        return None
    begun_ns = read_stamp(message.get("timestamp"))
    for start_ns in (begun_ns, asked_ns):
        if start_ns is not None and 0 < done_ns - start_ns <= _CALL_HOURS * 3600 * SECOND:
            return (done_ns - start_ns) / 1_000_000
    return None


def calls_of(message: Row) -> list[tuple[str, str, Any]]:
    """Return the tool calls in an answer: (id, name, arguments)."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [
        (read_name(part.get("id")) or "", read_name(part.get("name")) or UNKNOWN, part.get("arguments"))
        for part in parts
        if isinstance(part, Mapping) and part.get("type") == "toolCall"
    ]


def summary_key(row: Row, usage: TokenUsage) -> str:
    """Name the response that wrote a summary, or that a tool asked for by itself; it is copied with its row."""
    entry, time_ns = read_name(row.get("id")), read_stamp(row.get("timestamp"))
    if entry is None and time_ns is None:
        return ""
    return f"{row.get('type')}:{entry or ''}:{time_ns or ''}:{usage.input}:{usage.output}"


def text_of(value: Any) -> str:
    """Return what a content says: a text, or the texts of its parts."""
    if isinstance(value, str):
        return value
    return "\n".join(_texts(value, "text"))


def thoughts_of(message: Row) -> str:
    """Return the reasoning that an answer shows."""
    return "\n".join(_texts(message.get("content"), "thinking"))


def _texts(value: Any, kind: str) -> list[str]:
    parts = value if isinstance(value, list) else []
    found = (part.get(kind) for part in parts if isinstance(part, Mapping) and part.get("type") == kind)
    return [text for text in found if isinstance(text, str) and text]


def has_failed(message: Row) -> bool:
    """Whether an answer broke off: the provider failed, or somebody stopped it."""
    stop = message.get("stopReason")
    return isinstance(stop, str) and stop in FAILED


def is_typed(message: Row) -> bool:
    """Whether a user's message came from a person: not what the program itself adds to the context."""
    return message.get("role") == "user" and not message.get("runtimeContext")


def folder_of(row: Row) -> str:
    """Return the working folder in a header, `unknown` where it is none."""
    cwd = row.get("cwd")
    return cwd if isinstance(cwd, str) and (os.path.isabs(cwd) or cwd[1:3] == ":\\") else UNKNOWN


@dataclass(slots=True)
class Outcome:
    """How a session ended, as far as its rows tell.

    Attributes:
        status: success, error or cancelled; None while an answer is due.
        error: Why it failed.
    """

    status: str | None = None
    error: str = ""

    def take(self, message: Row) -> None:
        """Take the next message."""
        stop = message.get("stopReason") if message.get("role") == "assistant" else None
        self.status = _ENDED.get(stop) if isinstance(stop, str) else None
        self.error = first_words(message.get("errorMessage")) if self.status == "error" else ""
