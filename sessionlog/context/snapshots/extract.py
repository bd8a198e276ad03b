"""Extract snapshots from a live agent, a message history or a log.

    extract_context_snapshot(agent, "coder", message_history=result.all_messages())
    extract_context_snapshot(message_history=stored)
    extract_context_snapshot(log="session.jsonl")

An agent is read by its attributes (`toolsets`, `_system_prompts`, `model`), which pydantic-ai's agents have;
pydantic-ai is not imported. Tokens are counted by `count_tokens` for the model, or by the caller's own `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sessionlog.context.snapshots.full_snapshot import FullContextSnapshot, PromptSnapshot
from sessionlog.context.snapshots.gather import gather
from sessionlog.context.snapshots.logged import LogLike, SnapshotInput
from sessionlog.context.snapshots.secrets import SecretFilter
from sessionlog.context.snapshots.snapshot import ContextSnapshot
from sessionlog.context.snapshots.snapshot_items import (
    MessageDetailSnapshot,
    MessageSnapshot,
    ToolDetailSnapshot,
    ToolSnapshot,
)
from sessionlog.context.snapshots.tools import Tool
from sessionlog.context.snapshots.turns import between_ms, number_turns
from sessionlog.context.steps import read_duration
from sessionlog.context.tokens import TokenCount, count_tokens
from sessionlog.context.usage import SessionUsage, TurnUsage, sum_turns
from sessionlog.context.xray.measure import IMAGE
from sessionlog.events.times import format_time
from sessionlog.messages.entry import Piece
from sessionlog.messages.json_value import json_text

_FIELDS = {
    "user": "user_tokens",
    "assistant": "assistant_tokens",
    "thinking": "assistant_tokens",
    "tool_call": "tool_call_tokens",
    "tool_return": "tool_return_tokens",
}
_ROLES = {"user": "user", "tool_return": "tool"}


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
    turn_start_time: float | None = None,
    *,
    log: LogLike | None = None,
    request: int | None = None,
    model: str | None = None,
    count: Count | None = None,
) -> ContextSnapshot:
    """Return what fills the window, and the usage of the last turn and the session.

    Args:
        agent: A live agent, or an object that holds one as `_agent`; None without one.
        agent_id: The name of the snapshot; by default the id of the log's session.
        context_window: Tokens; None = the model's, or the default where that is unknown.
        message_history: Messages in any format that `messages.read` knows; they replace those of the log.
        model_input_tokens: The prompt tokens that the provider reported; None = those in the log.
        model_output_tokens: The same of the output.
        turn_usage: Usage of the last turn; None = from history or log.
        session_usage: Usage of the session; None = from history or log.
        tool_definitions: Tools of any kind; None = those of the agent, else of the log.
        turn_start_time: When the last turn began, in seconds since 1970 (`time.time()`). The turn's duration is
            measured from it, and that of its first request if the history has no time for that.
        log: A path or events.
        request: With a log: the state after the answer to this request, from 1.
        model: The model's name; None = from agent or log.
        count: Text → tokens, a tokenizer of the caller.

    Raises:
        LogNotReadable: The log is a path that cannot be read, or is no agent's log.
    """
    known = gather(
        agent, agent_id, context_window=context_window, message_history=message_history,
        tool_definitions=tool_definitions, log=log, request=request, model=model,
    )  # fmt: skip
    if turn_start_time is not None:
        known = _timed_from(turn_start_time, known)
    given = {
        "turn_usage": turn_usage, "session_usage": session_usage, "model_input_tokens": model_input_tokens,
        "model_output_tokens": model_output_tokens,
    }  # fmt: skip
    overrides: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(snapshot_of(known, count=count), **overrides)


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
    memory_blocks: Sequence[Mapping[str, Any]] = (),
    tool_rules: Sequence[Mapping[str, Any]] = (),
) -> FullContextSnapshot:
    """Return everything that fills the window, with its texts, and what no longer fits.

    Args:
        agent: As for `extract_context_snapshot`.
        agent_id: The name of the snapshot.
        context_window: Tokens.
        message_history: Messages of any kind.
        tool_definitions: Tools of any kind.
        log: A path or events.
        request: With a log: the state after the answer to this request, from 1.
        model: The model's name.
        count: Text → tokens.
        env: The environment with the keys of a live agent's tools; None = this process's.
        memory_blocks: What the agent keeps from earlier sessions; it is in the window as JSON.
        tool_rules: Rules for the use of tools.

    Raises:
        LogNotReadable: The log is a path that cannot be read, or is no agent's log.
    """
    known = gather(
        agent, agent_id, context_window=context_window, message_history=message_history,
        tool_definitions=tool_definitions, log=log, request=request, model=model,
    )  # fmt: skip
    return full_snapshot_of(known, count=count, env=env, memory_blocks=memory_blocks, tool_rules=tool_rules)


def snapshot_of(known: SnapshotInput, *, count: Count | None = None) -> ContextSnapshot:
    """Count the tokens of gathered input."""
    tally, secrets = Tally(count, model=known.model), SecretFilter()
    tokens = dict.fromkeys([f"{when}_{name}" for when in ("history", "current") for name in _FIELDS.values()], 0)
    texts = []
    turns = number_turns(known.messages)
    for message, turn in zip(known.messages, turns, strict=True):
        when = "current" if turn == turns[-1] else "history"
        for part in message.pieces:
            if part.kind == "system":
                continue
            size = tally.piece(part)
            tokens[f"{when}_{_FIELDS[part.kind]}"] += size
            if part.kind in ("user", "assistant"):
                text = secrets.text(part.text)
                texts.append(
                    MessageSnapshot(role=part.kind, content=text, estimated_tokens=size, timestamp=message.timestamp)
                )
    return ContextSnapshot(
        agent_id=known.session_id,
        system_prompts=tuple(map(secrets.text, known.prompts)),
        system_prompt_tokens=sum(map(tally.text, known.prompts)),
        tools=tuple(ToolSnapshot(**_tool_fields(tool, tally, secrets)) for tool in known.tools),
        messages=tuple(texts),
        model_input_tokens=known.prompt_tokens,
        model_output_tokens=known.output_tokens,
        per_request_usage=known.steps,
        context_window=known.window,
        is_window_known=known.is_window_known,
        turn_usage=known.turns[-1] if known.turns else None,
        session_usage=sum_turns(known.turns) if known.turns else None,
        estimated=tally.estimated,
        **tokens,
    )


def full_snapshot_of(
    known: SnapshotInput,
    *,
    count: Count | None = None,
    env: Mapping[str, str] | None = None,
    memory_blocks: Sequence[Mapping[str, Any]] = (),
    tool_rules: Sequence[Mapping[str, Any]] = (),
) -> FullContextSnapshot:
    """Count the tokens of gathered input; mark which messages fit the window, from the newest back."""
    tally, secrets = Tally(count, model=known.model), SecretFilter(env)
    prompts = tuple(PromptSnapshot(content=secrets.text(text), tokens=tally.text(text)) for text in known.prompts)
    tools = tuple(
        ToolDetailSnapshot(
            parameters_schema=secrets.schema(tool.schema),
            source_type=tool.source_type,
            is_async=tool.is_async,
            requires_approval=tool.requires_approval,
            source_code=secrets.text(tool.source_code or "") or None,
            **_tool_fields(tool, tally, secrets),
        )
        for tool in known.tools
    )
    memory = sum(map(tally.json, memory_blocks))
    room = known.window - sum(p.tokens for p in prompts) - sum(t.total_tokens for t in tools) - memory
    pieces = [
        (m, part, tally.text_and_media(part)) for m in known.messages for part in m.pieces if part.kind != "system"
    ]
    names = {part.call_id: part.name for _, part, _ in pieces if part.kind == "tool_call" and part.call_id}
    kept = len(pieces)
    while kept and pieces[kept - 1][2] <= room:
        kept -= 1
        room -= pieces[kept][2]
    return FullContextSnapshot(
        agent_id=known.session_id,
        model_name=known.model,
        context_window=known.window,
        is_window_known=known.is_window_known,
        model_settings=secrets.settings(known.settings),
        system_prompts=prompts,
        tools=tools,
        messages=tuple(
            MessageDetailSnapshot(
                role=_ROLES.get(part.kind, "assistant"),
                content=secrets.text(part.text),
                estimated_tokens=tokens,
                timestamp=message.timestamp,
                in_context=index >= kept,
                tool_name=part.name or names.get(part.call_id or ""),
                tool_call_id=part.call_id,
                is_tool_call=part.kind == "tool_call",
                is_tool_result=part.kind == "tool_return",
            )
            for index, (message, part, tokens) in enumerate(pieces)
        ),
        memory_blocks=tuple(map(secrets.settings, memory_blocks)),
        memory_tokens=memory,
        tool_environment=secrets.tool_keys() if known.is_live else {},
        tool_rules=tuple(map(secrets.settings, tool_rules)),
        estimated=tally.estimated,
    )


def _tool_fields(tool: Tool, tally: Tally, secrets: SecretFilter) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": secrets.text(tool.description or "") or None,
        "parameters_tokens": tally.json(tool.schema),
        "total_tokens": tally.json(tool.definition),
    }


def _timed_from(start: float, known: SnapshotInput) -> SnapshotInput:
    """Set the duration of the last turn, and of its first request if it has none, from the time when the turn began."""
    seconds = read_duration(start)
    if seconds is None or not known.turns:
        return known
    began = format_time(int(seconds * 1_000_000_000))
    last = known.steps[-1].turn_id if known.steps and known.turns[-1].requests else None
    steps = [step for step in known.steps if step.turn_id == last]
    took = between_ms(began, steps[-1].timestamp) if steps else None
    if took is None:
        return known
    first = steps[0]
    if first.duration_ms is None:
        first = replace(first, duration_ms=between_ms(began, first.timestamp))
    return replace(
        known,
        steps=tuple(first if step is steps[0] else step for step in known.steps),
        turns=(*known.turns[:-1], replace(known.turns[-1], duration_seconds=took / 1000)),
    )


Count = Callable[[str], int]
"""Text → tokens: a tokenizer of the caller. Its counts are exact, except a `TokenCount` that is not."""


class Tally:
    """Counts tokens with a model's tokenizer, or with the caller's.

    Attributes:
        estimated: Whether any count so far is an estimate.
    """

    def __init__(self, count: Count | None = None, *, model: str | None = None) -> None:
        self._count = partial(count_tokens, model=model) if count is None else count
        self._is_compact = count is None
        self.estimated = False

    def text(self, text: str) -> int:
        """Count a text; an empty one has exactly 0 tokens."""
        count = self._count(text) if text else 0
        if isinstance(count, TokenCount) and not count.exact:
            self.estimated = True
        return int(count)

    def json(self, value: Any) -> int:
        """Count a value as JSON: compact, but for a caller's tokenizer with blanks, as in earlier versions."""
        return self.text(json_text(value, compact=self._is_compact))

    def piece(self, piece: Piece) -> int:
        """Count a piece of a message in the JSON that is sent."""
        return self._payload(piece) + self._media(piece)

    def text_and_media(self, piece: Piece) -> int:
        """Count the text and media of a piece, without the JSON around them."""
        return self.text(piece.text) + self._media(piece)

    def _media(self, piece: Piece) -> int:
        """Count media with one fixed size, an estimate."""
        self.estimated = self.estimated or bool(piece.media)
        return piece.media * IMAGE

    def _payload(self, piece: Piece) -> int:
        if piece.kind in ("user", "assistant"):
            return self.json({"role": piece.kind, "content": [{"type": "text", "text": piece.text}]})
        if piece.kind == "tool_call":
            given = {} if piece.arguments in (None, "") else piece.arguments
            return self.json({"id": piece.call_id or "", "type": "tool_use", "name": piece.name or "", "input": given})
        if piece.kind == "tool_return":
            answer = {"tool_use_id": piece.call_id or "", "type": "tool_result", "content": piece.text}
            return self.json({**answer, "is_error": piece.failed})
        return self.text(piece.text)
