"""otel: OpenTelemetry's GenAI spans in JSON, as collectors and SDKs write them to files.

Where: nowhere by convention: exporters to files have no variable in common. Give a path, or name files and folders in
`$SESSIONLOG_OTEL_PATH`, separated as in PATH. Shape: OTLP JSON lines (`{"resourceSpans": …}`, also one pretty object),
one span a line, or what console exporters print; logs and metrics beside them are passed over. A session is a
conversation (`gen_ai.conversation.id`, `session.id`), else a trace; a trace whose other spans name one conversation
belongs to it.

Traps: `gen_ai.usage.input_tokens` includes what was read from and written to a cache; where it is less than that, the
writer did not follow the convention, and it is taken as it is. Typed integers are strings. Older names of the same
counts: prompt_tokens and completion_tokens, `llm.usage.*`. Only spans of inference are calls: agents and workflows
repeat the sum of theirs, and frameworks wrap a call in a span of their own, so a call around another call is not
counted. An agent's sum counts, as its session's, where its trace has nothing else. Children are exported before their
parents; a retried export brings spans twice. Embeddings have no output. Instants may be nanoseconds in text, RFC 3339,
or `[seconds, nanoseconds]`. Seen: the conventions of 1.27 to 1.42, from Python, Go, JavaScript and the collector.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.reader.walk import walk_files
from sessionlog.sources.gather import Findings, Gather, latest
from sessionlog.sources.otel.messages import Conversation, prompts_of
from sessionlog.sources.otel.spans import Span, holds_spans, read_spans
from sessionlog.sources.otel.usage import CONVERSATION, Kind, error_of, kind_of, name_in, read_record, read_tool
from sessionlog.sources.protocol import Env, LogScan, Resume, Source
from sessionlog.sources.record import UNKNOWN, Record, ToolUse, read_name
from sessionlog.sources.transcript import Transcript

_ID = "otel"
_SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".jsonl.zst")
_FOLDER = "process.working_directory"

_Place = tuple[str, str]  # trace and span


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What is kept of a span: its place in the trace, what it counts for, and what it says of the session."""

    trace: str
    id: str
    parent: str
    start_ns: int | None
    end_ns: int | None
    kind: Kind
    record: Record | None
    tool: ToolUse | None
    error: str
    conversation: str
    project: str
    harness: str
    prompt: str
    asked: tuple[int, ...]  # likenesses of the prompts that it holds

    @property
    def weight(self) -> tuple[int, int]:
        """How much it tells, to choose among copies."""
        return (self.record.usage.output, self.record.usage.total) if self.record else (0, 0)


def _locate(env: Env) -> Iterable[str]:
    return tuple(filter(None, env.get("SESSIONLOG_OTEL_PATH", "").split(os.pathsep)))


def _list_logs(place: str) -> Iterable[str | Problem]:
    return walk_files([place], lambda name: name.endswith(_SUFFIXES))


def _see(span: Span, kind: Kind) -> tuple[_Seen, list[str]]:
    record, issues = (None, []) if kind == "tool" else read_record(span, kind)
    folder = name_in(span, (_FOLDER,)) or read_name(span.resource.get(_FOLDER)) or ""
    prompts = [] if kind == "tool" else prompts_of(span)
    service = read_name(span.resource.get("service.name")) or UNKNOWN
    seen = _Seen(
        trace=span.trace,
        id=span.id,
        parent=span.parent,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        kind=kind,
        record=record,
        tool=read_tool(span) if kind == "tool" else None,
        error=error_of(span),
        conversation=name_in(span, CONVERSATION) or "",
        project=folder if os.path.isabs(folder) else UNKNOWN,
        harness=UNKNOWN if service.startswith("unknown_service") else service,
        prompt=prompts[0].text if prompts else "",
        asked=tuple(hash(one.likeness) for one in prompts),
    )
    return seen, issues


def _look(path: str, findings: Findings) -> dict[str, list[_Seen]]:
    """Read a file: its sessions, and the spans of each in the order of their ends."""
    seen: dict[_Place, _Seen] = {}
    for item in read_spans(path):
        if isinstance(item, Problem):
            findings.note(item)
            continue
        span, line = item
        kind = kind_of(span)
        if not kind:
            continue
        one, issues = _see(span, kind)
        findings.complain(path, line, *issues)
        place = one.trace, one.id
        if place not in seen or one.weight > seen[place].weight:
            seen[place] = replace(one, prompt=seen[place].prompt) if place in seen and not one.prompt else one
    return _sessions(seen)


def _sessions(seen: dict[_Place, _Seen]) -> dict[str, list[_Seen]]:
    wrappers = {(one.trace, one.parent) for one in seen.values() if one.kind == "call"}
    called = {one.trace for one in seen.values() if one.kind == "call"}
    named: dict[str, set[str]] = {}
    for one in seen.values():
        named.setdefault(one.trace, set()).update([one.conversation] if one.conversation else [])
    sessions: dict[str, list[_Seen]] = {}
    for place, one in sorted(seen.items(), key=lambda item: (item[1].end_ns or 0, item[1].start_ns or 0)):
        names = named[one.trace]
        session = one.conversation or (next(iter(names)) if len(names) == 1 else one.trace)
        counts = place not in wrappers
        if one.kind == "sum":
            counts = one.trace not in called and one.weight > (0, 0) and not _is_within_a_sum(one, seen)
        sessions.setdefault(session, []).append(one if counts else replace(one, record=None))
    return sessions


