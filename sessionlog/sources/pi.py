"""pi (pi-mono's coding agent) and the agents descended from it: omp, senpi, kimchi, prime.

Where: `sessions/--<cwd with - for />--/<time>_<uuid>.jsonl` in `$PI_CODING_AGENT_DIR` or `$PI_AGENT_DIR` (which may
also name the sessions themselves), else in `~/.pi/agent`; `$PI_CODING_AGENT_SESSION_DIR`; the descendants in
`~/.<name>/agent`. Sub-agents of omp have their logs in a folder named like their parent's file. Prime Agent's sessions
(`$PRIME_AGENT_SESSION_DIR`) are `sessions/<uuid>.jsonl`, their sub-agents' `session-artifacts/<uuid>/sub-<id>/*.jsonl`.

Shape: `{"type":"session","version":3,"id","timestamp","cwd","parentSession"?}` (omp: after a `title` row), then entries
`{"type","id","parentId","timestamp"}`: `message` (roles system, user, assistant, toolResult, bashExecution, custom …),
`model_change` (omp: one word `provider/model`), `compaction` and `branch_summary` (both with the `usage` of their
writing), `custom_message`, `label` …. Version 1 has no entry ids and names the model in its header. OpenClaw writes the
same messages: `message_steps` is for both.

    {"role": "assistant", "content": [{"type": "toolCall", "id", "name", "arguments"}, …], "provider", "model",
     "usage": {"input", "output", "cacheRead", "cacheWrite", "cacheWrite1h"?, "reasoning"?, "cost": {"total"}},
     "stopReason", "errorMessage"?, "timestamp": ms, "responseId"?}

Input excludes the cache; reasoning is a part of the output. An entry's time is when it was stored, its message's when
the answer began. The system prompt is a message with `sections`. Traps:

- A fork copies the entries of its parent, verbatim: the key is the provider's `responseId` with the time of the
  message (local servers number their answers anew every day), else entry id, time and tokens. What is older than a
  fork's header was copied.
- Every branch of the tree was billed; the file's order is the order in which things happened.
- Up to 0.55 the input of Google's APIs includes the cache: there `totalTokens` is input and output alone. The output
  of `openai-completions` has the reasoning twice then, which no field shows.
- `cost.total` 0 means unknown.
- A `toolResult` may carry `usage` of its own: what the tool asked other models.
- A session is named by its file; header ids are the same.
- Prime Agent: `child_usage_attributed` (targetId, childId, childUsage, aggregateUsage) is what a sub-agent has used. It
  counts if that has left no log: none under its id, and where the row does not name it, none with the same numbers, nor
  a response with them. A log that was written anew has the aggregate in the answer already.
- `service_tier_change` holds for the requests from there on, `default` is the standard one.

Seen: versions 1 to 3 of the format, 2025 to November 2026.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from msgspec import Raw, Struct

from sessionlog import files
from sessionlog.events.billing import read_tier
from sessionlog.sources.kit import (
    LOG_SUFFIXES,
    MAIN,
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Compaction,
    CopyRank,
    Json,
    Prompt,
    Response,
    Session,
    Status,
    Steps,
    Tokens,
    TokenUsage,
    ToolCall,
    ToolResult,
    Typed,
    cost,
    folder,
    folder_of,
    head_rows,
    is_failure,
    json_lines,
    mapping,
    name,
    read_duration,
    read_json,
    read_time,
    source,
    text,
    text_of,
    tokens,
    walk_files,
)
from sessionlog.sources.places import PLACES

_LONGEST_CALL_NS = 3600 * 1_000_000_000  # a longer wait was a closed laptop
_STATUSES = {"stop": "success", "length": "success", "aborted": "cancelled"}
_FAILED = frozenset({"error", "aborted"})
_ARTIFACTS = "session-artifacts"
_KEPT_ANSWERS = 64
ARCHIVED = r"\.jsonl\.(?:deleted|reset)\.|\.imported-\d"
"""What only OpenClaw's archives have in their names."""

_AFTER_ID = re.compile(r"\.jsonl(?:\.|\Z).*|\.imported-\d.*", re.DOTALL)
_NAMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:[-.]\d+)?Z_([^/\\]+)\Z")
_OPENCLAW = re.compile(rf"[/\\]agents[/\\][^/\\]+[/\\](?:sessions|session-sqlite-import-archive)[/\\]|{ARCHIVED}")
MIRRORS = frozenset({"delivery-mirror", "gateway-injected"})
"""The `models` of what OpenClaw itself puts into a conversation."""


