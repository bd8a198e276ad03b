"""What the rows of a rollout mean.

The thread's own rows come after its history: a fork's or a sub-agent's file may begin with its parent's rows, under the
times they had or under those of the moment in which they were copied. Turns and threads have ids that sort by time
(UUIDv7), so a turn whose id is not before the thread's is its own. Where ids decide nothing, the history is a burst of
rows, which ends with the first pause; and a row that is older than the thread is always its parent's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Raw, Struct

from sessionlog.events.times import SECOND, parse_time
from sessionlog.events.tokens import MAX_COUNT
from sessionlog.sources.codex.rows import (
    NOTHING,
    NULL,
    PROVIDER,
    Info,
    Payload,
    RateLimits,
    Row,
    Vector,
    advance,
    minus,
    plus,
    read_limits,
    read_number,
    read_vector,
    tokens_of,
)
from sessionlog.sources.codex.streams import Stream, read_stream
from sessionlog.sources.kit import (
    MAIN,
    SUB_AGENT,
    UNKNOWN,
    At,
    BadNumber,
    Compaction,
    Content,
    CopyRank,
    Prompt,
    RateLimit,
    Request,
    Response,
    Session,
    Status,
    Step,
    Text,
    ToolCall,
    ToolResult,
    first_words,
    folder,
    mapping,
    measure,
    name,
    read_json,
    read_tier,
    read_time,
    text,
)
from sessionlog.sources.record import server_of
from sessionlog.sources.steps import Role

Time = int | None
Steps = Iterable[Step]

_NEVER = 2**63
_UNNAMED = {"local_shell_call": "local_shell", "tool_search_call": "tool_search"}
_PAUSE_NS = SECOND
_LONGEST_REPLAY_NS = 60 * SECOND
_ECHO_NS = 10 * SECOND
_INSTRUCTIONS = 1 << 16
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE)
_NOT_THE_USER = ("<", "# AGENTS.md instructions")
_CONTEXT = ("<environment_context>", "<user_instructions>")
_LOCAL_ERRORS = frozenset({"sandbox_error", "thread_rollback_failed", "active_turn_not_steerable"})

# Of an output's text as it stands in the log, JSON escapes included, so that no output need be decoded.
_EXIT_LINE = re.compile(
    rb'"(?:Command: (?:[^\\]|\\[^n]){0,2000}\\n)?(?:Chunk ID: [^\\]{0,80}\\n)?(?:Wall time: [^\\]{0,40}\\n)?'
    rb'(?:Process exited with code|Exit code:) (-?\d{1,10})(?:\\n|")'
)
_METADATA = re.compile(rb'\\"metadata\\": ?\{(?:[^{}]{0,40}, ?)?\\"exit_code\\": ?(-?\d{1,10})[,}]')
_QUOTE, _BRACE = b'"{'
_TAIL = 200


class LimitsAt(Struct):
    """The latest report on a rate limit."""

    time: int
    limits: RateLimits


class State(Struct):
    """What is known of a thread from row to row.

    Attributes:
        id: The thread.
        is_begun: A row has been read.
        is_named: Its own session_meta has been read.
        first_ns: The second in which it began: rows before it are copies.
        own_ns: Rows from this time on are the thread's own without a closer look.
        history: The rows that are read now are its parent's.
        owner: The thread whose rows they are.
        replayed_ns: The last row of the history.
        dated: The history's turns have ids that sort by time.
        inherits: It began with its parent's counter.
        last: The time of the last row that means nothing else.
        model: The model now.
        tier: The service tier that requests ask for now; "" for the standard one.
        window: The size of its context window.
        cwd: The working folder now.
        counter: The thread's total.
        first: The total with which the process began that counts it.
        pending: What usage records since the last counter hold.
        searches: Web searches of OpenAI's own tool since the last response.
        server: The MCP server of the first call since the last response that has one.
        echoes: Prompts that were logged as items and not yet as events; below 0 the other way round.
        spoken: Texts of answers that were logged as events and not yet as items.
        prompted_ns: The last prompt.
        at_fault: The turn had an error, and no response since.
        trouble: The time and message of a broken stream that may yet be mended.
        limits: The latest reports on rate limits, by name.
        has_results: The row before was a tool's output, in a log without counters.
    """

    id: str
    is_begun: bool = False
    is_named: bool = False
    first_ns: int = -_NEVER
    own_ns: int = -_NEVER
    history: bool = False
    owner: str = ""
    replayed_ns: int | None = None
    dated: bool = False
    inherits: bool = False
    last: Any = None
    model: str = ""
    tier: str = ""
    window: int = 0
    cwd: str = ""
    counter: Vector | None = None
    first: Vector | None = None
    pending: Vector = NOTHING
    searches: int = 0
    server: str = ""
    echoes: int = 0
    spoken: int = 0
    prompted_ns: int = 0
    at_fault: bool = False
    trouble: tuple[int | None, str] | None = None
    limits: dict[str, LimitsAt] = {}
    has_results: bool = False


class Unsure(State):
    """That of a log whose first rows do not show yet what it is."""


def steps(row: Row, state: State) -> Steps:
    """What a row means."""
    payload, kind = row.payload, row.type
    if payload is None or not state.is_begun:
        return _unusual(row, state)
    try:
        if kind == "event_msg":
            meaning = _EVENTS.get(payload.type)
        elif kind == "response_item":
            meaning = _ITEMS.get(payload.type)
        else:
            meaning = _ROWS.get(kind)
    except TypeError:  # a type may be a list
        meaning = None
    if meaning is None:
        state.last = row.timestamp
        return ()
    stamp = row.timestamp
    time = parse_time(stamp) if type(stamp) is str else read_time(stamp)
    is_own = time is not None and time >= state.own_ns
    owner = None if is_own else _owner(meaning, payload, time, state)
    return meaning(payload, time, state) if owner is None else _inherited(meaning, payload, time, owner, state)


def _unusual(row: Row, state: State | Stream) -> Steps:
    """The file's first row, rows without a payload, and those of streams."""
    if isinstance(state, Stream):
        yield from read_stream(row, state)
        return
    item, kind = row.payload or row, row.type
    if row.payload is None:
        is_header = kind is None and row.id is not None and row.timestamp is not None
        if state.has_results and kind is not None and row.output is NULL:
            yield Request(None)  # without counters, nothing else ends an answer
        state.has_results = row.output is not NULL
        kind = "session_meta" if is_header else "response_item"
    if not state.is_begun and kind != "session_meta":
        yield Session(provider=PROVIDER)
    state.is_begun = True
    yield from steps(Row(timestamp=row.timestamp, type=kind, payload=item), state)


