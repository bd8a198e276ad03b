"""Gather the input of a snapshot from a live agent, a message history, a log, or several of them.

The invariant: nothing counts twice. A system prompt that is in the agent and in its history is one prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sessionlog.context.snapshots.logged import LogLike, SnapshotInput, read_logged_session
from sessionlog.context.snapshots.tools import read_tools, tools_of_agent
from sessionlog.context.snapshots.turns import fold_turns, number_turns, steps_of, turn_seconds
from sessionlog.context.windows import DEFAULT_CONTEXT_WINDOW, window_for
from sessionlog.messages.entry import Entry
from sessionlog.messages.read import read_entries


def gather(
    agent: object,
    agent_id: str,
    *,
    context_window: int | None = None,
    message_history: Iterable[object] | None = None,
    tool_definitions: Iterable[object] | None = None,
    log: LogLike | None = None,
    request: int | None = None,
    model: str | None = None,
) -> SnapshotInput:
    """Gather the input: arguments have priority over the agent, and the agent over the log.

    Raises:
        LogNotReadable: The log is a path that cannot be read, or is no agent's log.
    """
    live = getattr(agent, "_agent", None) or agent
    known = SnapshotInput() if log is None else read_logged_session(log, request=request)
    if message_history is not None:
        known = _with_history(known, read_entries(message_history))
    model = model or _model_of(live) or known.model or known.served or None
    window = _window_of(model, known) if context_window is None else context_window
    return replace(
        known,
        session_id=agent_id or known.session_id,
        model=model,
        settings=_settings(live),
        prompts=_prompts(live, known.messages),
        tools=read_tools(tool_definitions) if tool_definitions else tools_of_agent(live) or known.tools,
        window=DEFAULT_CONTEXT_WINDOW if window is None else window,
        is_window_known=window is not None,
        is_live=agent is not None,
    )


def _window_of(model: str | None, known: SnapshotInput) -> int | None:
    """Return the model's window as logged, else from the table; for an alias that of the model that answered."""
    logged = known.window if model in (None, known.model) else None
    return window_for(known.prompt_tokens or 0, logged, models=(model, known.served), provider=known.provider)


def _with_history(known: SnapshotInput, messages: tuple[Entry, ...]) -> SnapshotInput:
    """Replace the log's history by the caller's; without usage in its messages there are no turns."""
    steps, last = steps_of(messages), max(number_turns(messages), default=0)
    turns = tuple(fold_turns(steps, turn_seconds(messages), last=last).values()) if steps else ()
    return replace(known, messages=messages, steps=steps, turns=turns, prompt_tokens=None, output_tokens=None)


def _prompts(live: object, messages: tuple[Entry, ...]) -> tuple[str, ...]:
    own = [text for text in _items(live, "_system_prompts") if isinstance(text, str)]
    left = Counter(own)
    found = [part.text for message in messages for part in message.pieces if part.kind == "system"]
    more = []
    for text in found:
        if left[text] > 0:
            left[text] -= 1
        else:
            more.append(text)
    instructions = next((m.instructions for m in reversed(messages) if m.instructions), None)
    if instructions is None and not messages:
        held = [getattr(item, "instruction", item) for item in _items(live, "_instructions")]
        instructions = "\n".join(text for text in held if isinstance(text, str))
    return (*own, *more, *([instructions] if instructions else []))


def _items(live: object, name: str) -> list[object]:
    held = getattr(live, name, None)
    return [held] if isinstance(held, str) else list(held) if isinstance(held, list | tuple) else []


def _model_of(live: object) -> str | None:
    model = getattr(live, "model", None) or getattr(live, "_model", None)
    names = (model, getattr(model, "model_name", None), getattr(model, "name", None))
    return next((name for name in names if isinstance(name, str) and name), None)


def _settings(live: object) -> dict[str, Any]:
    settings = getattr(live, "model_settings", None)
    dump = getattr(settings, "model_dump", None)
    made = dump() if callable(dump) else settings
    return dict(made) if isinstance(made, Mapping) else {}
