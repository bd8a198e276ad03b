"""kimi: Kimi CLI and its successor Kimi Code, a `wire.jsonl` for each session and one for each of its sub-agents.

Where: Kimi CLI `$KIMI_SHARE_DIR` or `$KIMI_DATA_DIR`, else `~/.kimi`: `sessions/<md5 of folder>/<id>/wire.jsonl`, and
below it `subagents/<id>/wire.jsonl`. Kimi Code `$KIMI_CODE_HOME`, else `~/.kimi-code`:
`sessions/wd_<project>/<session>/agents/<main or id>/wire.jsonl`. Two dialects of one shape:

    {"timestamp": s, "message": {"type": "StatusUpdate", "payload": {"message_id",
        "token_usage": {"input_other", "output", "input_cache_read", "input_cache_creation"}}}}
    {"type": "usage.record", "time": ms, "model", "usage": {"inputOther", "output", "inputCacheRead", …}}

Classes are disjoint; reasoning is a part of the output and not logged apart. Traps:

- A StatusUpdate may come again with the same message id (the greatest counts), and most of them have no tokens.
- The parent repeats its sub-agents' lines in `SubagentEvent`s; older versions write them nowhere else.
- Forks copy the file. Ids of tool calls repeat.
- Kimi CLI does not log the model: the configured default stands in for it. Kimi Code logs an alias beside the tokens
  and the model in `llm.request`, whose `provider` is only the protocol: the configuration knows whose the alias is.
- In Kimi Code `step.end` repeats the tokens of `usage.record`; records of the scope `session` are compactions, which
  are billed too. Failed requests are `step.end` with `finishReason: error`, with the reason in the row behind it.

Seen: wire protocols 1.0 to 1.10 of the CLI, 1.0 to 1.5 of Kimi Code (until 2.1).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from sessionlog import files
from sessionlog.sources.kit import (
    MAIN,
    SUB_AGENT,
    UNKNOWN,
    At,
    Compaction,
    CopyRank,
    Json,
    MoreInput,
    Prompt,
    Request,
    Response,
    Session,
    Status,
    Steps,
    Text,
    Tokens,
    ToolCall,
    ToolResult,
    fingerprint,
    folder,
    folder_of,
    json_lines,
    mapping,
    name,
    objects,
    read_object,
    read_sidecar,
    read_time,
    source,
    text,
    text_of,
    tokens,
)
from sessionlog.sources.places import PLACES

_PROVIDER = "moonshotai"
_OWN = ("kimi", "moonshot")
_UNIQUE = 16  # characters from which a message's id is one of its provider's, not a counter
_CODE_ROWS = frozenset(
    {"context.append_loop_event", "usage.record", "turn.prompt", "config.update", "permission.set_mode"}
)


class Row(Struct, rename="camel"):
    """A line of either dialect: Kimi CLI has `message`, Kimi Code `type`."""

    timestamp: Any = None
    message: Any = None
    type: Any = None
    time: Any = None
    created_at: Any = field(default=None, name="created_at")
    input: Any = None
    event: Any = None
    usage: Any = None
    model: Any = None
    model_alias: Any = None
    provider: Any = None
    summary: Any = None
    profile_name: Any = None
    step_id: Any = None
    reason: Any = None
    error: Any = None
    error_message: Any = None


class Call(Struct):
    """A call of the model and the tools that it asks for: in Kimi's words, a step."""

    number: int = 0
    name: str = ""
    is_cut: bool = False


class State(Struct):
    """What is known of a log from row to row."""

    path: str
    session: str
    agent: str
    is_begun: bool = False
    kind: str = ""
    provider: str = _PROVIDER
    model: str = UNKNOWN
    thread: str = ""
    asked: tuple[str, str] = ("", "")
    aliases: dict[str, str] = {}
    steps: dict[str, Call] = {}
    calls: dict[str, str] = {}

    @property
    def speaker(self) -> str:
        """Whose lines are read: a sub-agent's id, "" for the main agent."""
        return self.thread or self.agent