def finish(state: State | Stream) -> Steps:
    """The latest time, and the latest reports on rate limits."""
    if isinstance(state, State):
        if state.last is not None:
            yield At(read_time(state.last))
        for report in state.limits.values():
            yield from map(RateLimit, read_limits(report.limits, report.time))


# The thread's own rows


def _session_meta(meta: Payload, time: Time, state: State) -> Steps:
    """The first one is the thread's own, another thread's begins a history."""
    id_ = name(meta.id)
    if not state.is_named:
        yield from _begin(meta, id_ or state.id, time, state)
    elif id_ and id_ != state.id:
        if state.history or not state.model:  # else it stands in the middle of the thread's own turns
            state.history, state.inherits, state.owner = True, True, id_
            state.replayed_ns, state.own_ns = time, _NEVER
    elif not state.history:
        yield _facts(meta)
        yield At(time)


def _begin(meta: Payload, id_: str, time: Time, state: State) -> Steps:
    state.is_named, state.id = True, id_
    began_ns = read_time(meta.timestamp)
    session_ns = state.replayed_ns = began_ns if time is None else time
    began_ns = time if began_ns is None else began_ns
    state.own_ns = state.first_ns = -_NEVER if began_ns is None else began_ns // SECOND * SECOND
    spawn = mapping(meta.source, "subagent", "thread_spawn")
    started_by = name(spawn, "parent_thread_id") or name(meta.parent_thread_id)
    forked_from = name(meta.forked_from_id)
    session = _facts(meta)
    session.id, session.agent = id_, _agent(meta, spawn)
    if session.agent != MAIN and started_by:
        session.id = name(meta.session_id) or started_by
        session.id = started_by if session.id == id_ else session.id
    elif forked_from != id_:
        session.parent = forked_from
    session.is_subagent_log = session.id != id_
    session.time = session_ns
    instructions = text(meta.base_instructions, "text") or text(meta.instructions)
    session.provider = session.provider or PROVIDER
    session.system_prompt = instructions[:_INSTRUCTIONS]
    state.cwd = session.project
    state.owner = forked_from or started_by
    if state.owner and state.owner != id_:
        state.inherits, state.history, state.own_ns = True, True, _NEVER
    yield session


