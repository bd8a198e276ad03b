"""opencode: a database of all its sessions, and before version 1.2 a folder of small files for each session.

Where: `$OPENCODE_DATA_DIR`, else `opencode` in `$XDG_DATA_HOME`, `~/.local/share`, `~/Library/Application Support` or
`%LOCALAPPDATA%`. There `opencode.db` and one `opencode-<channel>.db` for each release channel, all of which count
(`$OPENCODE_DB` names another one), and `storage/message/<session>/<message>.json`. The three shapes are described in
`opencode_rows`. A message of role `assistant` is one LLM call and the tools it ran:

    {"role":"assistant","modelID","providerID","cost","tokens":{"input","output","reasoning","cache":{"read","write"}},
     "time":{"created","completed"} in ms,"path":{"cwd","root"},"agent" or "mode","finish","error":{"name","data"}}

v2 has `model: {id, providerID}` instead, and its text and tools in `content`; v1 has them in the table `part`.

Traps:

- Reasoning is not in `output`, until 1.3.2 it is: where `tokens.total` equals the other classes without the reasoning,
  the output includes it.
- A cost of 0 means that no price was known. In Kilo the cost of a message includes that of the sub-agents it started;
  the parts of kind `step-finish` have the cost of the message alone.
- A fork copies messages under new ids, Kilo with a cost of 0, and before 2.0 names no parent: copies are older than
  their session. The move to the database left the files where they were. The key is what such copies keep.
- A session with a parent is a sub-agent's, and sub-agents have sub-agents: all of them belong to the first ancestor.
- A message that was cut off has tokens but no time of completion; one without tokens, end and error was interrupted.
- A message is complete when its tools have run; the model had answered when the last of them began.
- A command that failed is `completed`; its exit code is in `state.metadata.exit`.
- Calls that the agent does not store as messages, such as those for titles, are in no sum before 2.0. Since then the
  sums of a session in `session_v2` hold them (and what was taken back): the rest beyond its messages is counted. Those
  of a fork begin at 0, without what it has copied; where they are as great as with it, they are taken to hold it.
- Since 2.0 a message of type `compaction` has the `model`, `tokens` and `cost` of the request that wrote its summary;
  its `status` is `running`, `completed` or `failed`.

Seen: 0.x files, 1.2 to 1.18 databases, v2 tables with and without v1, 2.0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.sources.databases import tables_of
from sessionlog.sources.kit import (
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Compaction,
    Json,
    Problem,
    Prompt,
    Request,
    Response,
    Role,
    Session,
    Source,
    Status,
    Steps,
    Text,
    Tokens,
    TokenUsage,
    ToolCall,
    ToolResult,
    Totals,
    cost,
    fingerprint,
    first_words,
    folder,
    is_failure,
    mapping,
    name,
    read_json,
    read_time,
    source,
    text,
    text_of,
    tokens,
    walk_files,
    whole_log,
)
from sessionlog.sources.opencode_rows import (
    SUMS,
    Part,
    Row,
    SessionFacts,
    name_roots,
    read_rows,
    session_of,
    sidecars,
)
from sessionlog.sources.places import PLACES

_ENDS = {"stop": "success", "end_turn": "success", "end-turn": "success"}
_SESSIONS, _MESSAGES = {"session", "session_v2"}, {"message", "session_message"}
_NOT_WALKED = frozenset({"part", "snapshot", "log", "bin", "repos", "tool-output", "node_modules", ".git"})
_ABORTED = {"MessageAbortedError", "aborted"}
_OTHERS = ("kilo", "mimocode")
_ROUNDED = 1000  # nano-USD that sums of rounded costs may differ


class Used(Struct, frozen=True):
    """What some messages have used; the cost is None if that of one of them is unknown."""

    usage: TokenUsage = TokenUsage()
    cost_nano: int | None = 0

    def plus(self, usage: TokenUsage, cost_nano: int | None) -> Used:
        """Return the sum."""
        total = None if self.cost_nano is None or cost_nano is None else self.cost_nano + cost_nano
        return Used(self.usage + usage, total)


class State(Struct):
    """What is known from row to row.

    Attributes:
        begun: The sessions that have begun.
        status: Session → its status after its last message.
        own: Session → what its own messages have used.
        copied: Session → what those have that it has copied, of which the originals are gone.
        repeated: Session → what those have of which the originals are here.
    """

    begun: set[str] = set()
    status: dict[str, str | None] = {}
    own: dict[str, Used] = {}
    copied: dict[str, Used] = {}
    repeated: dict[str, Used] = {}


def steps(row: Row, state: State) -> Steps:
    """What a message means."""
    yield _session(row, state)
    created = read_time(row.data.time, "created")
    if row.copied_from and row.role in {"assistant", "compaction"}:
        _cost(row, _tokens(row), state)
    if row.role == "assistant" and not row.copied_from:
        yield from _answer(row, created, state)
    elif row.role in {"user", "assistant"}:
        yield from _prompts(row, created, state)
    elif row.role == "compaction":
        yield from _compaction(row, created, state)
    elif row.role == SUMS:
        yield from _rest(row.session, state)
    else:
        yield At(created)


def _session(row: Row, state: State) -> Session:
    own, data = row.session, row.data
    is_subagent = own.id != row.root
    is_new = own.id not in state.begun
    state.begun.add(own.id)
    return Session(
        id=row.root,
        thread=own.id if is_subagent and not row.is_subagent_log else "",
        agent=(name(data.agent) or name(data.mode) or SUB_AGENT) if is_subagent else "",
        is_subagent_log=row.is_subagent_log,
        parent=row.copied_from,
        project=folder(own.directory) or folder(data.path, "cwd") or folder(data.path, "root"),
        version=own.version,
        time=read_time(own.created) if is_new else None,
    )


def _prompts(row: Row, created: int | None, state: State) -> Steps:
    """A user's words, and what the agent has put beside them; or what a fork has copied of an answer."""
    is_copy = bool(row.copied_from)
    if not is_copy:
        yield _status(row, created, None, state)
    typed, added = (
        _words(part for part in row.parts if (part.synthetic is True) is is_added) for is_added in (False, True)
    )
    role: Role = "assistant" if row.role == "assistant" else "user" if first_words(typed) else "system"
    yield Prompt(created, typed, role=role, inherited=is_copy)
    yield Prompt(created, added, role="system", inherited=is_copy)