class Part(Struct):
    """A part of an answer, as far as it is a tool call."""

    type: Any = None
    id: Any = None
    name: Any = None
    arguments: Raw = Raw()


class Details(Struct, rename="camel"):
    """What a tool returns besides its output."""

    duration_ms: Any = None
    exit_code: Any = None


class Message(Struct, rename="camel"):
    """A message by its role."""

    role: Any = None
    content: Raw = Raw()
    timestamp: Any = None
    api: Any = None
    provider: Any = None
    model: Any = None
    usage: Any = None
    stop_reason: Any = None
    error_message: Any = None
    response_id: Any = None
    response_model: Any = None
    idempotency_key: Any = None
    runtime_context: Any = None
    sections: Any = None
    tool_call_id: Any = None
    tool_name: Any = None
    is_error: Any = None
    service_tier: Any = None
    details: Details | None = None
    summary: Any = None
    command: Any = None
    output: Any = None
    exit_code: Any = None
    cancelled: Any = None


class Model(Struct, rename="camel"):
    """A model that answers from now on."""

    provider: Any = None
    model_id: Any = None
    model: Any = None


class Row(Model):
    """A line: the header, or an entry."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    cwd: Any = None
    parent_session: Any = None
    message: Message | None = None
    custom_type: Any = None
    data: Model | None = None
    usage: Any = None
    content: Raw = Raw()
    summary: Any = None
    tokens_before: Any = None
    service_tier: Any = None
    rlm_depth: Any = None
    target_id: Any = None
    child_id: Any = None
    rlm_child_id: Any = None
    child_session_id: Any = None
    child_usage: Any = None
    aggregate_usage: Any = None


class Conversation(Struct):
    """What is known of a session from row to row.

    Attributes:
        id: Its id.
        agent: `main`, or the kind of sub-agent.
        provider: Who served the last answer.
        model: Its model.
        forked: When it was forked; None for one that was not.
        is_inherited: The last row was copied from the session that it was forked from.
        is_begun: A row has been read.
        calls: Id of a tool call → its key, until its result comes.
        tier: The service tier of the requests from here on.
        parent: The session that it was forked from.
        family: The session that a sub-agent's log belongs to; "" for a session's own log.
        artifacts: The folder with the logs of its sub-agents, of Prime Agent.
        logged: Sub-agents that have left a log there, or numbers of them.
        answers: Entry id of the last answers → their tokens, with those of sub-agents so far.
    """

    id: str
    agent: str = MAIN
    provider: str = ""
    model: str = ""
    forked: int | None = None
    is_inherited: bool = False
    is_begun: bool = False
    calls: dict[str, str] = {}
    tier: str = ""
    parent: str = ""
    family: str = ""
    artifacts: str = ""
    logged: set[str] = set()
    answers: dict[str, TokenUsage] = {}


KeyOf = Callable[[Row, Message, TokenUsage], str]
_parts = Typed(list[Part])
_ROWS = json_lines(Row)


def _begin(path: str) -> Conversation:
    session, is_part = session_of(path)
    artifacts = os.path.join(os.path.dirname(folder_of(path)), _ARTIFACTS, session)
    return Conversation(
        session, agent=SUB_AGENT if is_part else MAIN, family=session if is_part else "", artifacts=artifacts
    )


def steps(row: Row, state: Conversation) -> Steps:
    """What a line means."""
    if not isinstance(row.type, str):
        return
    if not state.is_begun:
        state.is_begun = True
        yield Session(id=state.id, agent=state.agent, is_subagent_log=state.agent != MAIN)
    yield from message_steps(row, state, _key)


def message_steps(
    row: Row, chat: Conversation, key_of: KeyOf, *, stored: int | None = None, superseded_by: str = ""
) -> Steps:
    """What a row of pi or OpenClaw means.

    Args:
        row: The row.
        chat: Its session so far.
        key_of: (row, message, its counts) → the response's name wherever it is copied to; "" for none.
        stored: When the row was stored, where it has no time of its own.
        superseded_by: As in `Response`.
    """
    message = row.message
    time = read_time(row.timestamp)
    if time is None and message is not None:
        time = read_time(message.timestamp)
    time = stored if time is None else time
    if chat.forked is not None and time is not None and (time < chat.forked) != chat.is_inherited:
        chat.is_inherited = not chat.is_inherited
        yield Session(inherited=chat.is_inherited)
    match row.type:
        case "session":
            yield from _header(row, time, chat)
        case "message" if message is not None:
            yield from _message(row, message, time, chat, key_of, superseded_by)
        case "model_change":
            yield _change_model(row, time, chat)
        case "custom" if row.custom_type == "model-snapshot":
            yield _change_model(row, time, chat)
        case "compaction":
            yield from _side_answer(row, row.usage, time, chat)
            before = row.tokens_before
            yield Compaction(time, text_of(row.summary), {"tokens_before": before} if type(before) is int else None)
        case "branch_summary":
            yield from _side_answer(row, row.usage, time, chat)
            summary = text_of(row.summary)
            yield Prompt(time, summary and f"(of the branch that was left) {summary}", role="system")
        case "custom_message":
            yield Prompt(time, row.content, role="system")
        case "service_tier_change":
            chat.tier = read_tier(row.service_tier)
            yield At(time)
        case "child_usage_attributed":
            yield from _child(row, time, chat)
        case _:
            yield At(time)


def _header(row: Row, time: int | None, chat: Conversation) -> Steps:
    parent = text(row.parent_session)
    if parent:
        chat.parent = session_of(parent)[0]
        if type(row.rlm_depth) is int and row.rlm_depth > 0:
            chat.family = chat.family or chat.parent
        else:
            chat.forked = time
    yield Session(parent=chat.parent if chat.agent == MAIN else "", project=folder(row.cwd))
    yield _change_model(row, time, chat)


def _change_model(row: Row, time: int | None, chat: Conversation) -> Session:
    given = row.data or row
    provider, model = name(given.provider), name(given.model_id) or name(given.model)
    if "/" in model and not provider:
        provider, _, model = model.partition("/")
    chat.provider, chat.model = provider or chat.provider, model or chat.model
    return Session(provider=chat.provider, model=chat.model, time=time)


def _message(
    row: Row, message: Message, time: int | None, chat: Conversation, key_of: KeyOf, superseded_by: str
) -> Steps:
    match message.role:
        case "assistant":
            yield from _answer(row, message, time, chat, key_of, superseded_by)
        case "toolResult" | "tool":
            call, tool = name(message.tool_call_id), name(message.tool_name) or UNKNOWN
            duration = read_duration(message.details.duration_ms) if message.details else None
            output = read_json(message.content)
            failed = message.is_error is True or (message.details is not None and is_failure(message.details.exit_code))
            yield ToolResult(time, chat.calls.pop(call, call), output, failed, duration, tool=tool)
            yield from _side_answer(row, message.usage, time, chat, tool)
        case "user" if not message.runtime_context:
            yield Prompt(time, message.content)
        case "system" if isinstance(message.sections, dict):
            sections = filter(None, map(text, message.sections.values()))
            yield Session(system_prompt="\n\n".join(sections), time=time)
        case "bashExecution":
            yield Prompt(time, _shell_words(message), role="system")
        case _:
            yield Prompt(time, message.summary or message.content, role="system")


def _answer(
    row: Row, message: Message, time: int | None, chat: Conversation, key_of: KeyOf, superseded_by: str
) -> Steps:
    counts, cost_nano = _counts({} if message.usage is None else message.usage, text(message.api))
    chat.provider, chat.model = name(message.provider) or chat.provider, name(message.model) or chat.model
    key = key_of(row, message, counts.usage)
    parts = _parts(message.content)
    for part in parts or ():
        if part.type == "toolCall":
            call = name(part.id)
            chat.calls[call] = f"{key or chat.id}/{call}"
            yield ToolCall(
                time, chat.calls[call], name(part.name) or UNKNOWN, part.arguments, id=call, superseded_by=superseded_by
            )
    if entry := name(row.id):
        chat.answers[entry] = counts.usage
        if len(chat.answers) > _KEPT_ANSWERS:
            del chat.answers[next(iter(chat.answers))]
    stop, begun = text(message.stop_reason), read_time(message.timestamp)
    failed = stop in _FAILED
    is_known = begun is not None and time is not None and 0 < time - begun <= _LONGEST_CALL_NS
    yield Response(
        time=time,
        key=key,
        family=_family(chat.family, counts.usage) if chat.family else "",
        rank=int(CopyRank.COPIED if chat.is_inherited else CopyRank.ORIGINAL),
        # what repeats the words of another agent's log and has no counts is no request
        tokens=counts if counts.usage or not superseded_by else None,
        provider=chat.provider,
        model=chat.model,
        response_model=name(message.response_model),
        cost_nano=cost_nano,
        asked=begun if is_known else None,
        finish="" if failed else "tool_use" if stop == "toolUse" else stop,
        failed=failed,
        error=text_of(message.error_message) or stop if failed else "",
        final=True,
        text=message.content,
        reasoning=message.content if parts else "",
        superseded_by=superseded_by,
        response_id=name(message.response_id),
        service_tier=read_tier(message.service_tier) if message.service_tier else chat.tier,
    )
    if stop in _STATUSES:
        yield Status(time, _STATUSES[stop])


def _side_answer(row: Row, usage: Any, time: int | None, chat: Conversation, tool: str = "") -> Steps:
    """What the writing of a summary used, or what a tool asked of models that no row names; not in the conversation."""
    if usage is None:
        return
    counts, cost_nano = _counts(usage)
    if not counts.usage:
        yield from map(BadNumber, counts.issues)
        return
    yield Session(thread=tool or text(row.type), agent=tool or chat.agent)
    yield Response(
        time=time,
        key=_side_key(row, counts.usage),
        tokens=counts,
        provider=UNKNOWN if tool else chat.provider,
        model=UNKNOWN if tool else chat.model,
        cost_nano=cost_nano,
        kind="compaction" if row.type == "compaction" else "",
        final=True,
    )
    yield Session(thread="", agent=chat.agent)


def _child(row: Row, time: int | None, chat: Conversation) -> Steps:
    """What a sub-agent of Prime Agent has used, if it has left no log."""
    counts, cost_nano = _counts(row.child_usage or {})
    whole, target = _counts(row.aggregate_usage or {})[0].usage, name(row.target_id)
    before = chat.answers.get(target)
    yield from map(BadNumber, counts.issues)
    if before is not None and whole and not whole.beyond(before):
        return  # the answer's tokens include it
    if before is not None:
        chat.answers[target] = whole or before + counts.usage
    children = set(filter(None, map(name, (row.child_id, row.rlm_child_id, row.child_session_id))))
    if not counts.usage or _has_log(children, counts.usage, chat):
        return
    superseded = [chat.parent] if chat.is_inherited else sorted(children)
    yield Session(thread=min(children, default=row.type), agent=SUB_AGENT)
    yield Response(
        time=time,
        key=_side_key(row, counts.usage),
        family="" if superseded else _family(chat.id, counts.usage),
        rank=int(CopyRank.EMBEDDED if chat.is_inherited else CopyRank.SIDECHAIN),
        tokens=Tokens(counts.usage),
        provider=chat.provider,
        model=chat.model,
        cost_nano=cost_nano,
        superseded_by="\n".join(f"pi:{session}" for session in superseded),
        summed=True,
        final=True,
    )
    yield Session(thread="", agent=chat.agent)


def _has_log(children: set[str], usage: TokenUsage, chat: Conversation) -> bool:
    """Whether one of these sub-agents has left a log in the session's folder; if none is named, one of these counts."""
    wanted = children or {_family("", usage)}
    if not wanted & chat.logged and files.is_directory(chat.artifacts):
        for log in walk_files([chat.artifacts], lambda name: name.endswith(LOG_SUFFIXES)):
            if isinstance(log, str):
                chat.logged |= wanted & {*re.split(r"[/\\]", log[len(chat.artifacts) :])[:-1]}
                if not children and _family("", _used_in(log)) in wanted:
                    chat.logged |= wanted
    return bool(wanted & chat.logged)


