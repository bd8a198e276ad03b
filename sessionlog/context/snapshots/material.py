"""What a snapshot is made of, gathered from a live agent, a message history, a log, or several of them.

The invariant: nothing is gathered twice. An agent's system prompt that its history holds as well is one prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
    logged = LoggedSession() if log is None else read_logged_session(log, request=request)
    if message_history is not None:
        logged = _with_history(logged, read_entries(message_history))
    model = model or _model_of(live) or logged.model or logged.served or None
    window = _window_of(model, logged) if context_window is None else context_window
    return Material(
        agent_id=agent_id or logged.session_id,
        model=model,
        settings=_settings(live),
        prompts=_prompts(live, logged.messages),
        tools=read_tools(tool_definitions) if tool_definitions else tools_of_agent(live) or logged.tools,
        messages=logged.messages,
        steps=logged.steps,
        turns=logged.turns,
        window=DEFAULT_CONTEXT_WINDOW if window is None else window,
        is_window_known=window is not None,
        prompt_tokens=logged.prompt_tokens,
        output_tokens=logged.output_tokens,
        is_live=agent is not None,
    )


def _window_of(model: str | None, logged: LoggedSession) -> int | None:
    """What the model takes in, as logged; else an alias is known by who answered, as in the X-ray."""
    if logged.window is not None and model in (None, logged.model):
        return logged.window
    found = (find_context_window(name, logged.provider) for name in (model, logged.served) if name)
    return next((size for size in found if size), None)


def _with_history(logged: LoggedSession, messages: tuple[Entry, ...]) -> LoggedSession:
    """A caller's history in place of the log's; where no message tells any usage, nothing is known of the turns."""
    steps, last = steps_of(messages), max(number_turns(messages), default=0)
    turns = tuple(fold_turns(steps, turn_seconds(messages), last=last).values()) if steps else ()
    return replace(logged, messages=messages, steps=steps, turns=turns, prompt_tokens=None, output_tokens=None)


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
