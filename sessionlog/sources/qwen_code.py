"""qwen-code: Qwen Code, a chat for each session and a transcript for each of its sub-agents.

Where: `$QWEN_DATA_DIR` (a comma list; an entry may be `projects` itself), else `$QWEN_RUNTIME_DIR`, else `$QWEN_HOME`,
else `~/.qwen`: `projects/<cwd with ->/chats/<session id>.jsonl` (early versions `tmp/<hash>/chats/`), and
`projects/<p>/subagents/<session id>/agent-<id>.jsonl` with `agent-<id>.meta.json` for sub-agents.

Rows, appended only: `uuid`, `parentUuid`, `sessionId`, `timestamp`, `type` (user, assistant, tool_result, system),
`cwd`, `version`, `gitBranch`; `message` (a content of Google's API, see `google_parts`), for answers `model` and
`usageMetadata`, for tool results `toolCallResult` {callId, status, durationMs}. System rows have `subtype` and
`systemPayload`: `ui_telemetry` (`uiEvent`: api_response, api_error, tool_call), `chat_compression`, `turn_result`
(state: completed, cancelled, error), `parent_session`, `session_model`.

Token counts have Google's names, filled by four kinds of provider that do not mean the same. `promptTokenCount`
includes what came from a cache. `candidatesTokenCount` includes the thoughts where an OpenAI-compatible or
Anthropic-compatible service answered, which is nearly always, and excludes them where Google's own API did:
`totalTokenCount` is prompt + candidates in the first case and prompt + candidates + thoughts in the second. Without a
usable total the thoughts are inside, unless there are more of them than candidates. Services that report only a total
get it as input, marked `estimated`. Cache writes are not logged apart: they stay in the input.

Traps:

- A row's `uuid` alone is its key: a branched session copies the rows, uuids included, under its own session id and
  names the original in `forkedFrom`. Such a copy counts only while the original is not there.
- In a sub-agent's transcript a response with text has its usage on the text's row; its tool calls follow as rows of
  their own without usage, and a response without any text leaves no usage there at all. Every call of a sub-agent is in
  the main log's telemetry, too: it counts where the transcript has no response of the same counts.
- Until 0.12 there are no transcripts: a sub-agent's calls of the model and of tools are in the telemetry alone, which
  does not name it: `prompt_id` does, as `<session>#<kind>-<id>#<number>`. In 0.24 a transcript's rows have no model: it
  is in the file beside it.
- Latency stands in telemetry only, just before the answer; matched by the counts.
- A row without `usageMetadata` is no request of its own; in a main log it is an answer that was cut off.

Provider: `qwen`, unless the log's `auth_type` names Google or Anthropic. Seen: 0.5 to 0.24; chats that
older versions wrote in Gemini CLI's JSON form are not looked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from sessionlog import files
from sessionlog.sources.google_parts import calls_of, results_of
from sessionlog.sources.kit import (
    LOG_SUFFIXES,
    MAIN,
    SUB_AGENT,
    UNKNOWN,
    At,
    Compaction,
    CopyRank,
    Json,
    Prompt,
    Request,
    Response,
    Session,
    Status,
    Step,
    Steps,
    Tokens,
    TokenUsage,
    ToolCall,
    ToolResult,
    folder,
    folder_of,
    json_lines,
    mapping,
    name,
    read_counts,
    read_duration,
    read_head,
    read_json,
    read_sidecar,
    read_time,
    reasoning_of,
    source,
    stem_of,
    text,
    text_of,
)
from sessionlog.sources.places import PLACES

_COUNTS = (
    "promptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "totalTokenCount",
)
_TELEMETRY_COUNTS = (
    "input_token_count",
    "cached_content_token_count",
    "output_token_count",
    "thoughts_token_count",
    "tool_token_count",
    "total_token_count",
)
_PROVIDERS = {"gemini": "google", "vertex-ai": "google", "gemini-api-key": "google", "anthropic": "anthropic"}
_STATES = {"completed": "success", "cancelled": "cancelled", "error": "error"}
_TYPED = ("", "mid_turn_user_message", "realtime_message")
_REMEMBERED = 8  # telemetry comes just before its answer
_HEADER_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')
_SUB_AGENT_PROMPT = re.compile(r"#([^#]+)-[^#-]+#\d+\Z")


class Row(Struct, rename="camel"):
    """A line."""

    uuid: Any = None
    session_id: Any = None
    timestamp: Any = None
    type: Any = None
    subtype: Any = None
    cwd: Any = None
    version: Any = None
    git_branch: Any = None
    model: Any = None
    provider: Any = None
    message: Any = None
    usage_metadata: Any = None
    tool_call_result: Any = None
    system_payload: Any = None
    forked_from: Any = None
    is_sidechain: Any = None
    agent_id: Any = None
    agent_name: Any = None


class State(Struct):
    """What is known of a log from row to row.

    Attributes:
        session: The session's id.
        kind: The kind of sub-agent whose transcript it is.
        model: The model that the sub-agent was started with.
        facts: The last `Session` step.
        auth: How the service is reached.
        calls: A call's id → its key, until its result comes.
        coming: Counts of a response that is about to come → the duration of its call, and the provider's id of it.
    """

    session: str
    kind: str
    model: str
    facts: Session | None = None
    auth: str = ""
    calls: dict[str, str] = {}
    coming: dict[str, tuple[float | None, str]] = {}


def _begin(path: str) -> State:
    meta = mapping(read_json(read_sidecar(_meta_path(path))))
    model = name(meta, "persistedCliFlags", "model") or name(meta, "model")
    return State(_session_of(path), name(meta, "agentType") or SUB_AGENT, model)


def steps(row: Row, state: State) -> Steps:
    """What a line means."""
    time, payload = read_time(row.timestamp), mapping(row.system_payload)
    yield from _facts(row, payload, state)
    yield At(time)
    content = mapping(row.message).get("parts")
    event = mapping(payload, "uiEvent")
    read_event = _EVENTS.get(text(event, "event.name").rpartition(".")[2])
    if read_event is not None:
        state.auth = name(event, "auth_type") or state.auth
        yield from read_event(row, event, time, state)
    elif row.type == "user":
        is_typed = (row.subtype or "") in _TYPED
        words = (text(payload, "displayText") if is_typed else "") or text_of(content)
        yield Prompt(time, words, role="user" if is_typed else "system")
    elif row.type == "assistant":
        yield from _answer(row, content, time, state)
    elif row.type == "tool_result":
        yield from _results(mapping(row.tool_call_result), content, time, state)
    elif row.subtype == "turn_result" and text(payload, "state") in _STATES:
        yield Status(time, _STATES[payload["state"]], text(payload, "error", "message"))
    elif row.subtype == "chat_compression":
        info = mapping(payload, "info")
        sizes = {"tokens_before": info.get("originalTokenCount"), "tokens_after": info.get("newTokenCount")}
        yield Compaction(time, facts=sizes)


def _facts(row: Row, payload: Json, state: State) -> Iterator[Session]:
    """Whose row it is, where that is not what it was."""
    is_side = row.is_sidechain is True
    state.auth = name(payload, "authType") or state.auth
    if state.facts is None:
        state.session = name(row.session_id) or state.session
    facts = Session(
        id=state.session,
        is_subagent_log=is_side or None,
        agent=name(row.agent_name) or state.kind if is_side or row.agent_id is not None else MAIN,
        parent=name(row.forked_from, "sessionId") or name(payload, "parentSessionId"),
        inherited=isinstance(row.forked_from, dict),
        project=folder(row.cwd),
        branch=name(row.git_branch),
        version=name(row.version),
        provider="qwen",
        model="" if state.facts else state.model,
    )
    if facts != state.facts:
        state.facts = facts
        yield facts


def _api_response(row: Row, event: Json, time: int | None, state: State) -> Steps:
    """A sub-agent's call of the model; of the agent's own calls, which have rows besides, only the duration is new."""
    numbers, issues = read_counts(_TELEMETRY_COUNTS, [*map(event.get, _TELEMETRY_COUNTS)])
    duration_ms, response_id = read_duration(event.get("duration_ms")), name(event, "response_id")
    if _agent_of(event):
        response = _response(row, event, time, state)
        response.tokens, response.quality = _tokens(numbers, issues)
        response.rank, response.family = int(CopyRank.EMBEDDED), _family(row, numbers, state)
        response.text, response.response_id = text(event, "response_text"), response_id
        yield from _by_agent(event, response)
    else:
        coming = {**state.coming, _fingerprint(numbers): (duration_ms, response_id)}
        state.coming = dict(list(coming.items())[-_REMEMBERED:])


def _api_error(row: Row, event: Json, time: int | None, state: State) -> Steps:
    """A failed call of the model, unless the user has stopped it."""
    kind = text(event, "error_type")
    if "abort" not in kind.lower():
        response = _response(row, event, time, state)
        response.failed, response.error = True, text(event.get("error_message", event.get("error"))) or kind
        yield from _by_agent(event, response)
    elif not _agent_of(event):
        yield Status(time, "cancelled")


def _tool_call(row: Row, event: Json, time: int | None, _: State) -> Steps:
    """A sub-agent's call of a tool, in versions without transcripts: they do not log its id here."""
    key, tool = name(row.uuid), name(event, "function_name") or UNKNOWN
    if key and _agent_of(event) and not event.get("call_id"):
        size = event.get("content_length")
        result = ToolResult(time, key, failed=event.get("success") is False, size=size if type(size) is int else None)
        result.duration_ms = read_duration(event.get("duration_ms"))
        yield from _by_agent(event, ToolCall(time, key, tool, event.get("function_args")), result)