def _is_within_a_sum(one: _Seen, seen: dict[_Place, _Seen]) -> bool:
    passed = {one.id}
    parent = seen.get((one.trace, one.parent))
    while parent is not None and parent.id not in passed:
        if parent.kind == "sum" and parent.weight > (0, 0):
            return True
        passed.add(parent.id)
        parent = seen.get((parent.trace, parent.parent))
    return False


def _outcome(spans: list[_Seen]) -> tuple[str | None, str]:
    """How the last agent ended; without agents nobody tells, and the last span has only its error."""
    agents = [one for one in spans if one.kind == "sum"]
    error = (agents or spans)[-1].error
    return ("error" if error else "success") if agents else None, error


def _scan(path: str, _: Resume | None) -> LogScan:
    """Read the whole file: what a span counts for, and whose it is, may be told by a later one."""
    findings = Findings()
    sessions = []
    for session_id, spans in _look(path, findings).items():
        session = Gather(_ID, session_id, path)
        for one in sorted(spans, key=lambda one: one.start_ns or 0):
            session.ask(one.prompt)
        told = Counter[int]()
        for one in spans:
            session.touch(one.start_ns)
            session.touch(one.end_ns)
            if one.record is not None:
                session.add(one.record)
            if one.record is not None and one.kind == "call":
                _turn(session, one, told)
            if one.tool is not None:
                session.tools[one.tool.key] = one.tool
        session.status, session.error = _outcome(spans)
        session.project = next((one.project for one in spans if one.project != UNKNOWN), UNKNOWN)
        harness = next((one.harness for one in spans if one.harness != UNKNOWN), UNKNOWN)
        sessions.append(session.session(harness=harness))
    return LogScan(sessions=tuple(sessions), problems=findings.problems)


def _turn(session: Gather, one: _Seen, told: Counter[int]) -> None:
    """Count the prompts of a call that no call before it held."""
    held = Counter(one.asked)
    for prompt in one.asked:
        if held[prompt] > told[prompt]:
            told[prompt] += 1
            session.turns = (session.turns or 0) + 1
            session.last_turn_ns = latest(session.last_turn_ns, one.start_ns)


def _read(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    """Read the file twice: the session's spans are known only at its end."""
    sessions = _look(path, Findings())
    session_id = session_id or next(iter(sessions), "")
    spans = sessions.get(session_id, [])
    wanted = {(one.trace, one.id) for one in spans}
    whole: dict[_Place, Span] = {}
    for item in read_spans(path):
        if isinstance(item, Problem):
            yield item
            continue
        span, line = item
        place = span.trace, span.id
        if place in wanted and (place not in whole or _is_fuller(span, whole[place])):
            whole[place] = span
            _, issues = read_record(span, "call")
            for issue in issues:
                yield Problem(path=path, line=line, offset=0, kind="bad_number", detail=issue)
    if spans:
        yield from _tell(Transcript(session_id), spans, whole)


def _is_fuller(span: Span, other: Span) -> bool:
    usage, known = read_record(span, "call")[0].usage, read_record(other, "call")[0].usage
    return (usage.output, usage.total) > (known.output, known.total)


def _tell(transcript: Transcript, spans: list[_Seen], whole: dict[_Place, Span]) -> Iterator[Event]:
    starts = [one.start_ns for one in spans if one.start_ns is not None]
    records = [one.record for one in spans if one.record is not None]
    yield transcript.start(
        min(starts, default=None),
        provider=records[0].provider if records else None,
        model=records[0].model if records else None,
        work_dir=next((one.project for one in spans if one.project != UNKNOWN), None),
        metadata={"service": next((one.harness for one in spans if one.harness != UNKNOWN), None)},
    )
    conversation = Conversation(transcript)
    for one in spans:
        span = whole[one.trace, one.id]
        if one.kind == "call" and one.record is not None:
            yield from conversation.call(span, one.record, one.error)
        elif one.kind == "tool":
            yield from conversation.tool(span, read_name(span.attributes.get("gen_ai.tool.name")) or UNKNOWN, one.error)
    status, error = _outcome(spans)
    if status is not None:
        sums = [one.record.usage for one in spans if one.kind == "sum" and one.record is not None]
        tokens = sum(sums, TokenUsage()).to_dict() if sums else None
        end = {"status": status, "error": error or None, "tokens": tokens}
        yield transcript.event("session.end", spans[-1].end_ns, end)


def _name_sessions(path: str) -> Iterable[str]:
    return tuple(_look(path, Findings()))


SOURCE = Source(
    id=_ID,
    title="OpenTelemetry",
    parser=1,
    locate=_locate,
    list_logs=_list_logs,
    recognises=holds_spans,
    scan=_scan,
    read=_read,
    name_sessions=_name_sessions,
)
