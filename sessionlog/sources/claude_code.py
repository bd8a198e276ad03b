"""claude-code: the transcripts of Claude Code, one JSONL file for each session and one for each of its sub-agents.

Where: `projects` in each folder of `$CLAUDE_CONFIG_DIR` (a list with commas; an entry may be `projects` itself), else
in both `$XDG_CONFIG_HOME/claude` and `~/.claude`; `transcripts` beside it; and in the desktop app's
`Claude/local-agent-mode-sessions`. There: `<slug>/<session>.jsonl`, `<slug>/<session>/subagents/**/agent-<id>.jsonl`
with its kind in `agent-<id>.meta.json`, formerly `<slug>/agent-<id>.jsonl`. The `journal.jsonl` of a workflow is none.
Logs are deleted after `cleanupPeriodDays`.

Shape: a row for each content block, `{"parentUuid","isSidechain","cwd","sessionId","version","gitBranch",…}` and
`message`, in the API's own words. The rows of one response share `message.id` and `requestId` and repeat its input;
only the last one has its output (some versions never write it: such a response is `partial`, as is an aborted one).

Since 2.1.300 the log holds what requests sent: `prompt_snapshot` attachments (system prompt and tools from there on),
and for some requests all of it: `api-request-shape` (system, tools), `api-request-blob` (a message that is no answer)
and `api-request` (the first `keep` messages of its `base`, then those of `tail`, by hash), which its response names in
`requestRef`. Only replay and context read these.

Traps:

- Copies. Up to 2.0.14 resumed and forked sessions repeat earlier rows in a new file, with new ids and times and without
  a request id. Later forks repeat them as they were, but for the session id (user rows of 2.0.30 keep it: it names the
  parent). Their file begins with a `queue-operation` that is later than the copied rows, and newer ones have the
  session of a copied response in its `requestSessionId`. Copies count where no other file has the original. A side
  question repeats its parent's rows as a sidechain, with other request ids. Gateways give no request id at all, and
  some of them one message id to all answers (`claude_keys`).
- The second compaction of a process writes the earlier rows again, as they were. They mean nothing.
- `agent_progress` rows embed a sub-agent's rows in its parent's log, often half-way; sometimes no other log has them.
- The result of a sub-agent's call has the sub-agent's totals: they are in its own log.
- `usage.iterations` lists what one request ran. What an advisor or a compaction used is not in the counts of the usage:
  each is a response of its own, which belongs to that of the row.
- Searches are those of the provider's tool (`usage.server_tool_use`); calls of a tool named so are not charged.
- The model `<synthetic>` marks the CLI's own notices; with `isApiErrorMessage` it is a failed request (of the model in
  the `api-request` row before it), else nothing. `api_error` rows are retries, which are not billed.
- Cache writes are logged flat and split by duration, and either may be zero.
- A compaction makes requests without rows. `cost-state` rows sum up a process, its compactions and sub-agents (and a
  fork's parent) included: what the sum grew by beyond the responses since the last one is the compaction's, as one
  request. It is not known where a sub-agent ran meanwhile, in a fork before its first `cost-state`, or after a kill.
- `costUSD` and `durationMs` are logged until 1.0.9. Exporters space their JSON and write times as numbers.
- A row of a sub-agent names its parent's session. A sub-agent that warms up while a session is resumed begins with
  another id (2.0.65).
- `attributionMcpServer` (since 2.1.227) stays on later requests of a turn, like `attributionSkill` and
  `attributionPlugin`: what they name is what the CLI charges a request to, not only the request that calls it.
- Prompts wait in `queue-operation` rows (2.1.61 has their text): a session that is killed at once has nothing else.

Seen: 1.0 to 2.1.330.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.events.tokens import TokenUsage
from sessionlog.hashes import blake2b, hash_with
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.sources.claude_keys import Unnamed, copies_have_new_times, key_of
from sessionlog.sources.find_places import expand_places
from sessionlog.sources.kit import (
    MAIN,
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Compaction,
    Content,
    CopyRank,
    Problem,
    Prompt,
    PromptPart,
    Response,
    SentRequest,
    Session,
    Status,
    Step,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    cost,
    folder,
    json_lines,
    mapping,
    measure,
    name,
    read_duration,
    read_head,
    read_inner,
    read_json,
    read_region,
    read_searches,
    read_sidecar,
    read_speed,
    read_tier,
    read_time,
    source,
    stem_of,
    text_of,
    tokens,
)
from sessionlog.sources.places import CLAUDE_DESKTOP, PLACES, claude_code
from sessionlog.sources.protocol import Retention
from sessionlog.sources.record import server_of
from sessionlog.sources.values import read_counts

_PROVIDER = "anthropic"
_NO_REGION = (None, "", "not_available")  # of most responses
_NO_SEARCHES = {"web_search_requests": 0, "web_fetch_requests": 0}
_SYNTHETIC = "<synthetic>"
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]+)"')
_RETENTION_DAYS = 30
_ENDS = ("end_turn", "stop_sequence")
_DELEGATES = frozenset({"Agent", "Task", "Skill", "Workflow", "SendMessage"})
"""Tools that may run a sub-agent."""
_FEW_TOKENS = 10
_LONGEST_TOKEN = 16  # bytes; on average no text has tokens longer than that
_HEAD_ROWS = 40
_MOST_WRITTEN = 4096  # uuids
_NO_SEED = blake2b(digest_size=8)
_INTERRUPTED = "[Request interrupted"
_WRAPPED = re.compile(
    r"\s*(?:<(?:command-|local-command-|bash-|system-reminder|ide_|user-prompt-submit-hook|task-notification)"
    r"|Caveat: The messages below|\[Request interrupted)"
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_OWN_KEYS = re.compile(rb'"isSidechain"\s*:\s*(?:true|false)')
_SNAPSHOT = re.compile(rb'\s*\{\s*"type"\s*:\s*"file-history-snapshot"')
_PICTURES = ("image", "document")
_COUNTS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
    "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "thinking_tokens",
)  # fmt: skip
_EMBEDDED, _SIDECHAIN, _COPIED, _ORIGINAL = map(int, CopyRank)
_NO_TOKENS = TokenUsage()
_NOTHING = Raw()


class Split(Struct, gc=False):
    """The cache writes of a response by how long they are kept."""

    ephemeral_5m_input_tokens: Any = 0
    ephemeral_1h_input_tokens: Any = 0


_NO_SPLIT = Split()


class Details(Struct, gc=False):
    """What the output of a response is made of."""

    thinking_tokens: Any = 0


class Usage(Struct, gc=False):
    """The tokens of a response as far as one row has them."""

    input_tokens: Any = 0
    cache_creation_input_tokens: Any = 0
    cache_read_input_tokens: Any = 0
    cache_creation: Split | None = None
    output_tokens: Any = 0
    service_tier: Any = None
    speed: Any = None
    server_tool_use: Any = None
    inference_geo: Any = None
    iterations: Any = None
    output_tokens_details: Details | None = None


class Block(Struct, gc=False):
    """A content block: text, thinking, a tool's call or result, a picture."""

    tool_use_id: Any = None
    type: Any = None
    text: Raw = _NOTHING
    thinking: Raw = _NOTHING
    id: Any = None
    name: Any = None
    input: Raw = _NOTHING
    content: Raw = _NOTHING
    is_error: Any = None
    source: Raw = _NOTHING