def _begin(path: str) -> State:
    directory, agent = _location(path)
    config, meta = _config(directory), read_object(_meta(path)) if agent else {}
    aliases = _aliases(config)
    state = State(path, _session_of(path), agent, aliases=aliases)
    alias = name(meta, "launch_spec", "effective_model") or name(config, "default_model")
    if alias:
        known = name(config, "models", alias, "model")
        state.provider, state.model = aliases.get(alias, _PROVIDER), _model_name(known or alias) or UNKNOWN
    if agent:
        state.kind = name(meta, "subagent_type") or SUB_AGENT
    return state


def steps(row: Row, state: State) -> Steps:
    """What a line means."""
    if not state.is_begun:
        state.is_begun = True
        directory, _ = _location(state.path)
        facts = read_object(os.path.join(directory, "state.json"))
        yield Session(
            id=state.session, is_subagent_log=bool(state.agent), agent=state.kind, project=_work_dir(directory, facts),
            parent=name(facts, "forkedFrom"), provider=state.provider, model=state.model,
        )  # fmt: skip
    message = row.message
    if isinstance(message, dict) and isinstance(message.get("type"), str) and row.type is None:
        yield from _cli(message["type"], mapping(message, "payload"), read_time(row.timestamp), state)
    elif isinstance(row.type, str):
        yield from _code(row.type, row, read_time(row.time), state)


def _cli(kind: str, payload: Json, time: int | None, state: State) -> Steps:
    match kind:
        case "SubagentEvent":
            inner = mapping(payload, "event")
            called = payload.get("parent_tool_call_id", payload.get("task_tool_call_id"))
            outer, state.thread = state.thread, name(payload, "agent_id") or name(called) or SUB_AGENT
            yield Session(thread=state.thread, agent=name(payload, "subagent_type") or SUB_AGENT)
            yield from _cli(text(inner, "type"), mapping(inner, "payload"), time, state)
            state.thread = outer
            yield Session(thread=outer)
        case "TurnBegin" | "SteerInput":
            yield _prompt(time, payload.get("user_input"))
        case "StepBegin":
            yield from _begin_step(time, "", state)
        case "ContentPart":
            yield _part(time, payload)
        case "ToolCall":
            function = mapping(payload, "function")
            yield _call(time, payload.get("id"), function.get("name"), function.get("arguments"), state)
        case "ToolCallPart":
            yield MoreInput(time, text(payload, "arguments_part"))
        case "ToolResult":
            value = mapping(payload, "return_value") or mapping(payload, "result")
            output = text_of(value.get("output")) or text(value, "message")
            yield _result(time, payload.get("tool_call_id"), output, value.get("is_error"), state)
        case "StatusUpdate" if payload.get("token_usage") is not None:
            counts = tokens(
                payload["token_usage"], input="input_other", output="output", cache_read="input_cache_read",
                cache_write="input_cache_creation",
            )  # fmt: skip
            yield _response(time, counts, name(payload, "message_id"), "", state)
        case "CompactionEnd":
            yield Compaction(time)
        case "TurnEnd":
            yield Status(time, "success")
        case _:
            yield At(time)


def _code(kind: str, row: Row, time: int | None, state: State) -> Steps:
    match kind:
        case "turn.prompt" | "turn.steer":
            yield _prompt(time, row.input)
        case "turn.cancel":
            yield Status(time, "cancelled")
        case "turn.ended" if row.reason == "failed":
            yield Status(time, "error", text(row.error, "message"))
        case "turn.step.retrying":
            yield _failure(time, name(row.step_id), text(row.error_message), state)
        case "llm.request":
            alias = state.aliases.get(name(row.model_alias))
            state.asked = (alias or _provider_name(name(row.provider), ""), name(row.model))
            yield Request(time)
        case "usage.record" if row.usage is not None:
            counts = tokens(
                row.usage, input="inputOther", output="output", cache_read="inputCacheRead",
                cache_write="inputCacheCreation",
            )  # fmt: skip
            yield _response(time, counts, "", name(row.model), state)
        case "context.apply_compaction":
            yield Compaction(time, text(row.summary))
        case "config.update" if name(row.profile_name) and state.agent:
            yield Session(agent=name(row.profile_name), time=time)
        case "context.append_loop_event":
            yield from _loop(time, mapping(row.event), state)
        case _:
            yield At(time or read_time(row.created_at))


