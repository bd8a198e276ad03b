"""copilot: GitHub's Copilot CLI, an `events.jsonl` for each session, and a database of the requests of all sessions.

Where: `$COPILOT_HOME`, else `~/.copilot`: `session-state/<session>/events.jsonl`, and `session-store.db`, which is
described in `copilot_store`. Shape: `{"type", "data", "timestamp", "id", "parentId"}` a row, `agentId` besides where a
sub-agent acts. `session.start` (sessionId, copilotVersion, context), `user.message`, `assistant.turn_start`,
`session.usage_record` (usage, one for each request), `assistant.message` (content, reasoningText, apiCallId),
`tool.execution_start` and `tool.execution_complete`, `subagent.started`, `session.error`, `abort`, `session.shutdown`.

Traps:

- `inputTokens` contains what was read from and written to a cache, `outputTokens` the reasoning.
- `session.shutdown` repeats the session's sums by model, `modelMetrics`, and the store the same requests: a request
  counts once. Versions before September 2026 have no usage records: there the store has the requests, before July 2026
  nothing has them, and the sums count, or what they hold beyond the store's rows.
- Early versions (1.0.30) sum up what the process has used, newer ones (1.0.80) the session, and a compaction may let
  the sums begin anew. They are the session's where no number has fallen, and the output has grown by at least
  that of the answers since then.
- `apiCallId` is the response's id with its provider, so it names a response in all logs; a usage record comes before
  the words of its answer.
- `cost` counts premium requests, not money; `copilotUsage.totalNanoAiu` is money. `modelProvider` is `other` for users'
  own keys: then `providerType` names which protocol is spoken.
- A request that was refused or interrupted has no usage record; `session.error` is a failed one.

Seen: 1.0.30, 1.0.61 and 1.0.102 (November 2026).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.events.tokens import read_count
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.copilot_store import (
    COLUMNS,
    FOLDER,
    PROVIDER,
    STORE,
    Sum,
    family_of,
    name_sessions,
    nano_usd,
    read_store,
    read_sums,
    store_steps,
)
from sessionlog.sources.databases import TableRow, has_columns
from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    CopyRank,
    Json,
    Prompt,
    Request,
    Response,
    Session,
    Status,
    Step,
    Steps,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    Totals,
    either,
    folder,
    folder_of,
    head_rows,
    is_failure,
    json_lines,
    mapping,
    name,
    read_duration,
    read_time,
    source,
    stem_of,
    text,
    tokens,
    whole_log,
)
from sessionlog.sources.places import PLACES
from sessionlog.sources.record import ScannedSession

_RECORD = b'"session.usage_record"'
_CHARGED = int(CopyRank.ORIGINAL) + 1
"""The rank of a record with its cost: better than a row of the store with it, which is better than a record without."""


class Row(Struct, rename="camel"):
    """One event."""

    type: Any = None
    data: Any = None
    timestamp: Any = None
    agent_id: Any = None


class State(Struct):
    """What is known of a log from row to row.

    Attributes:
        session: The session.
        store: The database that has its requests, too.
        thread: Whose rows came last: "" for the session's own agent, else a sub-agent's id.
        has_records: There was a usage record.
        origin: The session that the last request of its own agent was made for; another one where that was copied.
        seen: Numbers of a request → how many requests had them.
        used: Model → what the processes that have ended used, in a log without usage records.
        last: Model → the sums of the last one.
        answered: Output tokens of the answers since.
        is_compacted: There was a compaction since.
    """

    session: str = ""
    store: str = ""
    thread: str = ""
    has_records: bool = False
    origin: str = ""
    seen: dict[str, int] = {}
    used: dict[str, Sum] = {}
    last: dict[str, Sum] = {}
    answered: int = 0
    is_compacted: bool = False


def _begin(path: str) -> State:
    return State(session=_session_of(path), store=_store_of(path))


def _store_of(path: str) -> str:
    """The store of a session's home; "" for a log that was copied elsewhere."""
    home = os.path.dirname(os.path.dirname(folder_of(path)))
    return os.path.join(home, STORE) if _is_in_place(path) else ""