class Message(Struct, gc=False):
    """A message in the API's words."""

    model: Any = None
    id: Any = None
    content: list[Block] | str | None = None
    stop_reason: Any = None
    usage: Usage | str | int | float | list[Any] | bool | None = None


_NO_MESSAGE = Message()


class Echo(Struct, rename="camel", gc=False):
    """A sub-agent's row that a progress row embeds."""

    type: Any = None
    timestamp: Any = None
    message: Message | None = None
    request_id: Any = None
    uuid: Any = None
    is_api_error_message: Any = None
    is_aborted_mid_stream: Any = None


class Data(Struct, rename="camel", gc=False):
    """The progress of a tool."""

    type: Any = None
    message: Echo | None = None
    agent_id: Any = None


class Attachment(Struct, gc=False):
    """What the CLI adds to a conversation."""

    type: Any = None
    identity: Any = None


class Params(Struct, gc=False):
    """The parameters of a request."""

    model: Any = None


class Row(Struct, rename="camel", gc=False):
    """A line. Its fields are in the order of most lines: they are decoded faster so."""

    is_sidechain: Any = None
    cwd: Any = None
    session_id: Any = None
    version: Any = None
    git_branch: Any = None
    agent_id: Any = None
    message: Message | None = None
    request_id: Any = None
    type: Any = None
    data: Data | str | int | float | list[Any] | bool | None = None
    uuid: Any = None
    timestamp: Any = None
    subtype: Any = None
    agent_type: Any = None
    attribution_agent: Any = None
    attribution_skill: Any = None
    attribution_plugin: Any = None
    attribution_mcp_server: Any = None
    forked_from: Any = None
    request_session_id: Any = None
    is_api_error_message: Any = None
    is_aborted_mid_stream: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    api_block_index: Any = None
    cost_usd: Any = msgspec.field(default=None, name="costUSD")
    duration_ms: Any = None
    compact_metadata: Any = None
    params: Params | None = None
    attachment: Attachment | None = None
    model_usage: Any = None
    content: Any = None


