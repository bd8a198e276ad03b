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

import hashlib
import os
import tomllib
from collections.abc import Iterable, Iterator
from glob import escape, glob
from typing import Any

from msgspec import Struct

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
    first_of,
    folder,
    json_lines,
    mapping,
    name,
    parts_of,
    read_json,
    read_sidecar,
    read_time,
    source,
    text,
    text_of,
    tokens,
)

_PROVIDER = "moonshotai"
_OWN = ("kimi", "moonshot")
_CONFIGS = ("config.toml", "config.json")
_UNIQUE = 16  # characters from which a message's id is one of its provider's, not a counter
_CLI_ROWS = frozenset({"TurnBegin", "SteerInput", "StepBegin", "StatusUpdate", "SubagentEvent", "ContentPart"})
_CODE_ROWS = frozenset(
    {"context.append_loop_event", "usage.record", "turn.prompt", "config.update", "permission.set_mode"}
)


class Row(
    Struct,
    rename={
        "model_alias": "modelAlias",
        "profile": "profileName",
        "step_id": "stepId",
        "error_message": "errorMessage",
    },
):
    """A line of either dialect: Kimi CLI has `message`, Kimi Code `type`."""

    timestamp: Any = None
    message: Any = None
    type: Any = None
    time: Any = None
    created_at: Any = None
    input: Any = None
    event: Any = None
    usage: Any = None
    model: Any = None
    model_alias: Any = None
    provider: Any = None
    summary: Any = None
    profile: Any = None
    step_id: Any = None
    reason: Any = None
    error: Any = None
    error_message: Any = None


class Step_(Struct):  # noqa: N801 - `Step` is the kit's
    """A call of the model and the tools that it asks for."""

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
    steps: dict[str, Step_] = {}
    calls: dict[str, str] = {}


def _begin(path: str) -> State:
    session, agent = _names(path)
    config = _config(path)
    provider, model = _default_model(path, config)
    state = State(path, session, agent, provider=provider, model=model, aliases=_aliases(config))
    if agent:
        state.kind = name(_small(os.path.dirname(path), "meta.json").get("subagent_type")) or SUB_AGENT
    return state