def _sidecars(path: str) -> Iterator[str]:
    """The store, for a log whose sums count only beyond its rows: newer logs have all of their requests themselves."""
    store = _store_of(path)
    if store and read_sums(store, _session_of(path), None):
        with suppress(LogNotReadable, MissingExtra, OSError), open_unpacked(path)[0] as file:
            if not any(_RECORD in line for line in file):
                yield store


def steps(row: Row | TableRow, state: State) -> Steps:
    """What an event means, or a row of the store."""
    if isinstance(row, TableRow):
        return store_steps(row, state.seen)
    return _event(row, state)


def _event(row: Row, state: State) -> Steps:
    time, data, thread = read_time(row.timestamp), mapping(row.data), name(row.agent_id)
    if thread != state.thread:
        state.thread = thread
        yield Session(thread=thread)
    match row.type:
        case "session.start" | "session.resume":
            yield Session(
                time=time, project=folder(data, "context", "cwd"), branch=name(data, "context", "branch"),
                version=name(data, "copilotVersion"), model=name(data, "selectedModel"), provider=PROVIDER,
            )  # fmt: skip
        case "session.model_change" if not thread:
            yield Session(time=time, model=name(data, "newModel"))
        case "subagent.started":
            yield Session(time=time, agent=name(data, "agentName") or SUB_AGENT)
        case "system.message":
            yield Session(time=time, system_prompt=text(data, "content"))
        case "user.message":
            yield Prompt(time, text(data, "content"), role="system" if thread else "user")
        case "assistant.turn_start":
            yield Request(time)
        case "session.usage_record":
            state.has_records = True
            yield _response(time, mapping(data, "usage"), state)
        case "assistant.message":
            state.answered += read_count(data.get("outputTokens"))[0]
            answer, thoughts, key = (text(data, field) for field in ("content", "reasoningText", "apiCallId"))
            yield Response(time=time, key=key, text=answer, reasoning=thoughts) if key else Text(time, answer, thoughts)
            yield Status(time, None if data.get("toolRequests") else "success")
        case "tool.execution_start":
            tool = name(data, "mcpToolName") or name(data, "toolName")
            yield ToolCall(time, name(data, "toolCallId"), tool, data.get("arguments"), name(data, "mcpServerName"))
        case "tool.execution_complete":
            output = text(data, "result", "content") or text(data, "error", "message")
            failed = data.get("success") is False or is_failure(data, "shellExecution", "exitCode")
            yield ToolResult(time, name(data, "toolCallId"), output, failed=failed)
        case "session.error":
            yield Response(time=time, failed=True, error=text(data, "message") or "failed")
        case "session.shutdown" if not state.has_records:
            yield At(time)
            metrics = mapping(data, "modelMetrics") or mapping(data, "accountingSnapshot", "modelMetrics")
            yield from _totals(time, metrics, state)
        case "session.compaction_complete":
            state.is_compacted = state.is_compacted or data.get("success") is True
            yield At(time)
        case "abort":
            yield Status(time, "cancelled")
        case _:
            yield At(time)


def _totals(time: int | None, metrics: Json, state: State) -> Iterator[Step]:
    """What all processes up to now have used, beyond what the store has of it."""
    now: dict[str, Sum] = {}
    for model, logged in metrics.items():
        counts = _tokens(mapping(logged).get("usage"))
        if counts is not None:
            yield from map(BadNumber, counts.issues)
            requests, _ = read_count(mapping(logged, "requests").get("count"))
            now[model] = Sum(counts.usage, requests, nano_usd(mapping(logged).get("totalNanoAiu")) or 0)
    before = state.last if _is_continued(now, state) else {}
    state.last, state.answered, state.is_compacted = now, 0, False
    stored = read_sums(state.store, state.session, time) if state.store else {}
    for model, used in now.items():
        whole = state.used[model] = state.used.get(model, Sum()).plus(used.beyond(before.get(model, Sum())))
        rest = whole.beyond(stored.get(model, Sum()))
        if rest.usage or model not in stored:
            yield Totals(
                time=time, tokens=Tokens(rest.usage), model=model, requests=rest.requests, scope=model,
                cost_nano=rest.cost_nano or None,
            )  # fmt: skip