class FullBlock(Block, omit_defaults=True, gc=False):
    """A content block that is written back as it was, but for what no text is made of."""


class FullMessage(Message, omit_defaults=True, gc=False):
    """A message that a request sent."""

    role: Any = None
    content: list[FullBlock] | str | None = None  # type: ignore[assignment]


class FullAttachment(Attachment, rename="camel", gc=False):
    """What the CLI adds to a conversation, the system prompt and tools among it."""

    system_prompt: Raw = _NOTHING
    tools: Raw = _NOTHING


class Shape(Struct, gc=False):
    """The system prompt and tools of requests."""

    system: Raw = _NOTHING
    tools: Raw = _NOTHING


class FullRow(Row, rename="camel", gc=False):
    """A line with what requests sent (since 2.1.300), which reports do not need."""

    message: FullMessage | None = None
    attachment: FullAttachment | None = None
    request_ref: Any = None
    id: Any = None
    hash: Any = None
    shape_hash: Any = None
    shape: Shape | None = None
    base: Any = None
    keep: Any = None
    tail: Any = None


class State(Struct):
    """What is known of a log from row to row.

    Attributes:
        session: The session that the log's place and name give.
        is_part: The log is a sub-agent's.
        is_id: The log's name is a session's id, so rows of another session are copies.
        kind: The kind of sub-agent, as the file beside the log has it.
        head: The facts of the last row; most rows of a log have the same.
        began: The time of the `queue-operation` that the log begins with, else 0: what is older is copied.
        queued: The prompt in it, until a row of the session itself.
        is_old: The last row is older than that.
        is_copy: The last row was copied from another session.
        has_copies: Some row was.
        parent: The session that the last copy came from, as far as it is known.
        model: The last model that was asked for or answered.
        is_summed: The log has `cost-state` rows, or will have.
        key: The response of the last row.
        usage: Its tokens.
        inside: Those of the responses inside it.
        logged: The last token counts as they were logged.
        counts: As they were read.
        visible: Bytes of its text so far, while its count of output is a placeholder.
        used: What the responses before it used since the last `cost-state`.
        total: What that summed up; None before the first one.
        compacted: (uuid, time) of a compaction since then.
        has_delegated: A sub-agent may have run since then.
        unnamed: Thread → its last response, if that has no request id.
        written: Hashes of the uuids of prompts and compactions, the latest of them.
        newest: The latest time of a row.
        repeated: Rows up to this time are written again; None = they are not.
    """

    session: str
    is_part: bool
    is_id: bool
    kind: str = ""
    head: tuple[Any, ...] = ()
    began: int | None = None
    queued: str = ""
    is_old: bool = False
    is_copy: bool = False
    has_copies: bool = False
    parent: str = ""
    model: str = ""
    is_summed: bool = False
    key: str = ""
    usage: TokenUsage = _NO_TOKENS
    inside: TokenUsage = _NO_TOKENS
    logged: Usage | None = None
    counts: Tokens | None = None
    visible: int = 0
    used: TokenUsage = _NO_TOKENS
    total: TokenUsage | None = None
    compacted: tuple[str, int | None] | None = None
    has_delegated: bool = False
    unnamed: dict[str, Unnamed] = {}
    written: dict[int, None] = {}
    newest: int = 0
    repeated: int | None = None


def _begin(path: str) -> State:
    session, is_part = _session_of(path), _is_part(path)
    kind = name(mapping(read_json(read_sidecar(_description(path)))).get("agentType")) if is_part else ""
    return State(session, is_part, _UUID.match(session) is not None, kind)


def steps(row: Row, state: State) -> Iterable[Step]:
    """What a line means."""
    kind = row.type
    if kind == "assistant" or (kind is None and row.message is not None and row.message.usage is not None):
        return _assistant(row, state)
    if kind == "user":
        return _user(row, state)
    if kind == "progress":
        return _progress(row, state)
    if kind == "system":
        return _system(row, state)
    if kind == "cost-state":
        return _compaction_request(row, state)
    if kind == "api-request":
        state.is_summed = True
        state.model = (name(row.params.model) if row.params is not None else "") or state.model
    if type(row) is FullRow and (sent := _sent(row)) is not None:
        return (sent,)
    if kind == "attachment" and row.attachment is not None and row.attachment.type == "model":
        state.model = name(row.attachment.identity, "modelId") or state.model
    elif kind == "queue-operation" and state.began is None:
        state.began, state.queued = read_time(row.timestamp), text_of(row.content)
    return ()