def _used_in(path: str) -> TokenUsage:
    """What the answers in a log have used."""
    reading, total = _ROWS.open(path, None), TokenUsage()
    try:
        for row in chain(reading.rows(), reading.last()):
            if isinstance(row, Row) and row.message is not None and row.message.role == "assistant":
                total += _counts(row.message.usage or {})[0].usage
    finally:
        reading.close()
    return total


def _family(session: str, usage: TokenUsage) -> str:
    """What the response of a sub-agent and the row that attributes it to its parent have in common."""
    return f"{session}:{usage.input}.{usage.output}.{usage.cache_read}.{usage.cache_write}"


def _counts(usage: Any, api: str = "") -> tuple[Tokens, int | None]:
    """The tokens and the recorded cost, in which 0 stands for no known price."""
    data = mapping(usage)
    read = partial(
        tokens,
        usage,
        input="input",
        output="output",
        cache_read="cacheRead",
        cache_write="cacheWrite",
        cache_write_1h="cacheWrite1h",
        reasoning="reasoningTokens" if "reasoningTokens" in data else "reasoning",
    )
    counts = read()
    if api.startswith("google") and counts and counts.usage.input + counts.usage.output == data.get("totalTokens"):
        counts = read(is_inclusive=True)
    cost_nano, issues = cost(mapping(usage, "cost").get("total"))
    assert counts is not None
    return Tokens(counts.usage, counts.issues + issues), cost_nano or None


