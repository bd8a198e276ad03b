"""Steps: which response a usage belongs to, what it is called, which model gave it, and how long that took.

A step is one LLM call and the tools it asks for. Kimi CLI logs its usage with the id of the response's message, as its
sub-agents' parents do once more; Kimi Code logs none, but steps have ids, which forks copy. Its usage comes before or
after the tools' results, by version, so the model has answered when the first tool was called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessionlog.sources.kimi.place import PROVIDER, Place, model_name, provider_name
from sessionlog.sources.kimi.wire import Move
from sessionlog.sources.record import UNKNOWN

_WORLDWIDE = 16  # characters from which a message's id is one of its provider's, not a counter


@dataclass(slots=True, kw_only=True)
class Response:
    """What is known of a response besides its tokens.

    Attributes:
        key: Names it in the session, its copies and its forks.
        time_ns: When it was answered.
        latency_ms: Since it was asked for.
        provider: Who served it.
        model: Which model.
    """

    key: str
    time_ns: int | None
    latency_ms: float | None
    provider: str
    model: str


class Steps:
    """The steps of one log, of its agent and of the sub-agents that it tells about, as far as it has been read."""

    def __init__(self, place: Place, default: tuple[str, str], state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self._place = place
        self._default: tuple[str, str] = (state.get("default") or default)[0], (state.get("default") or default)[1]
        self._asked: list[str] | None = state.get("asked")
        self._steps: dict[str, list[Any]] = dict(state.get("steps", {}))  # agent → number, id, asked, called
        self._calls: dict[str, str] = dict(state.get("calls", {}))

    def state(self) -> dict[str, Any]:
        """What goes on with the next line, as JSON."""
        return {"default": self._default, "asked": self._asked, "steps": dict(self._steps), "calls": dict(self._calls)}

    def follow(self, move: Move) -> None:
        """Account for a line, before asking about it."""
        agent = move.agent or self._place.agent
        step = self._steps.get(agent, [0, "", None, None])
        if move.kind == "step":
            ours = move.agent or self._place.part
            name = move.id or f"{agent if ours else move.time_ns}:{step[0] + 1}"
            self._steps[agent] = [step[0] + 1, name, move.time_ns, None]
        elif move.kind == "request":
            self._asked = [move.provider, move.text]
            self._steps[agent] = [*step[:2], move.time_ns, None]
        elif move.kind == "compacted":
            self._steps[agent] = [*step[:2], move.time_ns, step[3]]
        elif move.kind == "call" and step[3] is None:
            self._steps[agent] = [*step[:3], move.time_ns]

    def call_key(self, move: Move) -> str:
        """A key for a tool call: ids such as `Bash_0` come again and again."""
        agent = move.agent or self._place.agent
        step = self._steps.get(agent, [0, "", None, None])
        scope = step[1] or self._place.session_id
        key = self._calls[f"{agent}/{move.id}"] = f"{scope}:{move.id}"
        return key

    def result_key(self, move: Move) -> str:
        """The key of the call that a result answers."""
        return self._calls.pop(f"{move.agent or self._place.agent}/{move.id}", "")

    def response(self, move: Move, start: int) -> Response:
        """What is known of the response whose tokens a line at the byte `start` tells."""
        agent = move.agent or self._place.agent
        _, name, asked_ns, called_ns = self._steps.get(agent, [0, "", None, None])
        answered_ns = move.time_ns
        if called_ns is not None and answered_ns is not None and not move.id:
            answered_ns = min(called_ns, answered_ns)
        latency_ms = None
        if asked_ns is not None and answered_ns is not None and answered_ns >= asked_ns:
            latency_ms = (answered_ns - asked_ns) / 1_000_000
        provider, model = self._model(move)
        return Response(
            key=self._key(move, agent, name, start), time_ns=answered_ns, latency_ms=latency_ms, provider=provider,
            model=model,
        )  # fmt: skip

    def _model(self, move: Move) -> tuple[str, str]:
        """The model of the last request, else the one beside the tokens, else the configured one."""
        provider, asked = self._asked or ["", ""]
        name = model_name(asked) or model_name(move.text)
        if name:
            return provider_name(provider) if provider else PROVIDER, name
        return self._default[0], self._default[1] or UNKNOWN

    def _key(self, move: Move, agent: str, step: str, start: int) -> str:
        if len(move.id) >= _WORLDWIDE:
            return move.id
        if move.id:
            return f"{self._place.session_id}:{agent}:{move.id}"
        if step and move.time_ns is not None:
            told = f"{step}|{move.time_ns}|{move.text}|{move.usage}"
            return hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=12).hexdigest()
        return f"{self._place.session_id}/{agent}@{start}"
