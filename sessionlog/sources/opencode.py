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
- A fork copies messages under new ids, Kilo with a cost of 0, and names no parent: copies are older than their session.
  The move to the database left the files where they were. The key is what such copies keep.
- A session with a parent is a sub-agent's, and sub-agents have sub-agents: all of them belong to the first ancestor.
- A message that was cut off has tokens but no time of completion; one without tokens, end and error was interrupted.
- A message is complete when its tools have run; the model had answered when the last of them began.
- A command that failed is `completed`; its exit code is in `state.metadata.exit`.
- Calls that the agent does not store, such as those for titles, cannot be counted.

Seen: 0.x files, 1.2 to 1.18 databases, v2 tables with and without v1.
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
    cost,
    fingerprint,
    first_words,
    folder,
    is_failure,
    mapping,
    name,
    read_time,
    source,
    text,
    text_of,
    tokens,
    walk_files,
    whole_log,
)
from sessionlog.sources.opencode_rows import Part, Row, name_roots, read_rows, session_of, sidecars
from sessionlog.sources.places import PLACES

_ENDS = {"stop": "success", "end_turn": "success", "end-turn": "success"}
_SESSIONS, _MESSAGES = {"session", "session_v2"}, {"message", "session_message"}
_NOT_WALKED = frozenset({"part", "snapshot", "log", "bin", "repos", "tool-output", "node_modules", ".git"})
_ABORTED = {"MessageAbortedError", "aborted"}
_OTHERS = ("kilo", "mimocode")


class State(Struct):
    """The sessions that have begun."""

    begun: set[str] = set()


def steps(row: Row, state: State) -> Steps:
    """What a message means."""
    yield _session(row, state)
    created = read_time(row.data.time, "created")
    if row.role == "assistant" and not row.copied_from:
        yield from _answer(row, created)
    elif row.role in {"user", "assistant"}:
        yield from _prompts(row, created)
    elif row.role == "compaction":
        yield Compaction(created, text(row.data.summary))
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


def _prompts(row: Row, created: int | None) -> Steps:
    """A user's words, and what the agent has put beside them; or what a fork has copied of an answer."""
    is_copy = bool(row.copied_from)
    if not is_copy:
        yield Status(created, None)
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


def _answer(row: Row, created: int | None) -> Steps:
    data = row.data
    completed = read_time(data.time, "completed")
    model = mapping(data.model)
    provider = name(data.providerID) or name(model, "providerID") or UNKNOWN
    model_name = name(data.modelID) or name(model, "id") or UNKNOWN
    counts = _tokens(row)
    key = fingerprint(created or row.id, completed, model_name, provider, counts.usage)
    error = _reason(data.error) if data.error else ""
    is_aborted = bool(_ABORTED & {text(data.error, "name"), text(data.error, "type")})
    words = _words(row.parts)
    yield Request(created)
    yield Text(None, words, _words(row.parts, is_reasoning=True))
    yield from _tools(row.parts, key)
    if not (counts.usage or completed or error):
        return  # it has just begun, or was interrupted
    cost_nano, issues = _cost(row)
    yield from (BadNumber(f"message {row.id}: {issue}") for issue in issues)
    yield Response(
        time=completed or created, key=key, tokens=counts, provider=provider, model=model_name, cost_nano=cost_nano,
        finish="aborted" if is_aborted else text(data.finish), failed=bool(error) and not is_aborted, error=error,
        quality="exact" if counts.usage or error else "partial", final=True,
    )  # fmt: skip
    if data.summary is True:
        yield Compaction(completed or created, words)
    if is_aborted or not error:
        yield Status(completed or created, "cancelled" if is_aborted else _ENDS.get(text(data.finish)))


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


def _cost(row: Row) -> tuple[int | None, tuple[str, ...]]:
    """What a message cost without its sub-agents; 0 is unknown."""
    whole, issues = cost(row.data.cost)
    own = sum(cost(part.cost)[0] or 0 for part in row.parts if part.type == "step-finish")
    return own or whole or None, issues


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
        parser_version=3,
        sidecars=sidecars,
        folders=_folders,
    )


SOURCE = opencode_source("opencode", "opencode", "opencode")
