"""gemini: Gemini CLI, a chat for each session and one for each of its sub-agents.

Where: `$GEMINI_DATA_DIR` (a comma list), else `$GEMINI_CLI_HOME/.gemini/tmp` (or `$GEMINI_CLI_HOME/tmp`), else
`~/.gemini/tmp`: `<slug or project hash>/chats/session-<minute>-<8 of the id>.json` until 2025, `.jsonl` since 2026;
`chats/<session id>/<agent id>.jsonl` for sub-agents. Chats are deleted after 30 days. `logs.json` holds prompts only;
`checkpoint-*.json`, `logs/`, `tool-outputs/` are no chats. Three forms:

- JSONL: a header, a row per message, `{"$set": {…}}` (facts of the header, or `messages`: the history as it now is),
  `{"$rewindTo": id}`. A resumed chat has another header behind the first one's messages.
- JSON: the header with all `messages` in it. One that was torn in the writing still gives its whole messages.
- What a run with `--output-format json` printed: `stats`, and never a message.

    {"id", "timestamp", "type": "user" | "gemini" | "info" | "warning" | "error", "content", "model", "thoughts",
     "tokens": {"input", "output", "cached", "thoughts", "tool", "total"},
     "toolCalls": [{"id", "name", "args", "status", "timestamp", "result", "agentId"}]}

Traps:

- A message is written again, with the same id, when its tokens or tool results come, and once more in `$set.messages`
  when old output is masked. The last row with `tokens` counts, also where its numbers are smaller: so a log is always
  read whole, and each message once, as it was in the end. `tokens: null` takes nothing back, a masked output neither.
- A message that a rewind or a compression took out of the history has been paid for: it counts.
- Resuming a `.json` chat copies it into a `.jsonl` beside it, with the same session id and message ids: the key.
- `thoughts` are not in `output` and are billed as output; `tool` is input beyond `input`; `cached` is a part of
  `input`, unless `total` shows that it was added, or it is more.
- A failed request leaves a message of type `error` with `[API Error` in it, and no tokens.
- Before 0.5 calls of tools are not logged: of two answers in a row the second has no latency.
- Finished runs hold a sum per model (`stats.models`), without times. Where the session's own chat is known as well, it
  counts and the sum does not.
- The log has only the SHA-256 of the project's path. `.project_root` in the slug's folder has the path, or
  `projects.json` beside `tmp` (`{"projects": {path: slug}}`). What kind a sub-agent is, only the parent's call of it
  has (`agentId`, `args.agent_name`).

Seen: 0.4 (JSON) and versions of 2026 (JSONL), the published recorder for those between.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from glob import escape
from itertools import chain
from typing import Any

from msgspec import Struct, field

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.events.damaged import LineProblem, find_objects, without_surrogates
from sessionlog.reader.rows import Rows
from sessionlog.sources.google_parts import results_of
from sessionlog.sources.kit import (
    LOG_SUFFIXES,
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Compaction,
    Content,
    Json,
    Problem,
    Prompt,
    Request,
    Response,
    Retention,
    Session,
    Status,
    Steps,
    Text,
    Tokens,
    TokenUsage,
    ToolCall,
    ToolResult,
    Totals,
    Typed,
    folder,
    folder_of,
    mapping,
    name,
    objects,
    read_counts,
    read_head,
    read_json,
    read_sidecar,
    read_time,
    read_whole,
    reasoning_of,
    source,
    stem_of,
    text,
    text_of,
    whole_log,
    with_pictures,
)
from sessionlog.sources.places import PLACES
from sessionlog.sources.typed import TypedRows

_ID = "gemini"
_MAX_FAILED = 10_000  # of one run: each is a record
_HEADER_ID = re.compile(rb'"(sessionId|session_id)"\s*:\s*"([^"\\]+)"')
_MESSAGES = re.compile(rb'"messages"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(strict=False)
_FACTS = ("session_id", "run_session", "project_hash", "kind", "start_time", "stats", "response", "error")
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context")
_SENT = ("totalRequests", "totalErrors")
_FAILED = ("error", "cancelled")
_DONE = ("success", *_FAILED)


class Row(Struct, rename="camel"):
    """A message, a header, or an update of both; `line` is where it stands, in a JSON document among the messages."""

    id: Any = None
    timestamp: Any = None
    type: Any = None
    content: Any = None
    display_content: Any = None
    model: Any = None
    thoughts: Any = None
    tokens: Any = None
    tool_calls: Any = None
    session_id: Any = None
    run_session: Any = field(default=None, name="session_id")
    project_hash: Any = None
    kind: Any = None
    start_time: Any = None
    stats: Any = None
    response: Any = None
    error: Any = None
    update: Any = field(default=None, name="$set")
    messages: Any = None
    line: Any = 0


class State(Struct):
    """What is known of a log from message to message; `status` is how the session stands."""

    path: str
    own_id: str = ""
    status: str | None = None


_ROW = Typed(Row)
_LINES = TypedRows(Row)


def _read(path: str) -> Iterator[Row | Problem]:
    """Yield the header, and each message as it was in the end."""
    header, messages = Row(), dict[str, Row]()
    for row in _rows(path):
        if isinstance(row, Problem):
            yield row
        elif isinstance(row.type, str):
            _add(row, messages)
        elif (update := _ROW.fit(row.update)) is not None:
            update.line = row.line
            _apply(update, header, messages, is_history=True)
        else:
            _apply(row, header, messages)
    if messages:
        header.stats = None
    if messages or header.session_id or header.stats is not None:
        yield header
        yield from messages.values()


def _rows(path: str) -> Iterator[Row | Problem]:
    if not path.endswith(LOG_SUFFIXES):
        for value in _document(path):
            row = value if isinstance(value, Problem) else _ROW.fit(value)
            if row is not None:
                yield row
        return
    with Rows(path) as rows:
        for row in chain(_LINES.read(rows), _LINES.last(rows)):
            if not isinstance(row, Problem):
                row.line = rows.line
            yield row


def _document(path: str) -> Iterator[Any]:
    """Yield the object of a JSON file, and its problems."""
    content = read_whole(path)
    if isinstance(content, Problem):
        yield content
        return
    data = content.removeprefix(b"\xef\xbb\xbf")
    value = read_json(data)
    if value is None:
        value, detail = _mend(data)
        yield Problem(path=path, kind="torn_json", detail=detail)
    yield value


def _mend(data: bytes) -> tuple[Any, str]:
    """Return the intact part of damaged JSON (an object, or header and first messages of a torn chat), and an error."""
    whole = next((item[0] for item in find_objects(data) if not isinstance(item, LineProblem)), None)
    torn = _MESSAGES.search(data)
    if whole is not None or torn is None:
        return whole, "the JSON is damaged"
    header = mapping(read_json(data[: torn.end()] + b"]}"))
    rest, at, messages = data[torn.end() :].decode("utf-8", "replace"), 0, []
    try:
        while between := _BETWEEN.match(rest, at):
            message, at = _DECODER.raw_decode(rest, between.end())
            messages.append(without_surrogates(message))
    except (ValueError, RecursionError):
        pass
    return {**header, "messages": messages}, f"the JSON breaks off after {len(messages)} messages"


def _apply(row: Row, header: Row, messages: dict[str, Row], *, is_history: bool = False) -> None:
    """Add the facts and messages of a header or an update to `header` and `messages`."""
    for fact in _FACTS:
        if getattr(header, fact) is None:
            setattr(header, fact, getattr(row, fact))
    for number, message in enumerate(map(_ROW.fit, objects(row.messages)), 1):
        if message is not None and isinstance(message.type, str):
            message.line = row.line or number
            _add(message, messages, is_history=is_history)


def _add(row: Row, messages: dict[str, Row], *, is_history: bool = False) -> None:
    """Merge a message into its earlier rows; the history's copy of it may be truncated."""
    row.id = name(row.id) or f"#{len(messages)}"
    row.tool_calls = {text(call, "id") or str(number): call for number, call in enumerate(objects(row.tool_calls))}
    known = messages.setdefault(row.id, row)
    if isinstance(row.tokens, dict):
        known.tokens, known.model = row.tokens, row.model or known.model
    if not is_history:
        known.content, known.thoughts = row.content or known.content, row.thoughts or known.thoughts
    for call_id, call in row.tool_calls.items():
        if not is_history or not _is_done(known.tool_calls.get(call_id, {})):
            known.tool_calls[call_id] = call