def _key(row: Row, message: Message, usage: TokenUsage) -> str:
    begun = read_time(message.timestamp)
    response, entry = name(message.response_id), name(row.id)
    if response:
        return f"{response}@{begun or ''}"
    time = read_time(row.timestamp) or begun
    if not entry and time is None:
        return ""
    return f"{entry}@{time or ''}:{usage.input}:{usage.output}:{usage.cache_read}:{usage.cache_write}"


def _side_key(row: Row, usage: TokenUsage) -> str:
    entry, time = name(row.id), read_time(row.timestamp)
    return f"{text(row.type)}:{entry}:{time or ''}:{usage.input}:{usage.output}" if entry or time else ""


def _shell_words(message: Message) -> str:
    """A command that the user ran by hand, as the model is shown it."""
    code = message.exit_code
    lines = [
        f"! {text(message.command)}",
        text(message.output),
        "(cancelled)" if message.cancelled is True else f"(exit code {code})" if type(code) is int and code else "",
    ]
    return "\n".join(filter(None, lines))


def session_of(path: str) -> tuple[str, bool]:
    """The id of a log's session, and whether the log is a sub-agent's of it: it lies in a folder named like a log."""
    *folders, file_name = re.split(r"[/\\]", path)
    if _ARTIFACTS in folders[:-1]:
        return folders[folders.index(_ARTIFACTS) + 1], True
    for above in reversed(folders):
        if parent := _NAMED.match(above):
            return parent[1], True
    stem = _AFTER_ID.sub("", file_name) or file_name
    named = _NAMED.match(stem)
    return named[1] if named else stem, False


