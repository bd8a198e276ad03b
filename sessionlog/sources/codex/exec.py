"""Saved streams of `codex exec --json`: items as they are completed, and a counter at the end of each turn.

The stream has no times: its records bear the time of the file's last change. The counter is that of the whole thread
(the CLI hands on its running total, though it is documented as the turn's), so a turn's use is the difference to the
turn before; a counter that falls is taken as it is. A stream that resumes a thread starts with what the streams before
it have told; such a thread has a rollout, as has every one that is not ephemeral, and the rollout tells the same use
response by response: these records are told by it. Their session is therefore another: `exec-` and the thread's id.
Tool calls are left to the rollout. The model is not in the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessionlog import files
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.codex.counters import Vector, advance, read_vector, usage_of
from sessionlog.sources.codex.thread import PROVIDER, thread_of
from sessionlog.sources.gather import Findings, first_words
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import UNKNOWN, Record, ScannedSession, read_name
from sessionlog.sources.transcript import Transcript

ID = "codex"
PREFIX = "exec-"

_FAILED = frozenset({"failed", "declined"})


class ExecThread:
    """One thread in a stream: its turns so far.

    Attributes:
        id: The thread.
        records: A record for each turn that was completed or failed.
        status: How the last turn ended.
        error: Why it failed.
    """

    def __init__(self, id_: str, time_ns: int | None) -> None:
        self.id = id_
        self.records: list[Record] = []
        self.status: str | None = None
        self.error = ""
        self._time_ns = time_ns
        self._counter: Vector | None = None

    def take(self, row: Row) -> tuple[Record | None, list[str]]:
        """Take one row; a turn's end gives a record."""
        kind = row.get("type")
        if kind == "turn.started":
            self.status, self.error = None, ""
        elif kind == "turn.completed":
            self.status, self.error = "success", ""
            total, issues = read_vector(row.get("usage"), self._counter)
            return (None if total is None else self._turn(total)), issues
        elif kind == "turn.failed":
            error = row.get("error")
            self.status = "error"
            self.error = first_words(error.get("message") if isinstance(error, Mapping) else error)
            return self._add(TokenUsage(), "failed", failed=True), []
        return None, []

    def _turn(self, total: Vector) -> Record | None:
        before, self._counter = self._counter, total
        _, used = advance(before, total, None)
        if used is None and before != total:
            used = total  # not a running total
        return None if used is None else self._add(usage_of(used), ".".join(map(str, total)), failed=False)

    def _add(self, usage: TokenUsage, name: str, *, failed: bool) -> Record:
        record = Record(
            time_ns=self._time_ns, provider=PROVIDER, model=UNKNOWN, response_model=None, usage=usage, cost_nano=None,
            failed=failed, priced=not failed, key=f"{PREFIX}{self.id}:{len(self.records)}:{name}",
            superseded_by=f"{ID}:{self.id}",
        )  # fmt: skip
        self.records.append(record)
        return record

    def session(self, path: str) -> ScannedSession:
        """Return what the stream tells of the thread."""
        return ScannedSession(
            source=ID, session_id=PREFIX + self.id, path=path, start_ns=self._time_ns, last_ns=self._time_ns,
            status=self.status, error=self.error, records=tuple(self.records),
        )  # fmt: skip


def changed_ns(path: str) -> int | None:
    """When a file was last changed."""
    status = files.stat_path(path)
    return None if status is None else status.st_mtime_ns


def scan_exec(path: str) -> LogScan:
    """Scan a stream; it is always read whole, since its time changes with it."""
    findings = Findings()
    threads: dict[str, ExecThread] = {}
    with Rows(path) as rows:
        for item, thread in _by_thread(path, rows, threads):
            if isinstance(item, Problem):
                findings.note(item)
            elif thread is not None:
                findings.complain(path, rows.line, *thread.take(item)[1])
    return LogScan(
        sessions=tuple(thread.session(path) for thread in threads.values()), problems=findings.problems, resume=None
    )