_EVENTS = {"api_response": _api_response, "api_error": _api_error, "tool_call": _tool_call}


def _agent_of(event: Json) -> str:
    """The kind of sub-agent that an event is of; "" for the agent itself."""
    found = _SUB_AGENT_PROMPT.search(text(event, "prompt_id"))
    kind = name(event, "subagent_name") or (found[1] if found else "")
    return "" if kind == MAIN else kind


def _by_agent(event: Json, *steps: Step) -> Steps:
    """Yield steps in the thread of the agent that an event is of."""
    agent = _agent_of(event)
    if agent:
        yield Session(thread=text(event, "prompt_id").rpartition("#")[0] or agent, agent=agent)
    yield from steps
    if agent:
        yield Session(thread="")


def _response(row: Row, event: Json, time: int | None, state: State) -> Response:
    return Response(
        time=time,
        key=name(row.uuid),
        rank=int(CopyRank.SIDECHAIN if isinstance(row.forked_from, dict) else CopyRank.ORIGINAL),
        provider=name(row.provider) or _PROVIDERS.get(state.auth, "qwen"),
        model=name(row.model) or name(event, "model"),
        latency_ms=read_duration(event.get("duration_ms")),
    )


def _answer(row: Row, content: Any, time: int | None, state: State) -> Steps:
    calls, is_side = list(calls_of(content)), bool(state.facts and state.facts.agent != MAIN)
    is_counted = isinstance(row.usage_metadata, dict)
    if is_counted or not is_side or text_of(content):
        response = _response(row, {}, time, state)
        response.text, response.reasoning = text_of(content), reasoning_of(content)
        if is_counted:
            numbers, issues = read_counts(_COUNTS, [*map(row.usage_metadata.get, _COUNTS)])
            response.tokens, response.quality = _tokens(numbers, issues)
            known = state.coming.pop(_fingerprint(numbers), (None, ""))
            response.latency_ms, response.response_id = known
            response.family = _family(row, numbers, state) if is_side else ""
        yield Request(None)
        yield response
        if is_counted and not calls and text_of(content).strip():
            yield Status(time, "success")
    for call in calls:
        call_id = text(call, "id")
        state.calls[call_id] = f"{name(row.uuid) or state.session}:{call_id}"
        yield ToolCall(time, state.calls[call_id], name(call, "name") or UNKNOWN, call.get("args"), id=call_id)