def _words(parts: Iterable[Part], *, is_reasoning: bool = False) -> str:
    found = (_text(part) for part in parts if (part.type == "reasoning") is is_reasoning and not part.ignored)
    return "\n\n".join(filter(None, found))


def _text(part: Part) -> str:
    match part.type:
        case "text" | "reasoning":
            return text(part.text)
        case "subtask":
            return text(part.prompt)
        case "file":
            return f"[{text(part.filename) or text(part.mime) or 'file'}]"
    return ""


def _answer(row: Row, created: int | None, state: State) -> Steps:
    data = row.data
    completed = read_time(data.time, "completed")
    counts = _tokens(row)
    provider, model = _model(row)
    key = fingerprint(created or row.id, completed, model, provider, counts.usage)
    error = _reason(data.error) if data.error else ""
    is_aborted = bool(_ABORTED & {text(data.error, "name"), text(data.error, "type")})
    words = _words(row.parts)
    yield Request(created)
    yield Text(None, words, _words(row.parts, is_reasoning=True))
    yield from _tools(row.parts, key)
    if not (counts.usage or completed or error):
        return  # it has just begun, or was interrupted
    cost_nano, issues = _cost(row, counts, state)
    yield from issues
    yield Response(
        time=completed or created, key=key, tokens=counts, provider=provider, model=model, cost_nano=cost_nano,
        finish="aborted" if is_aborted else text(data.finish), failed=bool(error) and not is_aborted, error=error,
        quality="exact" if counts.usage or error else "partial", final=True,
    )  # fmt: skip
    if data.summary is True:
        yield Compaction(completed or created, words)
    if is_aborted or not error:
        yield _status(row, completed or created, "cancelled" if is_aborted else _ENDS.get(text(data.finish)), state)


