"""What a snapshot is made of, gathered from a live agent, a message history, a log, or several of them.

The invariant: nothing is gathered twice. An agent's system prompt that its history holds as well is one prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sessionlog.context.snapshots.logged import LoggedSession, LogLike, read_logged_session
from sessionlog.context.snapshots.tools import Tool, read_tools, tools_of_agent
from sessionlog.context.snapshots.turns import fold_turns, number_turns, steps_of, turn_seconds
from sessionlog.context.steps import RequestUsageSnapshot
from sessionlog.context.usage import TurnUsage
from sessionlog.context.windows import DEFAULT_CONTEXT_WINDOW, find_context_window
from sessionlog.messages.entry import Entry
from sessionlog.messages.read import read_entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is known, as values.

    Attributes:
        agent_id: The agent, or the session.
        model: The model's name; None where nobody says.
        settings: The model's settings.
        prompts: System prompts and instructions, each once.
        tools: The tools that the model is told of.
        messages: The conversation.
        steps: What each request used.
        turns: What each turn used.
        window: The context window in tokens.
        is_window_known: Whether it is the model's or the caller's, and not the default.
        prompt_tokens: What the provider counted at the last request of a log; None where nobody says.
        output_tokens: The same of its answer.
        is_live: There is a live agent.
    """

    agent_id: str
    model: str | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompts: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    messages: tuple[Entry, ...] = ()
    steps: tuple[RequestUsageSnapshot, ...] = ()
    turns: tuple[TurnUsage, ...] = ()
    window: int = DEFAULT_CONTEXT_WINDOW
    is_window_known: bool = True
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    is_live: bool = False


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
) -> Material:
    """Gather; what the caller gives goes before what the agent says, and that before what the log says.

    Raises:
        LogNotReadable: The log is a path that cannot be read, or is no agent's log.
    """
    live = getattr(agent, "_agent", None) or agent
    logged = None if log is None else read_logged_session(log, request=request)
    messages = _messages(message_history, logged)
    model = model or _model_of(live) or (logged.model or logged.served or None if logged else None)
    if logged and message_history is None:
        steps, turns = logged.steps, logged.turns
    else:
        steps, turns = steps_of(messages), _turns(messages)
    is_known = context_window is not None
    if context_window is None:
        known = _window_of(model, logged)
        context_window, is_known = known or DEFAULT_CONTEXT_WINDOW, known is not None
    is_of_log = logged is not None and message_history is None
    return Material(
        agent_id=agent_id or (logged.session_id if logged else ""),
        model=model,
        settings=_settings(live),
        prompts=_prompts(live, messages),
        tools=_tools(live, tool_definitions, logged),
        messages=messages,
        steps=steps,
        turns=turns,
        window=context_window,
        is_window_known=is_known,
        prompt_tokens=logged.prompt_tokens if logged and is_of_log else None,
        output_tokens=logged.output_tokens if logged and is_of_log else None,
        is_live=agent is not None,
    )


def _window_of(model: str | None, logged: LoggedSession | None) -> int | None:
    """What the model takes in, as logged; else an alias is known by who answered, as in the X-ray."""
    if logged is not None and logged.window is not None and model in (None, logged.model):
        return logged.window
    names = (model, logged.served if logged else None)
    provider = logged.provider if logged else ""
    found = (find_context_window(name, provider) for name in names if name)
    return next((size for size in found if size), None)


def _turns(messages: tuple[Entry, ...]) -> tuple[TurnUsage, ...]:
    """What each turn used; where no message tells any usage, nothing is known of the turns."""
    steps = steps_of(messages)
    last = max(number_turns(messages), default=0)
    return tuple(fold_turns(steps, turn_seconds(messages), last=last).values()) if steps else ()


def _messages(history: Iterable[object] | None, logged: LoggedSession | None) -> tuple[Entry, ...]:
    if history is not None:
        return read_entries(history)
    return logged.messages if logged else ()


def _tools(live: object, given: Iterable[object] | None, logged: LoggedSession | None) -> tuple[Tool, ...]:
    if given:
        return read_tools(given)
    return tools_of_agent(live) or (logged.tools if logged else ())


def _prompts(live: object, messages: tuple[Entry, ...]) -> tuple[str, ...]:
    own = [text for text in _items(live, "_system_prompts") if isinstance(text, str)]
    told = Counter(own)
    said = [part.text for message in messages for part in message.pieces if part.kind == "system"]
    more = []
    for text in said:
        if told[text] > 0:
            told[text] -= 1
        else:
            more.append(text)
    instructions = next((m.instructions for m in reversed(messages) if m.instructions), None)
    if instructions is None and not messages:
        standing = [getattr(item, "instruction", item) for item in _items(live, "_instructions")]
        instructions = "\n".join(text for text in standing if isinstance(text, str))
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