def steps(row: Row, state: State) -> Steps:
    """What a row means."""
    time, words = read_time(row.timestamp), text_of(row.content)
    match row.type:
        case None:
            yield from _session(row, state)
        case "user":
            yield from _prompt(time, text_of(row.display_content) or words, row.content, state)
        case "gemini":
            yield from _answer(time, words, row, state)
        case "error" if "[API Error" in words[:40]:
            state.status = "error"
            yield Response(time=time, key=f"{state.own_id}:{row.id}", failed=True, error=words)
        case "error" if state.status is None:
            yield from _stand("error", state, words)
        case "info" if words.strip().startswith("Request cancelled"):
            yield from _stand("cancelled", state)
    yield At(time)


def _stand(status: str | None, state: State, error: str = "") -> Steps:
    state.status = status
    yield Status(None, status, error)


def _session(row: Row, state: State) -> Steps:
    """The header; `stats` are those of a finished run, which is named by its file: its session has its own chat."""
    known, is_run = name(row.session_id) or name(row.run_session), isinstance(row.stats, dict)
    state.own_id = known or stem_of(state.path)
    is_part = bool(_parent(state.path)) or row.kind == "subagent"
    yield Session(
        id=_session_of(state.path),
        place=folder_of(state.path) if is_run else "",
        is_subagent_log=is_part,
        agent=_agent_kind(state.path, state.own_id) if is_part else "",
        project=_project(state.path, row.project_hash),
        provider="google",
        time=read_time(row.start_time),
    )
    if is_run:
        yield from _sums(row, f"{_ID}:{known}" if known else "")


