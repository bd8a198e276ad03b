"""How a command is started so that its requests to models pass through the recording proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command, pointed at the proxy.

    Attributes:
        command: The program and its arguments, with what was injected.
        environment: The whole environment of the child.
        upstreams: Name of a route → base URL of the real server: `{"anthropic": "https://api.anthropic.com"}`.
        harness: The agent, as sessions name it: `codex`, `claude-code`, …; the program's file name if it is unknown.
        source: The id of the source that reads the agent's own logs; None if there is none.
        notes: Sentences for people: what was changed, and what cannot be recorded.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    upstreams: Mapping[str, str]
    harness: str
    source: str | None
    notes: tuple[str, ...] = ()