def _sent(row: FullRow) -> Step | None:
    """Return the step of a row that holds requests or their pieces; None for any other row."""
    match row.type:
        case "api-request" if type(row.keep) is int and isinstance(row.tail, list):
            keys = tuple(map(str, row.tail))
            return SentRequest(name(row.id), name(row.base), max(0, row.keep), keys, name(row.shape_hash))
        case "api-request-blob" if row.message is not None:
            return PromptPart(name(row.hash), message=Raw(msgspec.json.encode(row.message)))
        case "api-request-shape" if row.shape is not None and name(row.shape_hash):
            return PromptPart(name(row.shape_hash), system=row.shape.system, tools=row.shape.tools)
        case "attachment" if row.attachment is not None and row.attachment.type == "prompt_snapshot":
            return PromptPart("", system=row.attachment.system_prompt, tools=row.attachment.tools)
    return None


def _is_repeated(row: Row, state: State, time: int | None) -> bool:
    """Whether a row is written again: known by a prompt or compaction of that uuid, with the rows up to the newest."""
    if row.type in ("user", "system") and isinstance(row.uuid, str) and not _has_result(row):
        key = hash_with(_NO_SEED, row.uuid)
        if key in state.written:
            state.repeated = state.newest
            return True
        state.repeated = None
        state.written[key] = None
        if len(state.written) > _MOST_WRITTEN:
            del state.written[next(iter(state.written))]
    elif state.repeated is not None:
        if time is None or time <= state.repeated:
            return True
        state.repeated = None
    return False


def _has_result(row: Row) -> bool:
    content = row.message.content if row.message is not None else None
    return isinstance(content, list) and bool(content) and content[0].type == "tool_result"


def _enter(row: Row, state: State, time: int | None, thread: str) -> list[Step] | None:
    """Return a `Session` step if the row's session, thread or facts are not those before; None for a repeated row."""
    if (row.type != "assistant" or state.repeated is not None) and _is_repeated(row, state, time):
        return None
    if time is not None and time > state.newest:
        state.newest = time
    head = (
        row.session_id, row.cwd, row.git_branch, row.version, thread, row.agent_type, row.attribution_agent,
        row.forked_from, row.request_session_id,
    )  # fmt: skip
    is_old = time is not None and time < (state.began or 0)
    if head == state.head and is_old == state.is_old:
        return []
    state.head, state.began, state.queued, state.is_old = head, state.began or 0, "", is_old
    session = name(row.session_id) or state.session
    is_foreign = not state.is_part and state.is_id and session != state.session
    made_in = name(row.request_session_id) or session
    state.is_copy = not state.is_part and (is_old or is_foreign or made_in != session)
    if state.is_copy:
        state.has_copies = True
        state.parent = made_in if made_in != state.session else state.parent
    agent = MAIN
    if thread or state.is_part:
        agent = state.kind or name(row.agent_type) or name(row.attribution_agent) or SUB_AGENT
    forked_from = name(row.forked_from, "sessionId")
    return [
        Session(
            id=session, thread=thread, agent=agent, is_subagent_log=state.is_part or is_foreign,
            inherited=state.is_copy, project=folder(row.cwd),
            parent=forked_from or ("" if state.is_copy else state.parent), branch=name(row.git_branch),
            version=name(row.version), provider=_PROVIDER,
        )
    ]  # fmt: skip


def _thread(row: Row, state: State) -> str:
    """The conversation within the log: a sidechain's rows are a sub-agent's, unless the whole log is."""
    if row.is_sidechain is not True or state.is_part:
        return ""
    return name(row.agent_id) or "sidechain"


def _assistant(row: Row, state: State) -> list[Step]:
    time, message = read_time(row.timestamp), row.message or _NO_MESSAGE
    is_side, is_failed = row.is_sidechain is True, row.is_api_error_message is True
    thread = _thread(row, state) if is_side else ""
    found = _enter(row, state, time, thread)
    if found is None:
        return []
    is_copy = state.is_copy
    text, reasoning, calls = _parts(message.content)
    if message.usage is None and not is_failed:
        found.append(Text(time, text, reasoning))
    elif message.model != _SYNTHETIC or is_failed:
        rank = _SIDECHAIN if is_side else _COPIED if is_copy else _ORIGINAL
        response = _response(row, message, time, rank, thread, state, text, reasoning, calls)
        if row.cost_usd is not None or row.duration_ms is not None:
            response.cost_nano, issues = cost(row.cost_usd)
            response.latency_ms = read_duration(row.duration_ms) or None
            found += map(BadNumber, issues)
        if row.attribution_skill is not None or row.attribution_plugin is not None:
            response.skill, response.plugin = name(row.attribution_skill), name(row.attribution_plugin)
        if calls or row.attribution_mcp_server is not None:
            response.mcp = name(row.attribution_mcp_server) or _server(calls)
        if type(row) is FullRow:
            response.request = name(row.request_ref)
        found.append(response)
        if isinstance(message.usage, Usage) and message.usage.iterations:
            found += _inner(response, message.usage, name(row.uuid), state)
        if response.finish in _ENDS and not is_failed:
            found.append(Status(time, "success"))
    if is_side:
        state.has_delegated = True
    for number, block in enumerate(calls):
        key, tool = name(block.id) or f"{row.uuid}#{number}", name(block.name) or UNKNOWN
        if tool in _DELEGATES:
            state.has_delegated = True
        found.append(ToolCall(time, key, tool, block.input, "", "", "", is_copy))
    return found