def _loop(time: int | None, event: Json, state: State) -> Steps:
    match event.get("type"):
        case "step.begin":
            yield from _begin_step(time, name(event, "uuid"), state)
        case "content.part":
            yield _part(time, mapping(event, "part"))
        case "tool.call":
            yield _call(time, event.get("toolCallId"), event.get("name"), event.get("args"), state)
        case "tool.result":
            result = mapping(event, "result")
            yield _result(time, event.get("toolCallId"), text_of(result.get("output")), result.get("isError"), state)
        case "step.end" if event.get("finishReason") in ("end_turn", "stop"):
            yield Status(time, "success")
        case "step.end" if event.get("finishReason") == "error":
            yield _failure(time, name(event, "uuid"), "", state)
        case "step.end" if event.get("finishReason") == "interrupted":
            _call_of(state).is_cut = True
            yield At(time)
        case _:
            yield At(time)


def _prompt(time: int | None, content: Any) -> Prompt:
    words = text_of(content)
    return Prompt(time, words, role="user" if words.strip() else "system")


def _part(time: int | None, part: Json) -> Text:
    if part.get("type") == "think":
        return Text(time, reasoning=text(part, "think"), is_piece=True)
    return Text(time, [part], is_piece=True)


def _call_of(state: State) -> Call:
    return state.steps.setdefault(state.speaker, Call())


def _begin_step(time: int | None, step_id: str, state: State) -> Steps:
    call = _call_of(state)
    call.number += 1
    call.name, call.is_cut = step_id or f"{state.speaker or time}:{call.number}", False
    yield Request(time)


def _call(time: int | None, call_id: Any, tool: Any, arguments: Any, state: State) -> ToolCall:
    """A tool call; ids such as `Bash_0` come again and again, so the step is a part of its key."""
    key = f"{_call_of(state).name or state.session}:{text(call_id)}"
    state.calls[f"{state.speaker}/{text(call_id)}"] = key
    return ToolCall(time, key, name(tool) or UNKNOWN, arguments or "", id=text(call_id))


def _result(time: int | None, call_id: Any, output: str, is_error: Any, state: State) -> ToolResult:
    key = state.calls.pop(f"{state.speaker}/{text(call_id)}", "")
    return ToolResult(time, key, output, failed=is_error is True)


def _response(time: int | None, counts: Tokens | None, message_id: str, model: str, state: State) -> Response:
    call = _call_of(state)
    if len(message_id) >= _UNIQUE:
        key = message_id
    elif message_id:
        key = f"{state.session}:{state.speaker}:{message_id}"
    elif call.name and time is not None:
        key = fingerprint(call.name, time, model, counts and counts.usage)
    else:
        key = ""  # its place in the log
    provider, asked = state.asked
    known = _model_name(asked) or _model_name(model)
    is_whole = counts is not None and bool(counts.usage) and not call.is_cut
    return Response(
        time=time, key=key, tokens=counts, provider=(provider or _PROVIDER) if known else "", model=known,
        rank=int(CopyRank.EMBEDDED if state.thread else CopyRank.ORIGINAL), quality="exact" if is_whole else "partial",
    )  # fmt: skip


def _failure(time: int | None, step_id: str, error: str, state: State) -> Response:
    provider, model = state.asked
    return Response(
        time=time, key=f"{step_id}:failed", failed=True, error=error, provider=provider, model=_model_name(model)
    )