def _compaction(row: Row, created: int | None, state: State) -> Steps:
    """The summary, and since 2.0 the request that wrote it, after which the session is as it was before."""
    data = row.data
    completed = read_time(data.time, "completed") or created
    counts = _tokens(row)
    if counts.usage and not row.copied_from:
        provider, model = _model(row)
        cost_nano, issues = _cost(row, counts, state)
        yield from issues
        yield Response(
            time=completed, key=fingerprint(created or row.id, completed, model, provider, counts.usage), tokens=counts,
            provider=provider, model=model, cost_nano=cost_nano, asked=created, kind="compaction", final=True,
        )  # fmt: skip
        yield Status(completed, state.status.get(row.session.id))
    if text(data.status) not in {"running", "failed"}:
        yield Compaction(created, text(data.summary))


def _rest(session: SessionFacts, state: State) -> Steps:
    """What a session has used beyond its messages: at its start, where it asks for its title."""
    own, copied, repeated = (used.get(session.id, Used()) for used in (state.own, state.copied, state.repeated))
    *counts, total = session.sums or ()
    model = mapping(read_json(text(session.model)))
    fields = ("input", "output", "reasoning", "cache_read", "cache_write")
    found = tokens(
        dict(zip(fields, counts, strict=True)), input="input", output="output", cache_read="cache_read",
        cache_write="cache_write", reasoning="reasoning", is_reasoning_apart=True, where=f"session {session.id}: ",
    )  # fmt: skip
    cost_nano, issues = cost(total)
    yield from (BadNumber(f"session {session.id}: {issue}") for issue in issues)
    with_copies = own.plus(repeated.usage, repeated.cost_nano)
    if found is not None and not with_copies.usage.beyond(found.usage):
        own = with_copies  # the sums hold what the session has copied, too
    if None in (own.cost_nano, copied.cost_nano):
        cost_nano = None  # that of the rest is unknown, too
    is_dearer = (cost_nano or 0) - (own.cost_nano or 0) > _ROUNDED
    if found is not None and (found.usage.beyond(own.usage) or is_dearer):
        whole = copied.plus(found.usage, cost_nano)
        yield Totals(
            time=read_time(session.created),
            tokens=Tokens(whole.usage, found.issues),
            cost_nano=whole.cost_nano or None,
            provider=name(model, "providerID"),
            model=name(model, "id"),
        )


def _status(row: Row, time: int | None, status: str | None, state: State) -> Status:
    state.status[row.session.id] = status
    return Status(time, status)


def _model(row: Row) -> tuple[str, str]:
    """The provider and the model of a message."""
    data, model = row.data, mapping(row.data.model)
    provider, model_name = name(data.providerID) or name(model, "providerID"), name(data.modelID) or name(model, "id")
    return provider or UNKNOWN, model_name or UNKNOWN


def _tokens(row: Row) -> Tokens:
    counts = mapping(row.data.tokens)
    cache = mapping(counts, "cache")
    flat = {**counts, "cache.read": cache.get("read"), "cache.write": cache.get("write")}
    read = partial(
        tokens, flat, input="input", output="output", cache_read="cache.read", cache_write="cache.write",
        reasoning="reasoning", where=f"message {row.id}: tokens.",
    )  # fmt: skip
    found = read()
    is_whole = found is not None and found.usage.total == counts.get("total")
    return (found if is_whole else read(is_reasoning_apart=True)) or Tokens(TokenUsage())