def _server(calls: list[Block]) -> str:
    """The MCP server of the first call that has one."""
    for call in calls:
        if server := server_of(name(call.name))[1]:
            return server
    return ""


def _response(
    row: Row | Echo, message: Message, time: int | None, rank: int, thread: str, state: State, text: Content,
    reasoning: Content, calls: list[Block],
) -> Response:  # fmt: skip
    is_failed, model, stop = row.is_api_error_message is True, name(message.model), message.stop_reason
    if model == _SYNTHETIC:
        model = state.model
    elif model != state.model and (state.is_part or not thread) and model:
        state.model = model
    usage, speed, tier, region, searches = message.usage, "", "", "", 0
    counts = _tokens(usage, state)
    if isinstance(usage, Usage):
        if usage.speed is not None and usage.speed != "standard":
            speed = read_speed(usage.speed)
        if usage.service_tier is not None and usage.service_tier != "standard":
            tier = read_tier(usage.service_tier)
        if usage.inference_geo not in _NO_REGION:
            region = read_region(usage.inference_geo)
        if usage.server_tool_use is not None and usage.server_tool_use != _NO_SEARCHES and counts is not None:
            searches, issue = read_searches({"server_tool_use": usage.server_tool_use})
            counts = Tokens(counts.usage, (*counts.issues, issue)) if issue else counts
    key = message_id = name(message.id)
    if key and row.request_id:
        key = f"{key}:{name(row.request_id)}"
    elif key:
        used, version = counts.usage if counts is not None else _NO_TOKENS, name(state.head[3])
        block = row.api_block_index if isinstance(row, Row) and type(row.api_block_index) is int else -1
        key = key_of(key, used, time, version, state.unnamed, thread, stop=name(stop), block=block)
        rank = _rank_unnamed(rank, version)
    is_partial = not stop and row.is_aborted_mid_stream is True
    if counts is not None and not is_failed:
        _add_up(key, counts.usage, state)
        if not stop and counts.usage.output <= _FEW_TOKENS:
            state.visible += _size(text, calls)
            is_partial = is_partial or state.visible > _LONGEST_TOKEN * counts.usage.output
    response = Response(  # in the order of its class: by their names, so many values take six times as long
        time, key, message_id, rank, counts, "", model or UNKNOWN, "" if is_failed else model,
        stop if isinstance(stop, str) else "", is_failed, text_of(text) if is_failed else "",
        "partial" if is_partial else "exact", text, reasoning, speed, tier, "" if is_failed else message_id,
    )  # fmt: skip
    if searches or region:
        response.searches, response.region = searches, region
    return response


def _is_message(iteration: Any) -> bool:
    return type(iteration) is dict and iteration.get("type") == "message"


def _inner(response: Response, usage: Any, uuid: str, state: State) -> list[Step]:
    """Return the responses inside one, once: its rows repeat them."""
    if response.failed or response.tokens is None or not isinstance(usage, Usage):
        return []
    if not isinstance(usage.iterations, list) or all(map(_is_message, usage.iterations)):
        return []
    inner, issues = read_inner({"iterations": usage.iterations}, response.tokens.usage)
    used = sum((one.usage for one in inner), _NO_TOKENS)
    if used == state.inside:
        return [*map(BadNumber, issues)]
    if state.is_summed:
        state.used += used.beyond(state.inside)
    state.inside = used
    parent, id_ = response.key or uuid or str(response.time), response.response_id
    return [
        *map(BadNumber, issues),
        *(
            structs.replace(
                response, key=f"{parent}#{one.name}", family=id_ and f"{id_}#{one.name}", tokens=Tokens(one.usage),
                model=one.model or response.model, response_model=one.model or response.response_model, finish="",
                quality="exact", text=None, reasoning=None, response_id=id_ and f"{id_}#{one.name}", cost_nano=None,
                latency_ms=None, request="", searches=one.searches, kind=one.kind, parent=parent,
                speed=read_speed(one.fields.get("speed")) if one.model else response.speed,
                service_tier=read_tier(one.fields.get("service_tier")) or response.service_tier,
                region=read_region(one.fields.get("inference_geo") or response.region),
            )
            for one in inner
        ),
    ]  # fmt: skip


