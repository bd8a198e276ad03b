"""Snapshots extracted from a live agent, from a message history alone, or from a log alone.

    extract_context_snapshot(agent, "coder", message_history=result.all_messages())
    extract_context_snapshot(message_history=stored)
    extract_context_snapshot(log="session.jsonl")

An agent is known by what it has (`toolsets`, `_system_prompts`, `model`), as pydantic-ai's have; nothing of it is
imported. Token counts are those of `count_tokens` for the model, or of the caller's own `count`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sessionlog.context.snapshots.full_snapshot import FullContextSnapshot, PromptSnapshot
from sessionlog.context.snapshots.logged import LogLike
from sessionlog.context.snapshots.material import Material, gather
from sessionlog.context.snapshots.snapshot import ContextSnapshot
from sessionlog.context.snapshots.snapshot_items import (
    MessageDetailSnapshot,
    MessageSnapshot,
    ToolDetailSnapshot,
    ToolSnapshot,
)
from sessionlog.context.snapshots.tally import Count, Tally
from sessionlog.context.snapshots.turns import number_turns
from sessionlog.context.usage import SessionUsage, TurnUsage, sum_turns
from sessionlog.messages.entry import Entry, Piece

_KEYS = ("TAVILY_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN")
_FIELDS = {
    "user": "user_tokens",
    "assistant": "assistant_tokens",
    "thinking": "assistant_tokens",
    "tool_call": "tool_call_tokens",
    "tool_return": "tool_return_tokens",
}


def extract_context_snapshot(
    agent: object = None,
    agent_id: str = "",
    context_window: int | None = None,
    message_history: Iterable[object] | None = None,
    model_input_tokens: int | None = None,
    model_output_tokens: int | None = None,
    turn_usage: TurnUsage | None = None,
    session_usage: SessionUsage | None = None,
    tool_definitions: Iterable[object] | None = None,
    *,
    log: LogLike | None = None,
    request: int | None = None,
    model: str | None = None,
    count: Count | None = None,
) -> ContextSnapshot:
    """Return what fills the window, and what the last turn and the session used.

    Args:
        agent: A live agent, or something that holds one as `_agent`; None without one.
        agent_id: What the snapshot is called; the session's id where a log is given.
        context_window: Tokens; None = the model's, or the default where that is unknown.
        message_history: Messages of any kind (`messages` says which); goes before those of the log.
        model_input_tokens: The prompt tokens that the provider reported; None = what the log tells.
        model_output_tokens: The same of the output.
        turn_usage: Usage of the last turn; None = what history or log tell.
        session_usage: Usage of the session; None = what history or log tell.
        tool_definitions: Tools of any kind; None = those of the agent, else of the log.
        log: A path or events.
        request: With a log: the state after the answer to this request, from 1.
        model: The model's name, where neither agent nor log says it.
        count: Text → tokens, a tokenizer of one's own.

    Raises:
        LogNotReadable: The log is a path that cannot be read, or is no agent's log.
    """
    material = gather(
        agent, agent_id, context_window=context_window, message_history=message_history,
        tool_definitions=tool_definitions, log=log, request=request, model=model,
    )  # fmt: skip
    return snapshot_of(
        material, count=count, turn_usage=turn_usage, session_usage=session_usage,
        model_input_tokens=model_input_tokens, model_output_tokens=model_output_tokens,
    )  # fmt: skip


def extract_full_context_snapshot(
    agent: object = None,
    agent_id: str = "",
    context_window: int | None = None,
    message_history: Iterable[object] | None = None,
    *,
    tool_definitions: Iterable[object] | None = None,
    log: LogLike | None = None,
    request: int | None = None,
    model: str | None = None,
    count: Count | None = None,
    env: Mapping[str, str] | None = None,
) -> FullContextSnapshot:
    """Return everything that fills the window, with its texts, and what no longer fits.

    Args:
        agent: As for `extract_context_snapshot`, like all that is not named here.
        agent_id: What the snapshot is called.
        context_window: Tokens.
        message_history: Messages of any kind.
        tool_definitions: Tools of any kind.
        log: A path or events.
        request: With a log: the state after the answer to this request, from 1.
        model: The model's name.
        count: Text → tokens.
        env: Where a live agent's tools find their keys; None = this process's environment.

    Raises:
        LogNotReadable: The log is a path that cannot be read, or is no agent's log.
    """
    material = gather(
        agent, agent_id, context_window=context_window, message_history=message_history,
        tool_definitions=tool_definitions, log=log, request=request, model=model,
    )  # fmt: skip
    environment = {} if agent is None else _masked(os.environ if env is None else env)
    return full_snapshot_of(material, count=count, environment=environment)


def snapshot_of(
    material: Material,
    *,
    count: Count | None = None,
    turn_usage: TurnUsage | None = None,
    session_usage: SessionUsage | None = None,
    model_input_tokens: int | None = None,
    model_output_tokens: int | None = None,
) -> ContextSnapshot:
    """Count what was gathered."""
    tally = Tally(count, model=material.model)
    tokens = dict.fromkeys([f"{when}_{name}" for when in ("history", "current") for name in _FIELDS.values()], 0)
    said = []
    turns = number_turns(material.messages)
    for message, turn in zip(material.messages, turns, strict=True):
        when = "current" if turn == turns[-1] else "history"
        for part in message.pieces:
            if part.kind != "system":
                taken = tally.part(part)
                tokens[f"{when}_{_FIELDS[part.kind]}"] += taken
                if part.kind in ("user", "assistant"):
                    said.append(_said(message, part, taken))
    last, session = (material.turns[-1], sum_turns(material.turns)) if material.turns else (None, None)
    return ContextSnapshot(
        agent_id=material.agent_id,
        system_prompts=material.prompts,
        system_prompt_tokens=sum(map(tally.text, material.prompts)),
        tools=tuple(
            ToolSnapshot(
                name=tool.name,
                description=tool.description,
                parameters_tokens=tally.json(tool.schema),
                total_tokens=tally.json(tool.definition),
            )
            for tool in material.tools
        ),
        messages=tuple(said),
        model_input_tokens=material.prompt_tokens if model_input_tokens is None else model_input_tokens,
        model_output_tokens=material.output_tokens if model_output_tokens is None else model_output_tokens,
        per_request_usage=material.steps,
        context_window=material.window,
        is_window_known=material.is_window_known,
        turn_usage=last if turn_usage is None else turn_usage,
        session_usage=session if session_usage is None else session_usage,
        estimated=tally.estimated,
        **tokens,
    )


def full_snapshot_of(
    material: Material, *, count: Count | None = None, environment: Mapping[str, str] | None = None
) -> FullContextSnapshot:
    """Count what was gathered, and see what of it fits, from the newest message back."""
    tally = Tally(count, model=material.model)
    prompts = tuple(PromptSnapshot(content=text, tokens=tally.text(text)) for text in material.prompts)
    tools = tuple(
        ToolDetailSnapshot(
            name=tool.name,
            description=tool.description,
            parameters_schema=tool.schema,
            parameters_tokens=tally.json(tool.schema),
            total_tokens=tally.json(tool.definition),
            source_type=tool.source_type,
            is_async=tool.is_async,
            requires_approval=tool.requires_approval,
            source_code=tool.source_code,
        )
        for tool in material.tools
    )
    room = material.window - sum(p.tokens for p in prompts) - sum(t.total_tokens for t in tools)
    pieces = [(m, part, tally.bare(part)) for m in material.messages for part in m.pieces if part.kind != "system"]
    names = {part.call_id: part.name for _, part, _ in pieces if part.kind == "tool_call" and part.call_id}
    kept = len(pieces)
    while kept and pieces[kept - 1][2] <= room:
        kept -= 1
        room -= pieces[kept][2]
    return FullContextSnapshot(
        agent_id=material.agent_id,
        model_name=material.model,
        context_window=material.window,
        is_window_known=material.is_window_known,
        model_settings=material.settings,
        system_prompts=prompts,
        tools=tools,
        messages=tuple(_detail(*piece, names, in_context=index >= kept) for index, piece in enumerate(pieces)),
        tool_environment=environment or {},
        estimated=tally.estimated,
    )


def _said(message: Entry, part: Piece, tokens: int) -> MessageSnapshot:
    return MessageSnapshot(role=part.kind, content=part.text, estimated_tokens=tokens, timestamp=message.timestamp)


def _detail(
    message: Entry, part: Piece, tokens: int, names: Mapping[str, str | None], *, in_context: bool
) -> MessageDetailSnapshot:
    role = "user" if part.kind == "user" else "tool" if part.kind == "tool_return" else "assistant"
    return MessageDetailSnapshot(
        role=role,
        content=part.text,
        estimated_tokens=tokens,
        timestamp=message.timestamp,
        in_context=in_context,
        tool_name=part.name or names.get(part.call_id or ""),
        tool_call_id=part.call_id,
        is_tool_call=part.kind == "tool_call",
        is_tool_result=part.kind == "tool_return",
    )


def _masked(env: Mapping[str, str]) -> dict[str, str]:
    """The keys that are there; a short value shows nothing of itself."""
    return {key: f"{env[key][:4]}...{env[key][-4:]}" if len(env[key]) > 12 else "***" for key in _KEYS if key in env}