def _results(facts: Json, content: Any, time: int | None, state: State) -> Steps:
    found = list(results_of(content))
    duration_ms = read_duration(facts.get("durationMs")) if len(found) == 1 else None
    status = text(facts, "status")
    for result in found:
        failed = result.failed or status in ("error", "cancelled")
        yield ToolResult(time, state.calls.pop(result.id, result.id), result.output, failed, duration_ms)
    yield Status(time, "cancelled" if status == "cancelled" else None)


def _family(row: Row, numbers: Sequence[int], state: State) -> str:
    """What a response in a transcript and the same one in the telemetry have in common."""
    return f"{name(row.forked_from, 'sessionId') or state.session}:{_fingerprint(numbers)}"


def _fingerprint(numbers: Sequence[int]) -> str:
    prompt, cached, candidates, thoughts, _, total = numbers
    return f"{prompt}:{cached}:{candidates}:{thoughts}:{total}"


def _tokens(numbers: Sequence[int], issues: tuple[str, ...]) -> tuple[Tokens, Any]:
    """Return the counts in disjoint classes, and how exact they are."""
    prompt, cached, candidates, thoughts, tool, total = numbers
    if total and not (prompt or candidates or cached or thoughts):
        return Tokens(TokenUsage(input=total), issues), "estimated"
    inside = {prompt + candidates, prompt + tool + candidates}
    is_inside = total in inside and thoughts <= candidates
    is_apart = not is_inside and (total - thoughts in inside or thoughts > candidates)
    usage = TokenUsage(
        input=(prompt if cached > prompt else prompt - cached) + tool,
        output=candidates + thoughts if is_apart else candidates,
        cache_read=cached,
        reasoning=thoughts,
    )
    return Tokens(usage, issues), "exact"