def _location(path: str) -> tuple[str, str]:
    """(session's folder, sub-agent's id) of `<folder>[/subagents/<id> | /agents/<id>]/wire.jsonl`."""
    own = folder_of(path)
    above, agent = os.path.split(own)
    session, kind = os.path.split(above)
    if kind not in {"subagents", "agents"}:
        return own, ""
    return session, "" if kind == "agents" and agent == MAIN else agent


def _meta(path: str) -> str:
    return os.path.join(folder_of(path), "meta.json")


def _shared(directory: str, file_name: str) -> str:
    """A file in the agent's home, which is three folders above a session's."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(directory))), file_name)


def _sidecars(path: str) -> Iterator[str]:
    directory, agent = _location(path)
    shared = ("kimi.json", "workspaces.json", "config.toml", "config.json")
    yield from (_shared(directory, file_name) for file_name in shared)
    yield os.path.join(directory, "state.json")
    if agent:
        yield _meta(path)


def _work_dir(directory: str, facts: Json) -> str:
    """The working folder, as far as some file knows it; Kimi CLI names a project's folder by the MD5 of its path."""
    from hashlib import md5

    project = os.path.basename(os.path.dirname(directory))
    space = mapping(read_object(_shared(directory, "workspaces.json")), "workspaces", project)
    found = [facts.get("workDir"), facts.get("cwd"), mapping(facts, "custom").get("cwd"), space.get("root")]
    for entry in objects(read_object(_shared(directory, "kimi.json")).get("work_dirs")):
        work_dir = text(entry, "path")
        if md5(work_dir.encode("utf-8", "replace"), usedforsecurity=False).hexdigest() in project:
            found.append(work_dir)
    return next(filter(None, map(folder, found)), "")


def _config(directory: str) -> Json:
    """The settings, of which older versions have another file; none when they are missing or damaged."""
    import tomllib

    try:
        found = tomllib.loads(read_sidecar(_shared(directory, "config.toml")).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        found = {}
    return found or read_object(_shared(directory, "config.json"))


def _aliases(config: Json) -> dict[str, str]:
    """Alias of a model → its provider, as the price list knows it."""
    found = {}
    for alias, model in mapping(config, "models").items():
        provider = name(model, "provider")
        if provider:
            found[alias] = _provider_name(provider, name(config, "providers", provider, "type"))
    return found


def _provider_name(provider: str, kind: str) -> str:
    """A provider of some kind of protocol, as the price list knows it."""
    is_own = not provider or any(word in f"{provider} {kind}".lower() for word in _OWN)
    return _PROVIDER if is_own else kind or provider


def _model_name(alias: str) -> str:
    """The model behind an alias such as `kimi-code/kimi-for-coding`; "" for a reference such as `__env_model__`."""
    model = alias.removeprefix("kimi-code/")
    return "" if model.startswith("__") and model.endswith("__") else model


def _subagent_logs(path: str) -> list[str]:
    """The logs of a session's sub-agents."""
    found = files.find_paths(_location(path)[0], "*agents", "*", "wire.jsonl")
    return sorted(log for log in found if _location(log)[1])


def _is_row(row: Json) -> bool:
    message = mapping(row, "message")
    if isinstance(message.get("payload"), dict):
        return "timestamp" in row and isinstance(message.get("type"), str)
    if row.get("type") == "metadata":
        return isinstance(row.get("protocol_version"), str)
    return name(row, "type") in _CODE_ROWS


def _session_of(path: str) -> str:
    return os.path.basename(_location(path)[0]) or UNKNOWN


SOURCE = source(
    id="kimi",
    title="Kimi",
    places=PLACES["kimi"],
    logs="wire.jsonl",
    rows=json_lines(Row),
    steps=steps,
    state=_begin,
    state_type=State,
    parser_version=2,
    is_row=_is_row,
    session_of=_session_of,
    subagent_of=lambda path: _location(path)[1],
    sidecars=_sidecars,
    subagent_logs=_subagent_logs,
)
