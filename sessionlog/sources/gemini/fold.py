"""A chat of Gemini CLI folded into records: one per message that has tokens, however often it was written.

The messages' last words count, so nothing is given away before the end of the file.
"""

from __future__ import annotations

import os
import re
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.times import SECOND
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.reader.rows import Row
from sessionlog.sources.gather import Findings, Gather, text_size
from sessionlog.sources.gemini.log import Item, is_api_error, outcome_of, prompt_of, read_rows, read_tokens, tool_name
from sessionlog.sources.gemini.project import SUBAGENT, agent_of, parent_of, project_of
from sessionlog.sources.google_parts import read_moment, results_of, text_of
from sessionlog.sources.record import MAIN, UNKNOWN, Record, ScannedSession, ToolUse, read_name

ID = "gemini"
PROVIDER = "google"
_LONGEST_CALL_NS = 3600 * SECOND
_MAX_FAILED = 10_000  # of one run: each is a record
_DONE = ("success", "error", "cancelled")


def session_id_of(path: str) -> str:
    """The session's id by the file's name, for logs that have none inside."""
    return re.sub(r"\.jsonl?(\.gz|\.zst)?\Z", "", os.path.basename(path))


class Fold:
    """One log, folded row by row."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.findings = Findings()
        self.header: Row = {}
        self.gather = Gather(ID, "", path)
        self.gather.turns = 0
        self.records: dict[str, Record] = {}
        self.found = False
        self._asked_ns: int | None = None
        self._complained: set[str] = set()
        self._seen: set[str] = set()

    def take(self, item: Item | Problem) -> None:
        """Account for one row."""
        if isinstance(item, Problem):
            self.findings.note(item)
            return
        row = item.row
        update = row.get("$set")
        if isinstance(update, dict):
            self._facts(update)
        elif isinstance(row.get("type"), str):
            self._message(item)
        elif isinstance(row.get("sessionId"), str) or "stats" in row:
            self.found = True
            self._facts(row)

    def _facts(self, facts: Row) -> None:
        for name in ("sessionId", "session_id", "projectHash", "kind", "stats", "response", "error"):
            if facts.get(name) is not None:
                self.header.setdefault(name, facts[name])
        for name in ("startTime", "lastUpdated"):
            self.gather.touch(read_moment(facts.get(name)))

    def _message(self, item: Item) -> None:
        row, kind = item.row, item.row["type"]
        time_ns = read_moment(row.get("timestamp"))
        key = item.identity
        if not item.settled:
            self.gather.touch(time_ns)
            self.gather.status = outcome_of(row, self.gather.status)
        new = key not in self._seen
        self._seen.add(key)
        if kind == "user":
            self.found = True
            if new:
                self.gather.turn(prompt_of(row), time_ns)
            else:
                self.gather.ask(prompt_of(row))
            self._asked_ns = self._asked_ns if item.settled else time_ns
        elif kind == "gemini":
            self.found = True
            self._answer(row, key, time_ns, item.line)
            self._tools(row, key, time_ns)
        elif kind == "error" and not item.settled:
            self.gather.error = text_of(row.get("content"))
            if is_api_error(row) and key not in self.records:
                self._add(key, time_ns, Record(
                    time_ns=time_ns, provider=PROVIDER, model=self.model, response_model=None, usage=TokenUsage(),
                    cost_nano=None, failed=True,
                ))  # fmt: skip

    @property
    def model(self) -> str:
        """The model that answered last."""
        return next((record.model for record in reversed(self.gather.records)), UNKNOWN)

    def _answer(self, row: Row, key: str, time_ns: int | None, line: int) -> None:
        tokens = row.get("tokens")
        if not isinstance(tokens, dict):
            return
        usage, issues = read_tokens(tokens)
        if issues and key not in self._complained:
            self._complained.add(key)
            self.findings.complain(self.path, line, *issues)
        model = read_name(row.get("model"))
        record = self.records.get(key)
        if record is None:
            record = Record(
                time_ns=time_ns, provider=PROVIDER, model=model or UNKNOWN, response_model=None, usage=usage,
                cost_nano=None, latency_ms=self._latency(time_ns),
            )  # fmt: skip
            self._add(key, time_ns, record)
        record.usage, record.model = usage, model or record.model  # not given away yet

    def _add(self, key: str, time_ns: int | None, record: Record) -> None:
        self.records[key] = record
        self.gather.add(record)
        self._asked_ns = None if time_ns is not None else self._asked_ns

    def _latency(self, time_ns: int | None) -> float | None:
        if time_ns is None or self._asked_ns is None or not 0 < time_ns - self._asked_ns <= _LONGEST_CALL_NS:
            return None
        return (time_ns - self._asked_ns) / 1_000_000

    def _tools(self, row: Row, key: str, asked_ns: int | None) -> None:
        calls = row.get("toolCalls")
        for index, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            call_id = call.get("id") if isinstance(call.get("id"), str) else index
            name, server = tool_name(call.get("name"))
            done_ns = read_moment(call.get("timestamp"))
            finished = call.get("status") in _DONE or call.get("result") is not None
            between = None if asked_ns is None or done_ns is None else done_ns - asked_ns
            self.gather.tools[f"{key}:{call_id}"] = ToolUse(
                key=f"{key}:{call_id}", time_ns=asked_ns, tool=name, server=server, finished=finished,
                failed=call.get("status") in ("error", "cancelled"), output_bytes=result_size(call.get("result")),
                duration_ms=between / 1_000_000 if finished and between and between > 0 else None,
            )  # fmt: skip
            if finished and done_ns is not None:
                self.gather.touch(done_ns)
                self._asked_ns = max(done_ns, self._asked_ns or done_ns)

    def finish(self) -> ScannedSession | None:
        """Return the session, None for a file that holds none; call it once."""
        if not self.found:
            return None
        own = read_name(self.header.get("sessionId")) or read_name(self.header.get("session_id"))
        whole = own or session_id_of(self.path)
        parent = parent_of(self.path)
        part = bool(parent) or self.header.get("kind") == SUBAGENT
        agent = (agent_of(self.path, whole) if parent else SUBAGENT) if part else MAIN
        for key, record in self.records.items():
            record.key, record.agent = f"{whole}:{key}", agent
        for tool in self.gather.tools.values():
            tool.key, tool.agent = f"{whole}:{tool.key}", agent
        self.gather.project = project_of(self.path, self.header.get("projectHash"))
        place = ""
        if isinstance(self.header.get("stats"), dict) and not self.records:
            place = os.path.dirname(os.path.abspath(self.path))
            whole = run_name(self.path, own)
            self._sums(f"{ID}:{own}" if own else "")
        return self.gather.session(session_id=parent or whole, part=part, place=place, harness="gemini-cli")

    def _sums(self, superseded_by: str) -> None:
        """A finished run's sums, one record per model."""
        self.gather.turns = None
        error = self.header.get("error")
        self.gather.status = "error" if error is not None else "success"
        message = error.get("message") if isinstance(error, dict) else None
        self.gather.error = message[:400] if isinstance(message, str) else ""
        models, room = self.header["stats"].get("models"), _MAX_FAILED
        for name, stats in models.items() if isinstance(models, dict) else ():
            tokens, api = ((stats.get(part) if isinstance(stats, dict) else None) for part in ("tokens", "api"))
            told: dict[str, Any] = tokens if isinstance(tokens, dict) else {}
            usage, issues = read_tokens({**told, "input": told.get("prompt"), "output": told.get("candidates")})
            requests, failed = (
                read_count(api.get(part) if isinstance(api, dict) else None)[0]
                for part in ("totalRequests", "totalErrors")
            )
            self.findings.complain(self.path, 1, *issues)
            if usage or requests > failed:
                self._sum(name, superseded_by, usage, max(1, requests - failed))
            if failed > room:
                self.findings.complain(self.path, 1, f"totalErrors: {failed}, of which {room} are counted")
            for _ in range(min(failed, room)):
                self._sum(name, superseded_by, TokenUsage(), 1, failed=True)
            room -= min(failed, room)

    def _sum(self, model: str, superseded_by: str, usage: TokenUsage, requests: int, *, failed: bool = False) -> None:
        self.gather.add(Record(
            time_ns=None, provider=PROVIDER, model=read_name(model) or UNKNOWN, response_model=None, usage=usage,
            cost_nano=None, requests=requests, failed=failed, granularity="session", superseded_by=superseded_by,
        ))  # fmt: skip


def run_name(path: str, session_id: str | None) -> str:
    """The name of a finished run's sums: its file's, for the session's id is that of its own chat."""
    name = session_id_of(path)
    return os.path.basename(path) if name == session_id else name


def result_size(result: Any) -> int:
    """Bytes of what a tool gave back."""
    return sum(text_size(found.output) for found in results_of(result)) or text_size(result)


def fold_log(path: str) -> Fold:
    """Fold all rows of a log."""
    fold = Fold(path)
    for item in read_rows(path):
        fold.take(item)
    return fold