def _by_thread(
    path: str, rows: Rows, threads: dict[str, ExecThread]
) -> Iterator[tuple[Row | Problem, ExecThread | None]]:
    time_ns = changed_ns(path)
    current: ExecThread | None = None
    for item in rows.all():
        if isinstance(item, Problem):
            yield item, None
            continue
        started = read_name(item.get("thread_id")) if item.get("type") == "thread.started" else None
        if started or current is None:
            id_ = started or thread_of(path)
            current = threads.setdefault(id_, ExecThread(id_, time_ns))
        yield item, current


def exec_sessions(path: str) -> Iterator[str]:
    """Yield the ids of the sessions in a stream."""
    threads: dict[str, ExecThread] = {}
    with Rows(path) as rows:
        for _ in _by_thread(path, rows, threads):
            pass
    for id_ in threads:
        yield PREFIX + id_


def read_exec(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    """Read one thread of a stream as native events; the first one where none is named."""
    telling: _Telling | None = None
    with Rows(path) as rows:
        for item, thread in _by_thread(path, rows, {}):
            if isinstance(item, Problem):
                yield item
            elif thread is not None and (session_id or PREFIX + thread.id) == PREFIX + thread.id:
                session_id = PREFIX + thread.id
                telling = telling or _Telling(thread, changed_ns(path))
                yield from telling.take(item)
    if telling is not None:
        yield from telling.end()


class _Telling:
    """Spells one thread's items."""

    def __init__(self, thread: ExecThread, time_ns: int | None) -> None:
        self._thread, self._time_ns = thread, time_ns
        self._transcript = Transcript(PREFIX + thread.id)
        self._said: list[str] = []
        self._thought: list[str] = []

    def take(self, row: Row) -> Iterator[Event]:
        if not self._transcript.started:
            metadata = {"harness": ID, "thread_id": self._thread.id}
            yield self._transcript.start(self._time_ns, provider=PROVIDER, metadata=metadata)
        record, _ = self._thread.take(row)
        item = row.get("item")
        if row.get("type") == "item.completed" and isinstance(item, Mapping):
            yield from self._item(item)
        elif row.get("type") in ("turn.completed", "turn.failed"):
            yield from self._respond(record)

    def _item(self, item: Mapping[str, Any]) -> Iterator[Event]:
        kind, text = item.get("type"), item.get("text")
        if kind in ("agent_message", "plan", "reasoning"):
            (self._thought if kind == "reasoning" else self._said).append(text if isinstance(text, str) else "")
            return
        name, given, output = _call_of(item)
        if name:
            error = item.get("error")
            code = item.get("exit_code")
            failed = read_name(item.get("status")) in _FAILED or (isinstance(code, int) and code != 0) or bool(error)
            call_id = read_name(item.get("id")) or ""
            given_back = error if error and output is None else output
            yield self._transcript.result(self._time_ns, call_id, given_back, failed=failed, name=name, arguments=given)

    def _respond(self, record: Record | None) -> Iterator[Event]:
        error = self._thread.error or None
        failed = record is not None and record.failed
        yield from self._transcript.response(
            self._time_ns, content="\n\n".join(filter(None, self._said)),
            reasoning="\n\n".join(filter(None, self._thought)),
            usage=None if record is None or failed else record.usage, error=(error or "failed") if failed else None,
            key=None if record is None else record.key,
        )  # fmt: skip
        self._said, self._thought = [], []

    def end(self) -> Iterator[Event]:
        if self._said or self._thought:
            yield from self._respond(None)
        if self._thread.status is not None:
            yield self._transcript.end(self._time_ns, self._thread.status, error=self._thread.error or None)


def _call_of(item: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """A tool item's name, what it was given, and what it gave back; no name for other items."""
    kind = item.get("type")
    if kind == "command_execution":
        return "shell", {"command": item.get("command")}, item.get("aggregated_output")
    if kind == "mcp_tool_call":
        name = "/".join(filter(None, (read_name(item.get("server")), read_name(item.get("tool")))))
        return name or "unknown", item.get("arguments"), item.get("result")
    if kind == "file_change":
        return "apply_patch", {"changes": item.get("changes")}, item.get("status")
    if kind == "web_search":
        return "web_search", {"query": item.get("query")}, None
    if kind == "collab_tool_call":
        return read_name(item.get("tool")) or "unknown", {"prompt": item.get("prompt")}, item.get("status")
    return "", None, None