def _cost(row: Row, counts: Tokens, state: State) -> tuple[int | None, list[BadNumber]]:
    """What a message cost without its sub-agents (0 is unknown), which is added to what its session has used."""
    whole, issues = cost(row.data.cost)
    own = sum(cost(part.cost)[0] or 0 for part in row.parts if part.type == "step-finish")
    found = own or whole or None
    created, began = read_time(row.data.time, "created"), read_time(row.session.created)
    used = state.copied if created is not None and began is not None and created < began else state.own
    used = state.repeated if row.copied_from else used
    used[row.session.id] = used.get(row.session.id, Used()).plus(counts.usage, found)
    return found, [BadNumber(f"message {row.id}: {issue}") for issue in issues]


def _reason(fault: Any) -> str:
    """The words of an error: v1 has them in `data`, v2 beside the type."""
    words = text(fault, "data", "message") or text(fault, "message")
    return words or text(fault, "name") or text(fault, "type") or "failed"


def _tools(parts: Iterable[Part], key: str) -> Steps:
    results = []
    for number, part in enumerate(parts):
        if part.type != "tool":
            continue
        state = mapping(part.state)
        time = mapping(state, "time") or mapping(part.time)
        start = read_time(time.get("start", time.get("ran", time.get("created"))))
        call_id = text(part.callID) or text(part.id) or str(number)
        call = f"{key}:{call_id}"
        yield ToolCall(start, call, name(part.tool) or name(part.name) or UNKNOWN, state.get("input"), id=call_id)
        status = state.get("status")
        if status in ("completed", "error"):
            end, is_error = read_time(time.get("end", time.get("completed"))), status == "error"
            failed = is_error or is_failure(state, "metadata", "exit")
            results.append(ToolResult(end, call, _output(state, is_error), failed=failed))
    yield from results


def _output(state: Json, is_error: bool) -> str:
    given = state.get("error" if is_error else "output")
    if isinstance(given, dict):
        given = _reason(given)
    return text_of(state.get("content")) if given is None else text(given)


def _is_session_folder(path: str) -> bool:
    return files.absolute_path(path).split(os.sep)[-3:-1] == ["storage", "message"]


def _list_logs(database: re.Pattern[str], place: str) -> Iterable[str | Problem]:
    if _is_session_folder(place):
        return (place,)
    return walk_files([place], lambda name: database.match(name) is not None, _folder)


def _folder(path: str) -> bool | None:
    """Whether a folder is a log itself; None for one that holds none."""
    return None if os.path.basename(path) in _NOT_WALKED else _is_session_folder(path)


def _recognises(own: str, path: str, head: bytes) -> bool:
    """Ask the database for its tables; only its name shows which agent's they are."""
    path = files.absolute_path(path)
    is_folder = files.is_directory(path)
    name = os.path.basename(path) if not is_folder else path.split(os.sep)[-4:][0]
    if next(filter(name.startswith, _OTHERS), "opencode") != own:
        return False
    tables = tables_of(path, head)
    return _is_session_folder(path) if is_folder else bool(tables & _SESSIONS and tables & _MESSAGES)


def _folders(place: str) -> Iterator[str]:
    """Yield the folders in which a log could be new; of snapshots and parts there are very many, without a log."""
    for path, names, _ in os.walk(place):
        names[:] = [one for one in names if one not in _NOT_WALKED]
        yield path


def opencode_source(id: str, title: str, own: str) -> Source:  # noqa: A002
    """Return the source of an agent that stores what opencode stores.

    Args:
        id: The source's id.
        title: Its name for people.
        own: The name of its folder and its databases.
    """
    return source(
        id=id,
        title=title,
        places=PLACES[id],
        logs="",
        list_logs=partial(_list_logs, re.compile(rf"{own}(-[A-Za-z0-9._-]+)?\.db\Z")),
        rows=whole_log(read_rows, read_rows),
        steps=steps,
        state_type=State,
        recognises=partial(_recognises, own),
        session_of=session_of,
        name_sessions=name_roots,
        is_apart=True,
        has_totals=True,
        parser_version=5,
        sidecars=sidecars,
        folders=_folders,
    )


SOURCE = opencode_source("opencode", "opencode", "opencode")
