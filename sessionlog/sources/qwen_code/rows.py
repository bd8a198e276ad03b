"""What the rows of Qwen Code say: whose words, which agent, how a call ended, and the events of its telemetry."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from sessionlog.events.times import SECOND
from sessionlog.reader.rows import Row
from sessionlog.sources.google_parts import calls_of, read_duration, text_of
from sessionlog.sources.qwen_code.usage import telemetry_counts
from sessionlog.sources.record import MAIN, read_name

ID = "qwen-code"
SUBAGENT = "subagent"
_PROVIDERS = {"gemini": "google", "vertex-ai": "google", "gemini-api-key": "google", "anthropic": "anthropic"}
_STATES = {"completed": "success", "cancelled": "cancelled", "error": "error"}
_LONGEST_CALL_NS = 3600 * SECOND


class Telemetry(NamedTuple):
    """An API call as `ui_telemetry` tells it.

    Attributes:
        failed: It has no answer.
        aborted: The user stopped it.
        model: Who was asked.
        agent: The sub-agent that asked; None for the agent itself.
        duration_ms: Time of the call.
        error: Why it failed.
        auth: How the service was reached.
        counts: Its usage under the names of `usageMetadata`.
    """

    failed: bool
    aborted: bool
    model: str | None
    agent: str | None
    duration_ms: float | None
    error: str
    auth: str | None
    counts: dict[str, Any]


def session_id_of(path: str) -> str:
    """The session's id by the file's name, for logs that have none inside."""
    return re.sub(r"\.jsonl(\.gz|\.zst)?\Z", "", os.path.basename(path))


def provider_of(auth: str | None) -> str:
    """Who serves the models that are reached in a way."""
    return _PROVIDERS.get(auth or "", "qwen")


def agent_of(row: Row) -> str:
    """`main`, or the kind of sub-agent that wrote a row."""
    if row.get("isSidechain") is True or row.get("agentId") is not None:
        return read_name(row.get("agentName")) or SUBAGENT
    return MAIN


def parts_of(row: Row) -> Any:
    """The parts of a row's message."""
    message = row.get("message")
    return message.get("parts") if isinstance(message, dict) else None


def prompt_of(row: Row) -> str:
    """What the user typed; empty for notifications and other rows that only look like a user's."""
    if row.get("subtype") not in (None, "mid_turn_user_message", "realtime_message"):
        return ""
    payload = row.get("systemPayload")
    shown = payload.get("displayText") if isinstance(payload, dict) else None
    return shown if isinstance(shown, str) and shown else text_of(parts_of(row))


def read_telemetry(row: Row) -> Telemetry | None:
    """Return the API call that a row tells of, None for any other row."""
    payload = row.get("systemPayload")
    event = payload.get("uiEvent") if isinstance(payload, dict) else None
    if not isinstance(event, dict):
        return None
    name = read_name(event.get("event.name")) or ""
    if not name.endswith(("api_response", "api_error")):
        return None
    message = event.get("error_message", event.get("error"))
    kind = read_name(event.get("error_type")) or ""
    agent = read_name(event.get("subagent_type")) or read_name(event.get("subagent_name"))
    return Telemetry(
        failed=name.endswith("api_error"),
        aborted="abort" in kind.lower(),
        model=read_name(event.get("model")),
        agent=None if agent == MAIN else agent,
        duration_ms=read_duration(event.get("duration_ms")),
        error=message[:400] if isinstance(message, str) else kind[:400],
        auth=read_name(event.get("auth_type")),
        counts=telemetry_counts(event),
    )


def latency_of(timed: list[list[Any]], print_: str, time_ns: int | None, asked_ns: int | None) -> float | None:
    """Time of the call with these counts; else since what was asked."""
    for index, (known, duration) in enumerate(timed):
        if known == print_:
            del timed[index]
            return float(duration)
    if time_ns is None or asked_ns is None or not 0 < time_ns - asked_ns <= _LONGEST_CALL_NS:
        return None
    return (time_ns - asked_ns) / 1_000_000


def outcome_of(row: Row, event: Telemetry | None, known: str | None) -> str | None:
    """What a row says about how the session stands, in file order: the last word counts.

    An answer without tool calls ends a turn; `turn_result` says so itself.
    """
    kind, payload = row.get("type"), row.get("systemPayload")
    if event is not None:
        if event.agent is None and event.failed:
            return "cancelled" if event.aborted else "error"
        return known
    if row.get("subtype") == "turn_result" and isinstance(payload, dict):
        state = payload.get("state")
        return _STATES.get(state, known) if isinstance(state, str) else known
    if kind == "assistant":
        if calls_of(parts_of(row)):
            return None
        return "success" if text_of(parts_of(row)).strip() else known
    if kind == "tool_result":
        told = row.get("toolCallResult")
        return "cancelled" if isinstance(told, dict) and told.get("status") == "cancelled" else None
    return None if kind == "user" else known
