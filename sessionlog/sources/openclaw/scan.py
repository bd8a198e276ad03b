"""The scan of pi's and OpenClaw's rows: one after the other into records, tool calls and the facts of a session.

Rows that are older than their forked session were copied into it: their records count under the same key as in the
parent, and they say nothing of when the fork ran or how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.sources.gather import Findings, Gather, server_of, text_size
from sessionlog.sources.openclaw.messages import (
    RESULTS,
    SUMMARIES,
    Dialect,
    Model,
    Outcome,
    Row,
    calls_of,
    changes_model,
    folder_of,
    has_failed,
    is_typed,
    kind_of,
    latency_of,
    message_of,
    read_response_usage,
    role_of,
    summary_key,
    time_of,
)
from sessionlog.sources.record import MAIN, UNKNOWN, Record, read_name


@dataclass(slots=True)
class MessageScan:
    """Takes the rows of one session into a `Gather`.

    Attributes:
        gather: The session's facts and records.
        findings: Where damage is noted.
        path: The log.
        dialect: Whose rows they are.
        agent: Which sub-agent's they are.
        model: The model in force.
        seen: Whether any row was one of a session's.
    """

    gather: Gather
    findings: Findings
    path: str
    dialect: Dialect
    agent: str = MAIN
    model: Model = field(default_factory=Model)
    seen: bool = False
    _outcome: Outcome = field(default_factory=Outcome)
    _asked_ns: int | None = None
    _born_ns: int | None = None
    _calls: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A log with nothing but its header has no turns, and tells so."""
        self.gather.turns = self.gather.turns or 0

    def state(self) -> dict[str, Any]:
        """What a later scan needs to go on, as JSON."""
        return {
            "gather": self.gather.state(), "provider": self.model.provider, "model": self.model.name,
            "asked_ns": self._asked_ns, "born_ns": self._born_ns, "calls": dict(self._calls), "seen": self.seen,
            "agent": self.agent,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken; the gather has its own part of it already."""
        self.model = Model(state["provider"], state["model"])
        self._asked_ns, self._born_ns = state["asked_ns"], state["born_ns"]
        self._calls, self.seen, self.agent = dict(state["calls"]), state["seen"], state["agent"]

    def take(self, row: Row, *, line: int, place: str, stored_ns: int | None = None) -> None:
        """Take the next row.

        Args:
            row: The row.
            line: Its number in the log, for problems.
            place: A name for it that no other row has.
            stored_ns: When it was stored, where the row itself has no time.
        """
        message = message_of(row)
        time_ns = time_of(row, message)
        time_ns = stored_ns if time_ns is None else time_ns
        kind = kind_of(row)
        if kind == "session":
            self._header(row, time_ns)
        elif changes_model(row):
            self.model.change(row)
        inherited = self._born_ns is not None and time_ns is not None and time_ns < self._born_ns
        if not inherited:
            self.gather.touch(time_ns)
        if message is not None:
            self.seen = True
            self._message(row, message, time_ns, line, place, inherited=inherited)
        elif kind in SUMMARIES:
            self._side_answer(row, row.get("usage"), time_ns, line, place)

    def _header(self, row: Row, time_ns: int | None) -> None:
        self.seen = True
        self.model.change(row)
        if self.gather.project == UNKNOWN:
            self.gather.project = folder_of(row)
        if isinstance(row.get("parentSession"), str) and row["parentSession"]:
            self._born_ns = time_ns

    def _message(self, row: Row, message: Row, time_ns: int | None, line: int, place: str, *, inherited: bool) -> None:
        role = role_of(message)
        if role == "assistant":
            if self.dialect.skips(message):
                return
            self._answer(row, message, time_ns, line, place)
        elif role in RESULTS:
            self._result(row, message, time_ns, line, place)
        elif is_typed(message):
            self.gather.turn(message.get("content"), time_ns)
        if role != "assistant":
            self._asked_ns = time_ns
        if not inherited and role != "bashExecution":
            self._outcome.take(message)
            self.gather.status, self.gather.error = self._outcome.status, self._outcome.error

    def _answer(self, row: Row, message: Row, time_ns: int | None, line: int, place: str) -> None:
        usage, cost_nano, issues = read_response_usage(message.get("usage"))
        self.findings.complain(self.path, line, *issues)
        provider, model = self.model.answered(message)
        key = self.dialect.key(row, message, usage) or place
        superseded_by = self.dialect.superseded_by(message, provider)
        failed = has_failed(message)
        if usage or failed or not superseded_by:  # what mirrors another agent's words and names no tokens is no request
            self.gather.add(
                Record(
                    time_ns=time_ns, provider=provider, model=model,
                    response_model=read_name(message.get("responseModel")), usage=usage, cost_nano=cost_nano,
                    latency_ms=latency_of(row, message, self._asked_ns), failed=failed, key=key,
                    superseded_by=superseded_by, agent=self.agent,
                )
            )  # fmt: skip
        for call_id, name, _ in calls_of(message):
            tool, server = server_of(name)
            self._calls[call_id] = f"{key}/{call_id}"
            self.gather.call(
                self._calls[call_id], time_ns, tool, server=server, agent=self.agent, superseded_by=superseded_by
            )

    def _result(self, row: Row, message: Row, time_ns: int | None, line: int, place: str) -> None:
        known = self._calls.pop(read_name(message.get("toolCallId")) or "", None)
        if known is not None:
            size = text_size(message.get("content"))
            self.gather.result(known, time_ns, failed=message.get("isError") is True, output_bytes=size)
        self._side_answer(
            row, message.get("usage"), time_ns, line, place, tool=read_name(message.get("toolName")) or UNKNOWN
        )

    def _side_answer(
        self, row: Row, value: Any, time_ns: int | None, line: int, place: str, tool: str | None = None
    ) -> None:
        """Summaries are written by the model in force; what models a tool asks is not told, only what they used."""
        usage, cost_nano, issues = read_response_usage(value)
        self.findings.complain(self.path, line, *issues)
        if usage:
            asked = (self.model.provider or UNKNOWN, self.model.name or UNKNOWN) if tool is None else (UNKNOWN, UNKNOWN)
            self.gather.add(
                Record(
                    time_ns=time_ns, provider=asked[0], model=asked[1], response_model=None, usage=usage,
                    cost_nano=cost_nano, key=summary_key(row, usage) or place, agent=tool or self.agent,
                )
            )  # fmt: skip