def _session_of(path: str) -> str:
    """The session by the path of a log: a transcript lies in a folder named for it."""
    return os.path.basename(folder_of(path)) if _is_transcript(path) else stem_of(path)


def _is_transcript(path: str) -> bool:
    return os.path.basename(os.path.dirname(folder_of(path))) == "subagents"


def _meta_path(path: str) -> str:
    return os.path.join(os.path.dirname(path), f"{stem_of(path)}.meta.json")


def _subagent_logs(path: str) -> list[str]:
    """The transcripts of a session's sub-agents; none for those of a sub-agent."""
    chats = folder_of(path)
    folder = os.path.join(os.path.dirname(chats), "subagents", stem_of(path))
    return files.find_paths(folder, "*.jsonl*") if os.path.basename(chats) == "chats" else []


def _recognises(path: str, head: bytes) -> bool:
    """Rows with a content of Google's API in a chain of uuids, or with its usage."""
    if not path.endswith(LOG_SUFFIXES) or b'"sessionId"' not in head or b'"projectHash"' in head:
        return False
    is_chain = b'"parentUuid"' in head and any(key in head for key in (b'"parts"', b'"systemPayload"', b'"uiEvent"'))
    return is_chain or b'"usageMetadata"' in head


def _name_sessions(path: str) -> Iterable[str]:
    """The id in the rows, which for a transcript is that of the session."""
    found = _HEADER_ID.search(read_head(path))
    session_id = found.group(1).decode("utf-8", "replace") if found else _session_of(path)
    return (f"{session_id}/{stem_of(path)}" if _is_transcript(path) else session_id,)


SOURCE = source(
    id="qwen-code",
    title="Qwen Code",
    places=PLACES["qwen-code"],
    logs="*.jsonl",
    not_logs=r"\A(?!.*[/\\](?:chats|subagents)[/\\])[/\\].*[/\\]",  # what is in other folders
    rows=json_lines(Row),
    steps=steps,
    state=_begin,
    state_type=State,
    recognises=_recognises,
    session_of=_session_of,
    name_sessions=_name_sessions,
    parser_version=4,
    sidecars=lambda path: (_meta_path(path),),
    subagent_logs=_subagent_logs,
)