def _rank_unnamed(rank: int, version: str) -> int:
    """The rank of a row without a request id: below a row of that message id that has one, which may be its original.

    Not below the others without one: they are no copies of each other (`claude_keys`) but where their keys are equal.
    """
    if copies_have_new_times(version):
        return min(rank, _COPIED)
    return _SIDECHAIN if rank in (_SIDECHAIN, _ORIGINAL) else _EMBEDDED


def _add_up(key: str, usage: TokenUsage, state: State) -> None:
    """Add a row's response to what was used since the last `cost-state`."""
    if key != state.key or not key:
        state.key, state.visible, state.inside = key, 0, _NO_TOKENS
        if state.is_summed:
            state.used += state.usage
    if usage is not state.usage:
        state.usage = usage


def _size(text: Content, calls: list[Block]) -> int:
    """Bytes of the visible text of an answer."""
    size = measure(text) if text is not None else 0
    for block in calls:
        size += memoryview(block.input).nbytes
    return size


def _parts(content: list[Block] | str | None) -> tuple[Content, Content, list[Block]]:
    """(text, reasoning, tool calls); a text of a single block stays undecoded."""
    text: Content = None
    reasoning: Content = None
    calls: list[Block] = []
    if isinstance(content, str):
        return content, reasoning, calls
    for block in content or ():
        if block.text is not _NOTHING:
            text = block.text if text is None else _joined(text, block.text)
        elif block.type == "tool_use":
            calls.append(block)
        elif block.thinking is not _NOTHING:
            reasoning = block.thinking if reasoning is None else _joined(reasoning, block.thinking)
        elif block.type in _PICTURES:
            text = _joined(text, _words(block))
    return text, reasoning, calls


def _joined(one: Content, other: Content) -> Content:
    return other if one is None else f"{text_of(one)}\n{text_of(other)}"


def _words(block: Block) -> Content:
    return block.text if block.text is not _NOTHING else {"type": block.type}


def _tokens(usage: Any, state: State) -> Tokens | None:
    if not isinstance(usage, Usage):
        return tokens(usage, input="", output="")
    if usage == state.logged and state.counts is not None:  # the rows of one response repeat it
        return state.counts
    split, details = usage.cache_creation or _NO_SPLIT, usage.output_tokens_details
    (given, output, cache_read, flat, for_5m, for_1h, reasoning), issues = read_counts(
        _COUNTS,
        (
            usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens,
            split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens,
            0 if details is None else details.thinking_tokens,
        ),
    )  # fmt: skip
    disjoint = TokenUsage(given, output, cache_read, max(flat, for_5m + for_1h), min(reasoning, output), for_1h)
    found = Tokens(disjoint, issues)
    if not issues:
        state.logged, state.counts = usage, found
    return found


def _user(row: Row, state: State) -> list[Step]:
    time, content = read_time(row.timestamp), row.message.content if row.message is not None else None
    thread = _thread(row, state)
    found = _enter(row, state, time, thread)
    if found is None:
        return []
    before = state.unnamed.get(thread)
    if before is not None:
        before.is_answered = True
    is_hidden = row.is_meta is True or row.is_compact_summary is True
    if isinstance(content, str):
        is_typed = not is_hidden and not _WRAPPED.match(content) and content.strip() != ""
        if before is not None and (is_typed or row.is_compact_summary is True or before.stop in _ENDS):
            before.is_over = True
        found.append(Prompt(time, content, "user" if is_typed else "system"))
        if not is_typed and content.startswith(_INTERRUPTED):
            found.append(Status(time, "cancelled"))
        return found
    parts: list[dict[str, Any]] = []
    for block in content or ():
        if block.type == "tool_result":
            found.append(ToolResult(time, name(block.tool_use_id), block.content, block.is_error is True))
        elif block.text is not _NOTHING or block.type in _PICTURES:
            part = _text_part(text_of(_words(block)))
            parts.append(part if block.source is _NOTHING else {**part, "type": block.type, "source": block.source})
    if not parts:
        return found
    typed = [] if is_hidden else [part for part in parts if not _WRAPPED.match(part["text"])]
    typed = typed if any(part["text"].strip() for part in typed) else []
    aside = [part for part in parts if not typed or _WRAPPED.match(part["text"])]
    if before is not None and (typed or before.stop in _ENDS):
        before.is_over = True
    if aside:
        found.append(Prompt(time, _content(aside), "system"))
    if typed:
        found.append(Prompt(time, _content(typed), "user"))
    if any(part["text"].startswith(_INTERRUPTED) for part in aside):
        found.append(Status(time, "cancelled"))
    return found