def _facts(meta: Payload) -> Session:
    return Session(
        project=folder(meta.cwd),
        branch=name(meta.git, "branch"),
        version=name(meta.cli_version),
        provider=name(meta.model_provider),
    )


def _agent(meta: Payload, spawn: Mapping[str, Any]) -> str:
    """The kind of sub-agent: `review`, `{"other": "guardian"}`, or the role of a spawned thread."""
    kind = mapping(meta.source).get("subagent")
    if kind is None and meta.thread_source != "subagent":
        return MAIN
    if isinstance(kind, dict) and "thread_spawn" not in kind:
        kind = next((name(value) or name(key) for key, value in kind.items()), None)
    named = (kind, *map(spawn.get, ("agent_role", "agent_type", "agent_nickname")))
    return next(filter(None, map(name, (*named, meta.agent_role, meta.agent_type, meta.agent_nickname))), SUB_AGENT)


def _turn_context(context: Payload, time: Time, state: State) -> Steps:
    state.spoken = 0
    return (*_changes(context, state), Request(time))


def _changes(context: Payload, state: State) -> Steps:
    """Another model or folder."""
    model, cwd = name(context.model) or state.model, folder(context.cwd) or state.cwd
    if model != state.model or cwd != state.cwd:
        state.model, state.cwd = model, cwd
        yield Session(model=model, project=cwd)


def _settings_applied(event: Payload, time: Time, state: State) -> Steps:
    """Settings from here on, until the next ones; those without a tier ask for the standard one."""
    given = event.thread_settings
    state.tier = read_tier(given.get("service_tier") if isinstance(given, dict) else event.service_tier)
    return (At(time),)


def _turn_started(event: Payload, time: Time, state: State) -> Steps:
    state.at_fault, state.trouble = False, None
    return (*_window(event.model_context_window, state), Request(time))


def _window(size: Any, state: State) -> Steps:
    """The context window's size, where it is another one."""
    if size == state.window or type(size) is not int or not 0 < size <= MAX_COUNT:
        return ()
    state.window = size
    return (Session(context_window=size),)


def _turn_completed(event: Payload, time: Time, state: State) -> Steps:
    """A turn's end: with an error, in the middle of reconnecting, or well."""
    error = event.error
    if error is not None and not state.at_fault:
        yield from _fail(time, first_words(mapping(error).get("message", error)), state)
    elif state.trouble:
        yield from _fail(*state.trouble, state)
    elif not state.at_fault or (error is None and first_words(event.last_agent_message)):
        yield Status(time, "success")
        return
    yield At(time)


def _turn_aborted(_: Payload, time: Time, state: State) -> Steps:
    if state.trouble:
        yield from _fail(*state.trouble, state)
    yield Status(time, "cancelled")