def _sums(row: Row, superseded_by: str) -> Steps:
    yield Text(None, text(row.response))
    room = _MAX_FAILED
    for model, stats in mapping(row.stats, "models").items():
        counts = _tokens(mapping(stats, "tokens"), "prompt", "candidates")
        (requests, errors), _ = read_counts(_SENT, [*map(mapping(stats, "api").get, _SENT)])
        failed = min(errors, room)
        room -= failed
        if failed < errors:
            yield BadNumber(f"totalErrors: {errors}, of which {failed} are counted")
        yield Totals(
            time=None,
            tokens=counts,
            model=model,
            scope=model,
            requests=max(1, requests - errors) if counts.usage or requests > errors else 0,
            failed_requests=failed,
            superseded_by=superseded_by,
        )
    yield Status(None, "success" if row.error is None else "error", text(row.error, "message"))


def _prompt(time: int | None, words: str, content: Content, state: State) -> Steps:
    """A user's message: a prompt, tool results (without words), or what the agent program puts there."""
    if words.lstrip().startswith("<state_snapshot>"):
        yield Compaction(time, words)
        yield Status(None, state.status)
        return
    is_context = words.lstrip().startswith(_CONTEXT)
    if words and not is_context:
        state.status = None
    yield Prompt(time, with_pictures(words, content), role="system" if is_context else "user")


def _answer(time: int | None, words: str, row: Row, state: State) -> Steps:
    key, calls = f"{state.own_id}:{row.id}", mapping(row.tool_calls)
    yield Request(None)
    yield Response(
        time=time,
        key=key,
        tokens=_tokens(row.tokens, "input", "output") if isinstance(row.tokens, dict) else None,
        model=name(row.model),
        text=words,
        reasoning=_thoughts(row),
    )
    for call_id, call in calls.items():
        tool, server = _tool_name(name(call, "name") or UNKNOWN)
        yield ToolCall(time, f"{key}:{call_id}", tool, call.get("args"), server, id=call_id)
        if _is_done(call):
            failed = call.get("status") in _FAILED
            yield ToolResult(read_time(call, "timestamp"), f"{key}:{call_id}", _output(call), failed)
    status = "success" if words.strip() else None
    if calls:
        status = "cancelled" if all(call.get("status") == "cancelled" for call in calls.values()) else None
    yield from _stand(status, state)


def _is_done(call: Json) -> bool:
    return call.get("status") in _DONE or call.get("result") is not None


def _output(call: Json) -> Any:
    given = call.get("result")
    found = next(iter(results_of(given)), None)
    output = found.output if found else text_of(given) or text(call, "resultDisplay")
    return with_pictures(output, given) if isinstance(output, str) else output


def _thoughts(row: Row) -> str:
    pairs = ((text(one, "subject"), text(one, "description")) for one in objects(row.thoughts))
    lines = "\n".join(": ".join(filter(None, pair)) for pair in pairs)
    return lines or ("" if isinstance(row.content, str) else reasoning_of(row.content))


def _tool_name(known: str) -> tuple[str, str]:
    """Split a tool's name into (tool, MCP server): `mcp_SERVER_TOOL`, or `SERVER__TOOL` as older versions have it.

    Where a server's name has an underscore, its end is ambiguous, for the agent itself as well.
    """
    rest = known[4:].lstrip("_") if known.startswith("mcp_") else known
    separator = "_" if rest != known and "__" not in rest else "__"
    server, _, tool = rest.partition(separator)
    return (tool, server) if server and tool else (known, "")