def _text_part(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _content(parts: list[dict[str, Any]]) -> Content:
    """Return parts as a content; without pictures as one text."""
    if len(parts) == 1 and "source" not in parts[0]:
        return str(parts[0]["text"])
    return parts if any("source" in part for part in parts) else "\n".join(part["text"] for part in parts)


def _progress(row: Row, state: State) -> list[Step]:
    """A sub-agent's answer, embedded in its parent's log; its own log may be gone."""
    data = row.data
    echo = data.message if isinstance(data, Data) and data.type == "agent_progress" else None
    if not isinstance(data, Data) or echo is None or echo.message is None:
        return []
    thread = name(data.agent_id) or SUB_AGENT
    if echo.type != "assistant":
        if thread in state.unnamed:
            state.unnamed[thread].is_answered = True
        return []
    is_failed = echo.is_api_error_message is True
    if not is_failed and (echo.message.model == _SYNTHETIC or echo.message.usage is None):
        return []
    time, own_time = read_time(row.timestamp), read_time(echo.timestamp)
    found = _enter(row, state, time, thread)
    if found is None:
        return []
    text, reasoning, calls = _parts(echo.message.content)
    time = time if own_time is None else own_time
    response = _response(echo, echo.message, time, _EMBEDDED, thread, state, text, reasoning, calls)
    found += [response, *_inner(response, echo.message.usage, name(echo.uuid), state)]
    for number, block in enumerate(calls):
        key = name(block.id) or f"{echo.uuid}#{number}"
        found.append(ToolCall(time, key, name(block.name) or UNKNOWN, block.input, is_copy=True))
    return found


def _system(row: Row, state: State) -> list[Step]:
    time, thread = read_time(row.timestamp), _thread(row, state)
    found = _enter(row, state, time, thread)
    if found is None:
        return []
    if row.subtype == "compact_boundary":
        if state.is_summed and not (state.is_copy or thread):
            state.compacted = name(row.uuid), time
        known = mapping(row.compact_metadata)
        facts = {"trigger": known.get("trigger"), "tokens_before": known.get("preTokens")}
        found.append(Compaction(time, facts=facts))
    else:
        found.append(At(time))
    return found


def _compaction_request(row: Row, state: State) -> list[Step]:
    """What the sum of all requests grew by beyond the responses, where only a compaction came between."""
    total = _NO_TOKENS
    for usage in mapping(row.model_usage).values():
        counts = tokens(
            usage, input="inputTokens", output="outputTokens", cache_read="cacheReadInputTokens",
            cache_write="cacheCreationInputTokens", cache_write_1h="cacheCreationEphemeral1hInputTokens",
            reasoning="thinkingTokens",
        )  # fmt: skip
        total += counts.usage if counts is not None else _NO_TOKENS
    before, compacted = state.total, state.compacted
    if before is None and not state.has_copies:
        before = _NO_TOKENS
    rest = _NO_TOKENS
    if compacted is not None and before is not None and not (state.has_delegated or state.is_part):
        rest = total.beyond(before + state.used + state.usage)
    state.total, state.used, state.usage = total, _NO_TOKENS, _NO_TOKENS
    state.compacted, state.has_delegated = None, False
    if compacted is None or not rest:
        return []
    state.head = ()
    uuid, time = compacted
    return [
        Session(id=name(row.session_id) or state.session, thread="compaction"),
        Response(time=time, key=f"compaction:{uuid}", tokens=Tokens(rest), model=state.model, summed=True),
    ]


def _session_of(path: str) -> str:
    """The session that a log's place and name give."""
    parts = path.split(os.sep)
    return parts[parts.index("subagents", 1) - 1] if "subagents" in parts[1:] else stem_of(path)


def _is_part(path: str) -> bool:
    """Whether a log is a sub-agent's, of a session that has its own."""
    return "subagents" in path.split(os.sep) or os.path.basename(path).startswith("agent-")


def _subagent_logs(path: str) -> list[str]:
    """The logs of a session's sub-agents: below its own folder, and in old versions beside it, by their rows."""
    directory, session = os.path.dirname(files.absolute_path(path)), stem_of(path)
    if _is_part(path):
        return []
    own = os.path.join(directory, session)
    found = walk_files([own], _is_transcript) if files.is_directory(own) else ()
    beside = files.find_paths(directory, "agent-*.jsonl")
    return [log for log in (*found, *beside) if isinstance(log, str) and _is_log(log) and _parent_of(log) == session]


def _parent_of(path: str) -> str:
    """The session of a sub-agent's log: by its place, else by its second row, or its only one; "" if it names none."""
    if "subagents" in path.split(os.sep)[1:]:
        return _session_of(path)
    try:
        found = _SESSION_ID.findall(read_head(path))[:2]
    except (LogNotReadable, MissingExtra, OSError):
        return ""
    return found[-1].decode("utf-8", "replace") if found else ""


def _log_names(path: str) -> tuple[str, ...]:
    """A session's log is named by its file; a sub-agent's by its session too, so that it can be replayed by itself."""
    parent = _parent_of(path) if _is_part(path) else ""
    return (f"{parent}/{stem_of(path)}" if parent else stem_of(path),)


def _is_transcript(name: str) -> bool:
    return name.startswith("agent-") and name.endswith(LOG_SUFFIXES)


def _description(path: str) -> str:
    """Where a sub-agent's kind is, beside its log."""
    return os.path.join(os.path.dirname(path), f"{stem_of(path)}.meta.json")


def _list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the transcripts under a folder; in the desktop app's, only what is under a `projects`."""
    for path in walk_files([place], lambda file_name: file_name.endswith(LOG_SUFFIXES)):
        if isinstance(path, Problem) or path == place or _is_log(path):
            yield path


def _is_log(path: str) -> bool:
    parts = path.split(os.sep)
    if CLAUDE_DESKTOP in parts and "projects" not in parts[parts.index(CLAUDE_DESKTOP) :]:
        return False
    return not _is_journal(path) and parts[-1] != "history.jsonl"


def _is_journal(path: str) -> bool:
    return "subagents" in path.split(os.sep) and stem_of(path) == "journal"


def _recognises(path: str, head: bytes) -> bool:
    """Recognise a transcript by its first rows: only Claude Code marks each row as a sidechain or not."""
    if _is_journal(path):
        return False
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _HEAD_ROWS)[:_HEAD_ROWS]:
        row = read_json(line)
        if row is None and (_SNAPSHOT.match(line) or (b'"sessionId"' in line and _OWN_KEYS.search(line))):
            return True  # cut at the head's end, or damaged
        if isinstance(row, dict) and _is_row(row):
            return True
    return False