def _error(event: Payload, time: Time, state: State) -> Steps:
    message, info = first_words(event.message), event.codex_error_info
    kind = next(iter(info), None) if isinstance(info, dict) else info
    if isinstance(kind, str) and kind in _LOCAL_ERRORS:
        state.at_fault = True
        yield Status(time, "error", message)
    else:
        yield from _fail(time, message, state)


def _fail(time: Time, message: str, state: State) -> Steps:
    """A request that was given up: it used nothing that is known."""
    state.at_fault, state.trouble = True, None
    key = "" if time is None else f"{state.id}:{time}:failed"
    yield Response(time=time, key=key, failed=True, error=message, final=True)


def _stream_error(event: Payload, time: Time, state: State) -> Steps:
    state.trouble = (time, first_words(event.message))
    return (At(time),)


def _message(item: Payload, time: Time, state: State) -> Steps:
    if item.role == "assistant":
        is_echo = state.spoken > 0
        state.spoken -= is_echo
        return (At(time) if is_echo else Text(time, item.content),)
    if item.role != "user":
        return (Prompt(time, item.content, role="system"),)
    content = read_json(item.content)  # once, for all who look at it
    return _prompt(content, time, 1, state) if _is_typed(content) else (Prompt(time, content, role="system"),)


def _agent_message(event: Payload, time: Time, state: State) -> Steps:
    """The text of an answer; until 0.64 its item comes only when the answer's tools have run."""
    state.spoken += 1
    return (Text(time, event.message),)


def _is_typed(content: Content) -> bool:
    """Whether an item is the user's: it has words, and they are not Codex's own."""
    words = first_words(content)
    return bool(words) and not words.startswith(_NOT_THE_USER)


def _user_message(event: Payload, time: Time, state: State) -> Steps:
    message = read_json(event.message)
    words = first_words(message)
    if words and not words.startswith(_CONTEXT):
        return _prompt(message, time, -1, state)
    return (At(time),)


def _prompt(content: Content, time: Time, kind: int, state: State) -> Steps:
    """A prompt: Codex logs it as an item (1) and as an event (-1), and the earlier one begins the turn."""
    if time is not None:
        if state.prompted_ns and time - state.prompted_ns > _ECHO_NS:
            state.echoes = 0
        state.prompted_ns = time
    is_echo = state.echoes * kind < 0
    state.echoes += kind
    return (At(time) if is_echo else Prompt(time, content),)


def _reasoning(item: Payload, time: Time, _: State) -> Steps:
    thoughts = Text(time, reasoning=item.summary)
    return (thoughts,) if item.content is NULL else (thoughts, Text(time, reasoning=item.content))


def _searched(item: Payload, time: Time, state: State) -> Steps:
    """A call of OpenAI's own tool, which is billed if it searches; it may also open a page, and find in it."""
    action = mapping(read_json(item.action))
    state.searches += action.get("type") == "search" and item.status != "failed"
    return _reasoning(item, time, state)


def _called(item: Payload, time: Time, state: State) -> Steps:
    call_id = name(item.call_id)
    if not call_id:
        return (At(time),)
    given, space = item.arguments, name(item.namespace)
    if given is NULL:
        given = item.action if item.input is NULL else item.input
    server = space[5:].rstrip("_") if space.startswith("mcp__") else ""
    tool = name(item.name) or _UNNAMED.get(item.type, UNKNOWN)
    state.server = state.server or server or server_of(tool)[1]
    return (ToolCall(time, f"{state.id}:{call_id}", tool, given, server, call_id),)


def _returned(item: Payload, time: Time, state: State) -> Steps:
    call_id = name(item.call_id)
    if not call_id:
        return (At(time),)
    output = item.output if item.output is not NULL else item.content
    failed, size = _outcome(output)
    return (ToolResult(time, f"{state.id}:{call_id}", output, failed, None, size),)