def _is_continued(now: dict[str, Sum], state: State) -> bool:
    """Whether sums contain the last ones: none is smaller, and the answers since then fit into the difference.

    Where answers have no counts, a compaction is taken for a new beginning.
    """
    nothing = Sum()
    if any(before.beyond(now.get(model, nothing)) != nothing for model, before in state.last.items()):
        return False
    then, total = (sum(one.usage.output for one in sums.values()) for sums in (state.last, now))
    return total - then >= state.answered > 0 or not (state.answered or state.is_compacted)


def _tokens(usage: Any) -> Tokens | None:
    return tokens(
        usage, input="inputTokens", output="outputTokens", cache_read="cacheReadTokens",
        cache_write="cacheWriteTokens", reasoning="reasoningTokens", is_inclusive=True,
    )  # fmt: skip


def _response(time: int | None, usage: Json, state: State) -> Response:
    provider, counts = name(usage, "modelProvider"), _tokens(usage)
    cost_nano = nano_usd(mapping(usage, "copilotUsage").get("totalNanoAiu"))
    if not state.thread:  # sub-agents name sessions of their own
        state.origin = name(usage, "accounting", "sourceSessionId")
    return Response(
        time=time,
        key=name(usage, "apiCallId") or name(usage, "accounting", "usageId"),
        family="" if counts is None else family_of(state.origin or state.session, counts.usage, state.seen),
        rank=int(CopyRank.COPIED) if cost_nano is None else _CHARGED,
        tokens=counts,
        provider=provider if provider not in {"", "other"} else name(usage, "providerType"),
        model=name(usage, "model"),
        cost_nano=cost_nano,
        latency_ms=read_duration(usage.get("duration")),
        finish=name(usage, "finishReason"),
        kind="compaction" if usage.get("initiator") == "compaction" else "",
    )  # fmt: skip


def _complete(session: ScannedSession, state: State, _: int, __: bool) -> ScannedSession:
    """The empty record that lists a session without requests in its log is of the model that the store names."""
    if len(session.records) != 1 or session.records[0].requests or session.records[0].model != UNKNOWN:
        return session
    stored = read_sums(state.store, session.session_id, None) if state.store else {}
    model = max(stored, key=lambda name: stored[name].requests, default=UNKNOWN)
    return replace(session, records=(replace(session.records[0], model=model),))


def _is_in_place(path: str) -> bool:
    return os.path.basename(os.path.dirname(folder_of(path))) == FOLDER


def _session_of(path: str) -> str:
    """The session's folder bears its id; a file that was copied elsewhere is named by itself."""
    return os.path.basename(folder_of(path)) if _is_in_place(path) else stem_of(path)


def _is_store(path: str) -> bool:
    return path.endswith(".db")


def _name_sessions(path: str) -> Iterable[str]:
    return name_sessions(path) if _is_store(path) else (_session_of(path),)


def _recognises(path: str, head: bytes) -> bool:
    return has_columns(path, head, COLUMNS) or any(map(_is_row, head_rows(head)))


def _is_row(row: Json) -> bool:
    data = mapping(row, "data")
    return row.get("type") == "session.start" and ("copilotVersion" in data or data.get("producer") == "copilot-agent")


SOURCE = source(
    id="copilot",
    title="Copilot CLI",
    places=PLACES["copilot"],
    logs=("events.jsonl", STORE),
    rows=either(_is_store, whole_log(read_store, read_store), json_lines(Row)),
    steps=steps,
    state=_begin,
    state_type=State,
    recognises=_recognises,
    name_sessions=_name_sessions,
    is_apart=True,
    complete=_complete,
    sidecars=_sidecars,
    has_totals=True,
    parser_version=6,
    session_of=_session_of,
)
