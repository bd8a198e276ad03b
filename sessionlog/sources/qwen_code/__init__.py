"""qwen-code: Qwen Code.

Where: `$QWEN_DATA_DIR` (a comma list; an entry may be `projects` itself), else `$QWEN_RUNTIME_DIR`, else `$QWEN_HOME`,
else `~/.qwen`: `projects/<cwd with ->/chats/<session id>.jsonl` (early versions `tmp/<hash>/chats/`), and
`projects/<p>/subagents/<session id>/agent-<id>.jsonl` for sub-agents that kept a transcript.

Rows, appended only: `uuid`, `parentUuid`, `sessionId`, `timestamp`, `type` (user, assistant, tool_result, system),
`cwd`, `version`, `gitBranch`; `message` (a content of Google's API, see `google_parts`), for answers `model` and
`usageMetadata` (see `qwen_code.usage`), for tool results `toolCallResult` {callId, status, durationMs}.
System rows have `subtype` and `systemPayload`: `ui_telemetry` (`uiEvent`: api_response, api_error, tool_call),
`chat_compression`, `turn_result` (state: completed, cancelled, error), `parent_session`, `session_model`.

Traps:
- Cached tokens are inside the prompt. Adding them is what others do.
- A row's `uuid` alone is its key: a branched session copies the rows, uuids included, under its own session id and says
  so in `forkedFrom`. Such a copy counts only while the original is not there.
- In a sub-agent's transcript a response with text has its usage on the text's row; its tool calls follow as rows of
  their own without usage, and a response without any text leaves no usage there at all. Every call of a sub-agent is
  told in the main log's telemetry, too: it counts where the transcript has no response of the same counts.
- Latency stands in telemetry only, just before the answer; matched by the counts.
- A row without `usageMetadata` is no request of its own.

Provider: `qwen`, unless the log's `auth_type` says that Google or Anthropic was asked. Known from the agent's
published recorder as of mid-2026; chats that older versions wrote in Gemini CLI's JSON form are not looked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from sessionlog.errors import Problem
from sessionlog.events.tokens import TokenUsage
from sessionlog.reader.rows import Row, Rows
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.settings import user_home
from sessionlog.sources.gather import Findings, Gather, server_of, text_size
from sessionlog.sources.google_parts import calls_of, is_absolute, read_duration, read_moment, results_of
from sessionlog.sources.protocol import HEAD, Env, LogScan, Resume, Source
from sessionlog.sources.qwen_code.events import read
from sessionlog.sources.qwen_code.rows import (
    ID,
    Telemetry,
    agent_of,
    latency_of,
    outcome_of,
    parts_of,
    prompt_of,
    provider_of,
    read_telemetry,
    session_id_of,
)
from sessionlog.sources.qwen_code.usage import fingerprint, read_usage
from sessionlog.sources.record import MAIN, UNKNOWN, CopyRank, Record, read_name

_HEADER_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')
_KEYS = (b'"message"', b'"usageMetadata"', b'"uiEvent"', b'"endedAt"', b'"parentSessionId"', b'"authType"', b"\\u00")
_OURS = re.compile(r"[/\\](chats|subagents)[/\\]")
_CHATS = ("projects", "tmp")
_REMEMBERED = 8  # telemetry comes just before its answer


def locate(env: Env) -> Iterator[str]:
    """The folders where chats are kept."""
    given = env.get("QWEN_DATA_DIR") or env.get("QWEN_RUNTIME_DIR") or env.get("QWEN_HOME") or ""
    home = user_home(env)
    for part in [part.strip() for part in given.split(",") if part.strip()] or [os.path.join(home, ".qwen")]:
        if os.path.basename(part.rstrip("/\\")) in _CHATS:
            yield part
        else:
            yield from (os.path.join(part, name) for name in _CHATS)


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the chats, and the transcripts of sub-agents after them."""
    for path in walk_files([place], lambda name: name.endswith(LOG_SUFFIXES)):
        beside = not isinstance(path, Problem) and os.path.dirname(path) == place.rstrip("/\\")
        if isinstance(path, Problem) or beside or path == place or _OURS.search(path):
            yield path