def _outcome(output: Raw) -> tuple[bool | None, int]:
    """Whether an output is that of a failure (None: it does not show), and its size in bytes."""
    data = memoryview(output)
    if data[0] != _QUOTE:
        value = read_json(output)
        success = mapping(value).get("success")
        return (not success if isinstance(success, bool) else None), measure(mapping(value).get("content", value))
    codes = _METADATA.findall(data, max(1, len(data) - _TAIL)) if data[1] == _BRACE else ()
    match = None if data[1] == _BRACE else _EXIT_LINE.match(data)
    code = codes[-1] if codes else match and match.group(1)
    return (None if code is None else int(code) != 0), len(data) - 2


def _tool_ended(event: Payload, time: Time, state: State) -> Steps:
    """An event about a call that waits for its output: its server, how it went, how long it took."""
    invocation = mapping(event.invocation)
    duration = mapping(event.duration)
    seconds, nanos = read_number(duration.get("secs")), read_number(duration.get("nanos")) or 0
    known_ms = None if seconds is None else seconds * 1000 + nanos / 1_000_000
    return (
        ToolResult(
            time,
            f"{state.id}:{name(event.call_id)}",
            failed=_has_failed(event),
            duration_ms=known_ms,
            tool=name(invocation, "tool"),
            server=name(invocation, "server"),
            pending=True,
        ),
    )


def _has_failed(event: Payload) -> bool | None:
    """Whether a tool failed: an exit code, a flag, or a Result as Rust spells it."""
    if isinstance(event.exit_code, int):
        return event.exit_code != 0
    if isinstance(event.success, bool):
        return not event.success
    result = read_json(event.result)
    if not isinstance(result, dict):
        return None
    content = mapping(result.get("Ok", result))
    return "Err" in result or any(content.get(key) is True for key in ("is_error", "isError"))


# Counters


def _token_count(event: Payload, time: Time, state: State) -> Steps:
    limits, info = event.rate_limits, event.info
    if limits is not None and time is not None:
        state.limits[name(limits.limit_id)] = LimitsAt(time, limits)
    if info is None:
        return (At(time),)
    found = _counted(event, info, time, "", state)
    if info.model_context_window == state.window:
        return found
    return (*_window(info.model_context_window, state), *found)


def _counted(event: Payload, info: Info, time: Time, owner: str, state: State) -> Steps:
    """A counter, of the thread's own or of the rows of `owner`: what is new in it is a response's."""
    total, issues = read_vector(info.total_token_usage, state.counter)
    if total is not None and total == state.counter and not issues:
        return () if owner else (At(time),)
    last, more = read_vector(info.last_token_usage)
    issues += more
    state.counter, used = advance(state.counter, total, last, first=state.first, inherits=state.inherits)
    if used is not None and used == total:
        state.first = total
    if used is not None and state.pending != NOTHING:  # usage records have given that
        used = tuple(max(0, count) for count in minus(used, state.pending))
        state.pending = NOTHING
    if used is None or not any(used):
        return (*map(BadNumber, issues), *(() if owner else (At(time),)))
    a, b, c, d, _ = total or last or NOTHING
    model = "" if state.model else name(event.model) or name(info.model) or name(info.model_name)
    tier = event.service_tier or info.service_tier
    return _response(time, f"{a}.{b}.{c}.{d}", used, issues, model, owner, state, tier=tier)


def _usage_record(row: Payload, time: Time, state: State, owner: str = "") -> Steps:
    """The use of one response, at once; the counter with the same follows when its tools have run."""
    used, issues = read_vector(row.usage)
    if used is None or not any(used):
        return map(BadNumber, issues)
    state.pending = plus(state.pending, used)
    response_id = name(row.response_id)
    return _response(time, response_id, used, issues, "", owner, state, response_id, tier=row.service_tier)