def _subagent_of(path: str) -> str:
    """The place of a sub-agent's log below its session's folder."""
    session, is_part = session_of(path)
    above = (
        f"{_ARTIFACTS}{os.sep}{session}{os.sep}" if f"{os.sep}{_ARTIFACTS}{os.sep}" in path else f"_{session}{os.sep}"
    )
    return _AFTER_ID.sub("", path.rpartition(above)[2]) if is_part else ""


def _subagent_logs(path: str) -> list[str]:
    own = _AFTER_ID.sub("", os.path.basename(path))
    beside = os.path.join(os.path.dirname(folder_of(path)), _ARTIFACTS, own)
    folder = os.path.join(os.path.dirname(path), own, "") if _NAMED.match(own) else beside
    logs = walk_files([folder] if files.exists(folder) else (), lambda name: name.endswith(LOG_SUFFIXES))
    return [log for log in logs if isinstance(log, str) and files.is_file(log)]


def _sidecars(path: str) -> list[str]:
    """The logs of the sub-agents of a session of Prime Agent: it counts what they have used where there is none."""
    session, is_part = session_of(path)
    folder = os.path.join(os.path.dirname(folder_of(path)), _ARTIFACTS, session)
    return [] if is_part or not files.is_directory(folder) else _subagent_logs(path)


def recognises_session(path: str, head: bytes, *, is_openclaw: bool) -> bool:
    """Whether a log begins like those of pi and OpenClaw, and is one of the latter: by its rows, else by its folder."""
    rows = list(head_rows(head))
    is_marked = any(map(_is_mark, rows)) or _OPENCLAW.search(files.absolute_path(path)) is not None
    return any(map(_is_header, rows)) and is_marked == is_openclaw


def _is_header(row: Json) -> bool:
    is_named = isinstance(row.get("id"), str) and isinstance(row.get("timestamp"), str | int)
    return row.get("type") == "session" and is_named and ("cwd" in row or "version" in row)


def _is_mark(row: Json) -> bool:
    kind, version, message = text(row, "customType"), row.get("version"), mapping(row, "message")
    return (
        kind == "model-snapshot"
        or kind.startswith("openclaw")
        or (row.get("type") == "session" and type(version) is int and version >= 4)
        or text(message, "model") in MIRRORS
        or "idempotencyKey" in message
        or message.get("api") == "openclaw-transcript"
    )


SOURCE = source(
    id="pi",
    title="pi",
    places=PLACES["pi"],
    logs="*.jsonl",
    not_logs=r"[/\\]subagent-artifacts[/\\]",  # streams of events
    rows=_ROWS,
    steps=steps,
    state=_begin,
    state_type=Conversation,
    recognises=lambda path, head: recognises_session(path, head, is_openclaw=False),
    session_of=lambda path: session_of(path)[0],
    subagent_of=_subagent_of,
    subagent_logs=_subagent_logs,
    sidecars=_sidecars,
    parser_version=6,
)