def _tokens(data: Json, given: str, answered: str) -> Tokens:
    names = (given, answered, "cached", "thoughts", "tool", "total")
    (input_, output, cached, thoughts, tool, total), issues = read_counts(names, [*map(data.get, names)])
    is_apart = cached > input_ or total >= input_ + output + thoughts + tool + cached
    fresh = (input_ if is_apart else input_ - cached) + tool
    usage = TokenUsage(input=fresh, output=output + thoughts, cache_read=cached, reasoning=thoughts)
    return Tokens(usage, issues)


def _parent(path: str) -> str:
    """The session whose sub-agent wrote a log, by the folder it lies in; "" for a main log."""
    above, last = os.path.split(folder_of(path))
    return last if os.path.basename(above) == "chats" else ""


def _chats(path: str) -> str:
    """The folder of the main logs."""
    own = folder_of(path)
    return os.path.dirname(own) if _parent(path) else own


def _project_files(path: str) -> tuple[str, str]:
    """The two files that may have the project's path: in the slug's folder, and beside `tmp`."""
    home = os.path.dirname(_chats(path))
    return os.path.join(home, ".project_root"), os.path.join(os.path.dirname(os.path.dirname(home)), "projects.json")


def _project(path: str, project_hash: Any) -> str:
    """The project's absolute path; "" when no file has it."""
    from hashlib import sha256

    marker, registry = _project_files(path)
    found = folder(read_sidecar(marker).decode("utf-8", "replace").strip())
    names = (os.path.basename(os.path.dirname(marker)), project_hash)  # a hostile one need not be hashable
    for known, slug in mapping(mapping(read_json(read_sidecar(registry))).get("projects")).items():
        if slug == names[0] or sha256(known.encode("utf-8", "replace")).hexdigest() in names:
            found = found or folder(known)
    return found


def _logs_of_parent(path: str) -> list[str]:
    """The logs of the session whose sub-agent wrote a log: a resumed one has several."""
    names = f"session-*-{escape(_parent(path)[:8])}.jsonl*"
    return files.find_paths(_chats(path), names) if _parent(path) else []


def _subagent_logs(path: str) -> list[str]:
    """The logs of a session's sub-agents."""
    session_id = _session_of(path)
    found = files.find_paths(_chats(path), "*", "*.jsonl*")
    return [log for log in found if _parent(log) == session_id]


def _agent_kind(path: str, agent_id: str) -> str:
    """The kind of a sub-agent, from the log of its parent."""
    for log in _logs_of_parent(path):
        try:
            with Rows(log) as rows:
                for row in rows.all(lambda line: b'"agentId"' in line):
                    for call in objects(row, "toolCalls"):
                        kind = name(call, "args", "agent_name") or name(call, "name")
                        if call.get("agentId") == agent_id and kind:
                            return kind
        except (LogNotReadable, MissingExtra):
            continue
    return SUB_AGENT


def _is_chat(file_name: str) -> bool:
    return file_name.endswith(LOG_SUFFIXES) or (file_name.startswith("session-") and file_name.endswith(".json"))


def _recognises(path: str, head: bytes) -> bool:
    """A header with the session's id and the project's hash, a message's row, or a run's sums."""
    if b'"projectHash"' in head and b'"sessionId"' in head:
        return True
    if b'"stats"' in head and b'"models"' in head and b'"candidates"' in head:
        return not path.endswith(LOG_SUFFIXES)
    return path.endswith(LOG_SUFFIXES) and re.search(rb'"type"\s*:\s*"gemini"', head) is not None


def _session_of(path: str) -> str:
    """The parent's id of a sub-agent's log, the id in a chat's header, or the name of a run's file."""
    if _parent(path):
        return _parent(path)
    found = _HEADER_ID.search(read_head(path))
    known = found.group(2).decode("utf-8", "replace") if found else ""
    is_chat = found is not None and found.group(1) == b"sessionId"
    return known if is_chat else os.path.basename(path) if stem_of(path) == known else stem_of(path)


SOURCE = source(
    id=_ID,
    title="Gemini CLI",
    places=PLACES["gemini"],
    logs=_is_chat,
    not_logs=r"[/\\](logs|tool[-_]outputs?|checkpoints|plans|tracker|tasks)[/\\]",
    rows=whole_log(_read),
    steps=steps,
    state=State,
    state_type=State,
    recognises=_recognises,
    session_of=_session_of,
    subagent_of=lambda path: stem_of(path) if _parent(path) else "",
    harness="gemini-cli",
    has_totals=True,
    parser_version=4,
    retention=lambda _: Retention(days=30, setting="general.sessionRetention.maxAge in ~/.gemini/settings.json"),
    sidecars=lambda path: (*_project_files(path), *_logs_of_parent(path)),
    subagent_logs=_subagent_logs,
)
