"""The registry: agents by their id, what is recorded for each, and their snapshots at any moment from any thread.

    recorder = register_agent("coder", agent)
    recorder.begin_turn()
    recorder.record_request(response.usage, tool_names=["read"], duration_ms=812)
    get_agent_context_snapshot("coder").to_table()

Or the agent's own log is named, and survives the process: `register_agent("coder", agent, log="session.jsonl")`.
The invariant: a snapshot sees whole records only; nothing that was recorded is changed afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sessionlog.context.snapshots.extract import full_snapshot_of, snapshot_of
from sessionlog.context.snapshots.full_snapshot import FullContextSnapshot
from sessionlog.context.snapshots.gather import gather
from sessionlog.context.snapshots.logged import LogLike, SnapshotInput
from sessionlog.context.snapshots.snapshot import ContextSnapshot
from sessionlog.context.snapshots.turns import fold_turns
from sessionlog.context.steps import RequestUsageSnapshot, read_duration
from sessionlog.context.usage import TurnUsage, read_counts, tokens_of
from sessionlog.events.times import format_time, utc_time
from sessionlog.messages.entry import Entry
from sessionlog.messages.read import read_entries


class _Request(NamedTuple):
    """A recorded call, which may stand for several requests that were only counted together."""

    step: RequestUsageSnapshot
    requests: int
    tool_calls: int


class AgentRecorder:
    """Takes what an agent does; any thread may call it.

    Args:
        clock: Nanoseconds since 1970, for tests.

    Attributes:
        messages: The history that was kept; None before the first.
    """

    def __init__(self, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._turn = 0
        self._requests: list[_Request] = []
        self.messages: tuple[Entry, ...] | None = None

    def begin_turn(self) -> None:
        """Say that a user prompt came in; what is recorded from now on belongs to its turn."""
        with self._lock:
            self._turn += 1

    def record_request(
        self,
        usage: object,
        *,
        tool_names: Sequence[str] = (),
        duration_ms: float | None = None,
        timestamp: object = None,
    ) -> None:
        """Record a response.

        Args:
            usage: What it used, of any kind. A `requests` or `tool_calls` in it counts for what is recorded at once.
            tool_names: The tools it calls, one name a call; they go before a count in `usage`.
            duration_ms: From the request to its answer; what is no duration is not known.
            timestamp: A datetime or an RFC 3339 text; None = now.
        """
        counts = read_counts(usage)
        stamp = utc_time(timestamp) or format_time(self._clock())
        with self._lock:
            step = RequestUsageSnapshot(
                request_num=len(self._requests) + 1,
                tool_names=tuple(tool_names),
                timestamp=stamp,
                turn_id=max(self._turn, 1),
                duration_ms=read_duration(duration_ms),
                **tokens_of(counts),
            )
            calls = len(step.tool_names) or counts.tool_calls
            self._requests.append(_Request(step, max(1, counts.requests), calls))

    def keep_messages(self, history: Iterable[object]) -> None:
        """Keep a message history of any kind, in place of the one before; later changes to it are not seen."""
        self.messages = read_entries(history)

    def add_to(self, known: SnapshotInput) -> SnapshotInput:
        """Return what was gathered of the agent with what was recorded in place of what is lacking."""
        with self._lock:
            requests, turn = tuple(self._requests), self._turn
        if not requests:
            return known
        steps = tuple(request.step for request in requests)
        return replace(known, steps=steps, turns=_turns(requests, turn))


class _Registered(NamedTuple):
    agent: object
    info: Mapping[str, Any]
    log: LogLike | None
    recorder: AgentRecorder


_agents: dict[str, _Registered] = {}
_lock = threading.Lock()


def register_agent(
    agent_id: str,
    agent: object,
    info: Mapping[str, Any] | None = None,
    *,
    log: LogLike | None = None,
    recorder: AgentRecorder | None = None,
) -> AgentRecorder:
    """Make an agent known; one that was known under this id is replaced.

    Args:
        agent_id: Its id.
        agent: The live agent; None where only its log is known.
        info: Anything about it. `model` names its model where the agent does not, and `context_window` its window
            (a whole number above 0).
        log: The path of its log: snapshots are made from what it says at that moment.
        recorder: Goes on recording with this one; a new one by default.

    Returns:
        Where to record what it does.
    """
    made = AgentRecorder() if recorder is None else recorder
    known = log if log is None or isinstance(log, str) or hasattr(log, "__fspath__") else tuple(log)
    with _lock:
        _agents[agent_id] = _Registered(agent=agent, info=dict(info or {}), log=known, recorder=made)
    return made


def unregister_agent(agent_id: str) -> None:
    """Forget an agent and what was recorded for it; an unknown one is no mistake."""
    with _lock:
        _agents.pop(agent_id, None)


def get_agent_context_snapshot(agent_id: str) -> ContextSnapshot | None:
    """Return what fills an agent's window now; None for an unknown id.

    Raises:
        LogNotReadable: Its log cannot be read.
    """
    found = _gathered(agent_id)
    return None if found is None else snapshot_of(found)


def get_agent_full_context_snapshot(agent_id: str) -> FullContextSnapshot | None:
    """Return everything in an agent's window now, with its texts; None for an unknown id.

    Raises:
        LogNotReadable: Its log cannot be read.
    """
    found = _gathered(agent_id)
    return None if found is None else full_snapshot_of(found)


def _gathered(agent_id: str) -> SnapshotInput | None:
    with _lock:
        agent = _agents.get(agent_id)
    if agent is None:
        return None
    window, model = agent.info.get("context_window"), agent.info.get("model")
    known = gather(
        agent.agent,
        agent_id,
        log=agent.log,
        message_history=agent.recorder.messages,
        context_window=window if type(window) is int and window > 0 else None,  # True is an int, and no window
        model=model if isinstance(model, str) else None,
    )
    return agent.recorder.add_to(known)


def _turns(requests: Sequence[_Request], last: int) -> tuple[TurnUsage, ...]:
    """Add the turns up, by what was counted and not by how often something was recorded."""
    turns = fold_turns((request.step for request in requests), {}, last=last)
    made = []
    for number, turn in turns.items():
        mine = [request for request in requests if request.step.turn_id == number]
        made.append(replace(turn, requests=sum(r.requests for r in mine), tool_calls=sum(r.tool_calls for r in mine)))
    return tuple(made)