def recognises(path: str, head: bytes) -> bool:
    """Rows with a content of Google's API in a chain of uuids, or with its usage."""
    if not path.endswith(LOG_SUFFIXES) or b'"sessionId"' not in head or b'"projectHash"' in head:
        return False
    return b'"usageMetadata"' in head or (
        b'"parentUuid"' in head and any(key in head for key in (b'"parts"', b'"systemPayload"', b'"uiEvent"'))
    )


def name_sessions(path: str) -> Iterator[str]:
    """The id in the rows; a sub-agent's log has its parent's."""
    file, _ = open_unpacked(path)
    with file:
        found = _HEADER_ID.search(file.read(HEAD))
    yield found.group(1).decode("utf-8", "replace") if found else session_id_of(path)


class _Scan:
    """One pass over a log, or over what was appended to it."""

    def __init__(self, path: str, rows: Rows, state: Any) -> None:
        self._path, self._rows = path, rows
        self.findings = Findings()
        self.gather = Gather(ID, "", path, state=state.get("facts"))
        self.gather.turns = self.gather.turns or 0
        self._session_id: str | None = state.get("session_id")
        self._part: bool = state.get("part", False)
        self._auth: str | None = state.get("auth")
        self._model: str = state.get("model", UNKNOWN)
        self._asked_ns: int | None = state.get("asked_ns")
        self._calls: dict[str, str] = dict(state.get("calls", {}))  # a call's id → its key
        self._timed: list[list[Any]] = list(state.get("timed", []))

    def state(self) -> dict[str, Any]:
        return {
            "facts": self.gather.state(), "session_id": self._session_id, "part": self._part, "auth": self._auth,
            "model": self._model, "asked_ns": self._asked_ns, "calls": dict(self._calls), "timed": list(self._timed),
        }  # fmt: skip

    def take(self, row: Row | Problem) -> None:
        if isinstance(row, Problem):
            self.findings.note(row)
            return
        if self._session_id is None:
            self._session_id = read_name(row.get("sessionId"))
        self._part = self._part or row.get("isSidechain") is True
        time_ns = read_moment(row.get("timestamp"))
        self.gather.touch(time_ns)
        self._facts(row)
        kind, telemetry = row.get("type"), read_telemetry(row)
        self.gather.status = outcome_of(row, telemetry, self.gather.status)
        if telemetry is not None:
            self._telemetry(row, telemetry, time_ns)
        elif kind == "user":
            self.gather.turn(prompt_of(row), time_ns)
            self._asked_ns = time_ns
        elif kind == "assistant":
            self._answer(row, time_ns)
        elif kind == "tool_result":
            self._result(row, time_ns)

    def _facts(self, row: Row) -> None:
        if self.gather.project == UNKNOWN and is_absolute(row.get("cwd")):
            self.gather.project = row["cwd"]
        origin, payload = row.get("forkedFrom"), row.get("systemPayload")
        if isinstance(origin, dict):
            self.gather.parent = self.gather.parent or read_name(origin.get("sessionId")) or ""
        if isinstance(payload, dict):
            self.gather.parent = self.gather.parent or read_name(payload.get("parentSessionId")) or ""
            self._auth = read_name(payload.get("authType")) or self._auth

    def _record(self, row: Row, time_ns: int | None, model: str | None, usage: TokenUsage, **more: Any) -> None:
        uuid = read_name(row.get("uuid"))
        self._model = model or self._model
        self.gather.add(Record(
            **{
                "time_ns": time_ns, "provider": read_name(row.get("provider")) or provider_of(self._auth),
                "model": model or UNKNOWN, "response_model": None, "usage": usage, "cost_nano": None,
                "key": uuid or f"{self._session_id}:{self._rows.place}", "agent": agent_of(row),
                "copy_rank": CopyRank.SIDECHAIN if isinstance(row.get("forkedFrom"), dict) else CopyRank.ORIGINAL,
                "project": row["cwd"] if is_absolute(row.get("cwd")) else "",
                "branch": read_name(row.get("gitBranch")) or UNKNOWN,
                "version": read_name(row.get("version")) or UNKNOWN, **more,
            }
        ))  # fmt: skip

    def _answer(self, row: Row, time_ns: int | None) -> None:
        counts = row.get("usageMetadata")
        if isinstance(counts, dict):
            usage, quality, issues = read_usage(counts)
            self.findings.complain(self._path, self._rows.line, *issues)
            agent, print_ = agent_of(row), fingerprint(counts)
            model = read_name(row.get("model")) or (self._model if agent != MAIN and self._model != UNKNOWN else None)
            self._record(
                row, time_ns, model, usage, quality=quality, family=self._family(row, print_) if agent != MAIN else "",
                latency_ms=latency_of(self._timed, print_, time_ns, self._asked_ns),
            )  # fmt: skip
            self._asked_ns = None
        for call in calls_of(parts_of(row)):
            key = f"{read_name(row.get('uuid')) or self._rows.place}:{call.id}"
            self._calls[call.id] = key
            name, server = server_of(read_name(call.name) or UNKNOWN)
            self.gather.call(key, time_ns, name, server=server, agent=agent_of(row))

    def _family(self, row: Row, print_: str) -> str:
        origin = row.get("forkedFrom")
        known = read_name(origin.get("sessionId")) if isinstance(origin, dict) else None
        return f"{known or self._session_id}:{print_}"

    def _telemetry(self, row: Row, event: Telemetry, time_ns: int | None) -> None:
        self._auth = event.auth or self._auth
        if event.failed:
            if not event.aborted:
                self._record(
                    row, time_ns, event.model, TokenUsage(), failed=True, latency_ms=event.duration_ms,
                    agent=event.agent or agent_of(row),
                )  # fmt: skip
                self.gather.error = event.error
        elif event.agent is not None:
            usage, quality, issues = read_usage(event.counts)
            self.findings.complain(self._path, self._rows.line, *issues)
            self._record(
                row, time_ns, event.model, usage, quality=quality, copy_rank=CopyRank.EMBEDDED, agent=event.agent,
                latency_ms=event.duration_ms, family=self._family(row, fingerprint(event.counts)),
            )  # fmt: skip
        elif event.duration_ms is not None:
            self._timed = [*self._timed, [fingerprint(event.counts), event.duration_ms]][-_REMEMBERED:]

    def _result(self, row: Row, time_ns: int | None) -> None:
        told = row.get("toolCallResult")
        facts = told if isinstance(told, dict) else {}
        self._asked_ns = time_ns
        found = results_of(parts_of(row))
        duration = read_duration(facts.get("durationMs")) if len(found) == 1 else None
        for result in found:
            key = self._calls.pop(result.id, None)
            if key is not None:
                self.gather.result(
                    key, time_ns, failed=result.failed or facts.get("status") in ("error", "cancelled"),
                    output_bytes=text_size(result.output), duration_ms=duration,
                )  # fmt: skip

    def finish(self) -> LogScan:
        if self._session_id is None and self.gather.start_ns is None and not self.gather.records:
            return LogScan(problems=self.findings.problems)
        session = self.gather.session(
            session_id=self._session_id or session_id_of(self._path), part=self._part, harness="qwen-code"
        )
        return LogScan(sessions=(session,), problems=self.findings.problems)


def _wanted(line: bytes) -> bool:
    return any(key in line for key in _KEYS)


def scan(path: str, resume: Resume | None) -> LogScan:
    """Read one log for reports, or what was appended to it since."""
    start = resume or Resume(offset=0)
    with Rows(path, offset=start.offset, line=start.line) as rows:
        found = _Scan(path, rows, start.state)
        for row in rows.read(_wanted):
            found.take(row)
        after = Resume(offset=rows.offset, line=rows.line, state=found.state())
        for row in rows.last(_wanted):
            found.take(row)
    given = found.finish()
    return LogScan(sessions=given.sessions, problems=given.problems, resume=after)


SOURCE = Source(
    id=ID,
    title="Qwen Code",
    parser=1,
    locate=locate,
    list_logs=list_logs,
    recognises=recognises,
    scan=scan,
    read=read,
    name_sessions=name_sessions,
)