def _response(
    time: Time,
    place: str,
    used: Vector,
    issues: tuple[str, ...],
    model: str,
    owner: str,
    state: State,
    response_id: str = "",
    tier: Any = None,
) -> Steps:
    """A response; copies under their own times have the original's key, and count only where no log has that.

    The tier that its row names was served; one that was only asked for may not have been.
    """
    if not owner:
        state.at_fault, state.trouble = False, None
    server, searches = ("", 0) if owner else (state.server, state.searches)
    state.server, state.searches = "", 0
    family = "" if time is None else f"{time}:{place}"
    key = family and f"{owner or state.id}:{family}"
    rank = _SIDECHAIN if owner else _ORIGINAL
    tokens = tokens_of(used, issues)
    return (
        Response(
            time, key, family, rank, tokens, "", model, final=True, is_copy=bool(owner), mcp=server,
            response_id=response_id, service_tier=read_tier(tier) if tier else state.tier, searches=searches,
        ),
    )  # fmt: skip


_SIDECHAIN, _ORIGINAL = int(CopyRank.SIDECHAIN), int(CopyRank.ORIGINAL)


# History


def _owner(meaning: object, payload: Payload, time: Time, state: State) -> str | None:
    """Whose a row is: None = the thread's own, "" = its parent's, copied under a new time, else the parent."""
    if meaning is _session_meta:
        return None
    is_older = time is not None and time < state.first_ns
    if not state.history:
        return (state.owner or "?") if is_older else None
    is_own, turn_id = False, name(payload.turn_id).lower()
    if meaning in (_turn_context, _turn_started) and _UUID7.match(turn_id) and _UUID7.match(state.id):
        state.dated, is_own = True, turn_id >= state.id.lower()
    if is_older and not is_own:
        return state.owner or "?"
    before = state.first_ns if state.dated else state.replayed_ns
    if time is not None and not is_own:
        is_own = before is not None and time - before >= (_LONGEST_REPLAY_NS if state.dated else _PAUSE_NS)
        state.replayed_ns = time
    if is_own:
        state.history, state.own_ns = False, state.first_ns
    return None if is_own else ""


def _inherited(meaning: object, payload: Payload, time: Time, owner: str, state: State) -> Steps:
    """A row of the parent's: messages that the first request sends again, and the counter's start."""
    if meaning is _message:
        if payload.role == "assistant" and owner:
            return (Text(None, payload.content),)
        is_user = payload.role == "user" and _is_typed(payload.content)
        role: Role = "assistant" if payload.role == "assistant" else "user" if is_user else "system"
        return (Prompt(time, payload.content, role, inherited=True),)
    if meaning is _turn_context:
        return _changes(payload, state)
    if meaning is _settings_applied:
        _settings_applied(payload, time, state)
    if meaning is _usage_record and owner:
        return _usage_record(payload, time, state, owner)
    if meaning is _token_count and payload.info is not None:
        found = _counted(payload, payload.info, time, owner or "?", state)
        return found if owner else [step for step in found if isinstance(step, BadNumber)]
    return ()


_Meaning = Callable[[Payload, Time, State], Steps]
_ROWS: dict[Any, _Meaning] = {
    "session_meta": _session_meta,
    "turn_context": _turn_context,
    "compacted": lambda row, time, _: (Compaction(time, row.message),),
    "token_usage_record": _usage_record,
}
_ITEMS: dict[Any, _Meaning] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _called,
    "custom_tool_call": _called,
    "local_shell_call": _called,
    "tool_search_call": _called,
    "web_search_call": _searched,
    "function_call_output": _returned,
    "custom_tool_call_output": _returned,
    "tool_search_output": _returned,
}
_EVENTS: dict[Any, _Meaning] = {
    "token_count": _token_count,
    "user_message": _user_message,
    "agent_message": _agent_message,
    "thread_settings_applied": _settings_applied,
    "task_started": _turn_started,
    "turn_started": _turn_started,
    "task_complete": _turn_completed,
    "turn_complete": _turn_completed,
    "turn_aborted": _turn_aborted,
    "error": _error,
    "stream_error": _stream_error,
    "mcp_tool_call_end": _tool_ended,
    "exec_command_end": _tool_ended,
    "patch_apply_end": _tool_ended,
}