def _is_row(row: Mapping[str, Any]) -> bool:
    kind, message = row.get("type"), mapping(row, "message")
    if kind == "summary":
        return "leafUuid" in row
    if kind == "file-history-snapshot":
        return "snapshot" in row
    if kind == "queue-operation":
        return "operation" in row
    if "parts" in message:
        return False  # Qwen Code writes rows with the same keys around Google's messages
    if isinstance(row.get("isSidechain"), bool):
        return "sessionId" in row or "parentUuid" in row
    if kind not in ("assistant", None) or "provider" in message:
        return False
    is_named = any(key in row for key in ("sessionId", "requestId", "costUSD"))
    return is_named and "input_tokens" in mapping(message, "usage")


def _retention(env: Mapping[str, str]) -> Retention:
    """Read how long logs are kept from the settings of the config folder that is in use."""
    configs = expand_places(env, claude_code())
    configs = [one for one in configs if os.path.basename(one) != "projects"] or configs
    paths = [os.path.join(config, "settings.json") for config in configs]
    path = next(filter(files.stat_path, paths), paths[-1])
    days = mapping(read_json(read_sidecar(path))).get("cleanupPeriodDays")
    is_known = type(days) is int and days >= 0
    return Retention(days=days if is_known else _RETENTION_DAYS, setting=f"cleanupPeriodDays in {path}")


SOURCE = source(
    id="claude-code",
    title="Claude Code",
    places=PLACES["claude-code"],
    logs="*.jsonl",
    list_logs=_list_logs,
    rows=json_lines(Row, row_start=b'{"parentUuid"'),
    full_rows=json_lines(FullRow, row_start=b'{"parentUuid"'),
    steps=steps,
    finish=lambda state: (Prompt(state.began, state.queued),) if state.queued else (),
    state=_begin,
    state_type=State,
    recognises=_recognises,
    session_of=_session_of,
    name_sessions=_log_names,
    parser_version=9,
    retention=_retention,
    sidecars=lambda path: (_description(path),) if _is_part(path) else (),
    subagent_logs=_subagent_logs,
)