def steps(row: Row, state: State) -> Steps:
    """What a line means."""
    if not state.is_begun:
        state.is_begun = True
        yield Session(
            id=state.session, is_subagent_log=bool(state.agent), agent=state.kind, project=_work_dir(state.path),
            parent=_parent(state.path), provider=state.provider, model=state.model,
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
            outer, state.thread = state.thread, name(payload.get("agent_id")) or name(called) or SUB_AGENT
            yield Session(thread=state.thread, agent=name(payload.get("subagent_type")) or SUB_AGENT)
            yield from _cli(text(inner.get("type")), mapping(inner, "payload"), time, state)
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
            yield MoreInput(time, text(payload.get("arguments_part")))
        case "ToolResult":
            value = mapping(payload, "return_value") or mapping(payload, "result")
            output = text_of(value.get("output")) or text(value.get("message"))
            yield _result(time, payload.get("tool_call_id"), output, value.get("is_error"), state)
        case "StatusUpdate" if payload.get("token_usage") is not None:
            counts = tokens(
                payload["token_usage"], input="input_other", output="output", cache_read="input_cache_read",
                cache_write="input_cache_creation",
            )  # fmt: skip
            yield _response(time, counts, name(payload.get("message_id")), "", state)
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
            yield Status(time, "error", text(mapping(row.error).get("message")))
        case "turn.step.retrying":
            yield _failure(time, name(row.step_id), text(row.error_message), state)
        case "llm.request":
            alias = state.aliases.get(name(row.model_alias))
            state.asked = (alias or _provider_name(name(row.provider)), name(row.model))
            yield Request(time)
        case "usage.record" if row.usage is not None:
            counts = tokens(
                row.usage, input="inputOther", output="output", cache_read="inputCacheRead",
                cache_write="inputCacheCreation",
            )  # fmt: skip
            yield _response(time, counts, "", name(row.model), state)
        case "context.apply_compaction":
            yield Compaction(time, text(row.summary))
        case "config.update" if name(row.profile) and state.agent:
            yield Session(agent=name(row.profile), time=time)
        case "context.append_loop_event":
            yield from _loop(time, mapping(row.event), state)
        case "metadata":
            yield At(time or read_time(row.created_at))
        case _:
            yield At(time)


def _loop(time: int | None, event: Json, state: State) -> Steps:
    match event.get("type"):
        case "step.begin":
            yield from _begin_step(time, name(event.get("uuid")), state)
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
            yield _failure(time, name(event.get("uuid")), "", state)
        case "step.end" if event.get("finishReason") == "interrupted":
            _step(state).is_cut = True
            yield At(time)
        case _:
            yield At(time)


def _prompt(time: int | None, content: Any) -> Prompt:
    words = "\n".join(filter(None, map(_piece, parts_of(content))))
    return Prompt(time, words, role="user" if words.strip() else "system")


def _piece(part: Json) -> str:
    kind = text(part.get("type"))
    return text(part.get("text")) if kind in {"text", ""} else f"[{kind.removesuffix('_url')}]"


def _part(time: int | None, part: Json) -> Text:
    if part.get("type") == "think":
        return Text(time, reasoning=text(part.get("think")), is_piece=True)
    return Text(time, _piece(part), is_piece=True)


def _step(state: State) -> Step_:
    return state.steps.setdefault(state.thread or state.agent, Step_())


def _begin_step(time: int | None, step_id: str, state: State) -> Steps:
    step = _step(state)
    whose = state.thread or state.agent
    step.number += 1
    step.name, step.is_cut = step_id or f"{whose or time}:{step.number}", False
    yield Request(time)


def _call(time: int | None, call_id: Any, tool: Any, arguments: Any, state: State) -> ToolCall:
    """A tool call; ids such as `Bash_0` come again and again, so the step is a part of its key."""
    whose = state.thread or state.agent
    key = f"{_step(state).name or state.session}:{text(call_id)}"
    state.calls[f"{whose}/{text(call_id)}"] = key
    return ToolCall(time, key, name(tool) or UNKNOWN, arguments or "", id=text(call_id))


def _result(time: int | None, call_id: Any, output: str, is_error: Any, state: State) -> ToolResult:
    key = state.calls.pop(f"{state.thread or state.agent}/{text(call_id)}", "")
    return ToolResult(time, key, output, failed=is_error is True)


def _response(time: int | None, counts: Tokens | None, message_id: str, model: str, state: State) -> Response:
    step = _step(state)
    whose = state.thread or state.agent
    if len(message_id) >= _UNIQUE:
        key = message_id
    elif message_id:
        key = f"{state.session}:{whose}:{message_id}"
    elif step.name and time is not None:
        key = fingerprint(step.name, time, model, counts and counts.usage)
    else:
        key = ""  # its place in the log
    provider, asked = state.asked
    known = _model_name(asked) or _model_name(model)
    is_whole = counts is not None and bool(counts.usage) and not step.is_cut
    return Response(
        time=time, key=key, tokens=counts, provider=(provider or _PROVIDER) if known else "", model=known,
        rank=int(CopyRank.EMBEDDED if state.thread else CopyRank.ORIGINAL), quality="exact" if is_whole else "partial",
    )  # fmt: skip


def _failure(time: int | None, step_id: str, error: str, state: State) -> Response:
    provider, model = state.asked
    return Response(
        time=time, key=f"{step_id}:failed", failed=True, error=error, provider=provider, model=_model_name(model)
    )


def _names(path: str) -> tuple[str, str]:
    """(session, sub-agent's id) of `…/<session>[/subagents/<id> | /agents/<id>]/wire.jsonl`."""
    own = os.path.dirname(os.path.abspath(path))
    above = os.path.basename(os.path.dirname(own))
    if above not in {"subagents", "agents"}:
        return os.path.basename(own) or UNKNOWN, ""
    agent = os.path.basename(own)
    session = os.path.basename(os.path.dirname(os.path.dirname(own)))
    return session or UNKNOWN, "" if above == "agents" and agent == MAIN else agent


def _folders(path: str) -> tuple[str, str]:
    """(the session's folder, the agent's own folder)."""
    own = os.path.dirname(os.path.abspath(path))
    if os.path.basename(os.path.dirname(own)) in {"subagents", "agents"}:
        own = os.path.dirname(os.path.dirname(own))
    return own, os.path.dirname(os.path.dirname(os.path.dirname(own)))


def _small(directory: str, file_name: str) -> Json:
    """A small JSON or TOML file; empty when it is missing or damaged."""
    raw = read_sidecar(os.path.join(directory, file_name))
    if not file_name.endswith(".toml"):
        return mapping(read_json(raw))
    try:
        return mapping(tomllib.loads(raw.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return {}


def _sidecars(path: str) -> Iterator[str]:
    session, share = _folders(path)
    yield from (os.path.join(share, one) for one in ("kimi.json", "workspaces.json", *_CONFIGS))
    yield os.path.join(session, "state.json")
    if _names(path)[1]:
        yield os.path.join(os.path.dirname(os.path.abspath(path)), "meta.json")


def _work_dir(path: str) -> str:
    """The working folder, as far as some file knows it; Kimi CLI names a project's folder by the MD5 of its path."""
    session, share = _folders(path)
    state = _small(session, "state.json")
    project = os.path.basename(os.path.dirname(session))
    space = mapping(mapping(_small(share, "workspaces.json").get("workspaces")).get(project))
    found = [state.get("workDir"), state.get("cwd"), mapping(state, "custom").get("cwd"), space.get("root")]
    known = _small(share, "kimi.json").get("work_dirs")
    for entry in known if isinstance(known, list) else ():
        work_dir = text(mapping(entry).get("path"))
        if hashlib.md5(work_dir.encode("utf-8", "replace"), usedforsecurity=False).hexdigest() in project:
            found.append(work_dir)
    return next(filter(None, map(folder, found)), "")


def _parent(path: str) -> str:
    return name(_small(_folders(path)[0], "state.json").get("forkedFrom"))


def _config(path: str) -> Json:
    share = _folders(path)[1]
    return next(filter(None, (_small(share, one) for one in _CONFIGS)), {})


def _default_model(path: str, config: Json) -> tuple[str, str]:
    """(provider, model) that Kimi CLI is set to use now, or that a sub-agent was launched with."""
    is_part = bool(_names(path)[1])
    launched = mapping(_small(os.path.dirname(path), "meta.json").get("launch_spec")) if is_part else {}
    alias = name(launched.get("effective_model")) or name(config.get("default_model"))
    if not alias:
        return _PROVIDER, UNKNOWN
    model = name(mapping(config, "models", alias).get("model"))
    return _aliases(config).get(alias, _PROVIDER), _model_name(model or alias) or UNKNOWN


def _aliases(config: Json) -> dict[str, str]:
    """Alias of a model → its provider, as the price list knows it."""
    providers = mapping(config, "providers")
    found = {}
    for alias, model in mapping(config, "models").items():
        provider = name(mapping(model).get("provider"))
        kind = name(mapping(providers, provider).get("type"))
        is_own = kind == "kimi" or any(word in provider.lower() for word in _OWN)
        if provider:
            found[alias] = _PROVIDER if is_own else kind or provider
    return found


def _provider_name(provider: str) -> str:
    return _PROVIDER if not provider or any(word in provider.lower() for word in _OWN) else provider


def _model_name(alias: str) -> str:
    """The model behind an alias such as `kimi-code/kimi-for-coding`; "" for a reference such as `__env_model__`."""
    model = alias.removeprefix("kimi-code/")
    return "" if model.startswith("__") and model.endswith("__") else model


def _subagent_logs(path: str) -> list[str]:
    """The logs of a session's sub-agents; none for those of a sub-agent."""
    if _names(path)[1]:
        return []
    found = sorted(glob(os.path.join(escape(_folders(path)[0]), "*agents", "*", "wire.jsonl")))
    return [log for log in found if _names(log)[1]]


def _is_row(row: Json) -> bool:
    message = mapping(row, "message")
    if isinstance(message.get("payload"), dict) and "timestamp" in row:
        return name(message.get("type")) in _CLI_ROWS
    if row.get("type") == "metadata":
        return isinstance(row.get("protocol_version"), str)
    return name(row.get("type")) in _CODE_ROWS


def _log_names(path: str) -> Iterable[str]:
    session, agent = _names(path)
    return (f"{session}/{agent}" if agent else session,)


SOURCE = source(
    id="kimi",
    title="Kimi",
    places=(
        first_of("$KIMI_SHARE_DIR", "$KIMI_DATA_DIR", "~/.kimi", below=("sessions",), is_list=True),
        first_of("$KIMI_CODE_HOME", "~/.kimi-code", below=("sessions",)),
    ),
    logs="wire.jsonl",
    rows=json_lines(Row),
    steps=steps,
    state=_begin,
    state_type=State,
    is_row=_is_row,
    session_of=lambda path: _names(path)[0],
    name_sessions=_log_names,
    sidecars=_sidecars,
    subagent_logs=_subagent_logs,
)
