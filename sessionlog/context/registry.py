"""The registry: agents by id, the requests recorded for each, and snapshots of them at any time from any thread.

    recorder = register_agent("coder", agent)
    recorder.begin_turn()
    recorder.record_request(response.usage, tool_names=["read"], duration_ms=812)
    get_agent_context_snapshot("coder").to_table()

Or give the agent's own log, which outlives the process: `register_agent("coder", agent, log="session.jsonl")`.
The invariant: a snapshot sees only complete records, and records never change.
"""

from __future__ import annotations

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
from sessionlog.locks import RLock
from sessionlog.messages.entry import Entry
from sessionlog.messages.read import read_entries


class _Request(NamedTuple):
    """A recorded response, which may stand for several requests that were counted together."""

    step: RequestUsageSnapshot
    requests: int
    tool_calls: int


class AgentRecorder:
    """Records the requests of an agent; thread-safe.

    Args:
        clock: Nanoseconds since 1970, for tests.

    Attributes:
        messages: The kept history; None before `keep_messages`.
    """

    def __init__(self, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._lock = RLock()
        self._turn = 0
        self._requests: list[_Request] = []
        self.messages: tuple[Entry, ...] | None = None

    def begin_turn(self) -> None:
        """Begin a turn, at a user prompt; later requests belong to it."""
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
            usage: Its usage, an object of any kind. With `requests` or `tool_calls` one record counts for several.
            tool_names: The tools it calls, one name per call; they have priority over a count in `usage`.
            duration_ms: From the request to its answer; an invalid one is unknown.
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
        """Keep a copy of a message history of any kind; it replaces the one before."""
        self.messages = read_entries(history)

    def add_to(self, known: SnapshotInput) -> SnapshotInput:
        """Return `known` with the recorded steps and turns, if there are any."""
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
_lock = RLock()


def register_agent(
    agent_id: str,
    agent: object,
    info: Mapping[str, Any] | None = None,
    *,
    log: LogLike | None = None,
    recorder: AgentRecorder | None = None,
) -> AgentRecorder:
    """Register an agent; it replaces the one with this id.

    Args:
        agent_id: Its id.
        agent: The live agent; None if there is only a log.
        info: Anything about it. `model` is its model where the agent names none, and `context_window` its window in
            tokens (a whole number above 0).
        log: The path of its log, or events; a path is read again for each snapshot.
        recorder: Continue with this recorder; a new one by default.

    Returns:
        The recorder for its requests.
    """
    made = AgentRecorder() if recorder is None else recorder
    known = log if log is None or isinstance(log, str) or hasattr(log, "__fspath__") else tuple(log)
    with _lock:
        _agents[agent_id] = _Registered(agent=agent, info=dict(info or {}), log=known, recorder=made)
    return made


def unregister_agent(agent_id: str) -> None:
    """Remove an agent and its records; an unknown id is ignored."""
    with _lock:
        _agents.pop(agent_id, None)


def get_agent_context_snapshot(agent_id: str) -> ContextSnapshot | None:
    """Return what fills an agent's window now; None for an unknown id.

    Raises:
        LogNotReadable: Its log cannot be read.
    """
    found = _gather_input(agent_id)
    return None if found is None else snapshot_of(found)


def get_agent_full_context_snapshot(agent_id: str) -> FullContextSnapshot | None:
    """Return everything in an agent's window now, with its texts; None for an unknown id.

    Raises:
        LogNotReadable: Its log cannot be read.
    """
    found = _gather_input(agent_id)
    return None if found is None else full_snapshot_of(found)


def _gather_input(agent_id: str) -> SnapshotInput | None:
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
        context_window=window if type(window) is int and window > 0 else None,  # True is an int, but not a window
        model=model if isinstance(model, str) else None,
    )
    return agent.recorder.add_to(known)


def _turns(requests: Sequence[_Request], last: int) -> tuple[TurnUsage, ...]:
    """Sum the steps of each turn; requests and tool calls are the counted ones, not the number of records."""
    turns = fold_turns((request.step for request in requests), {}, last=last)
    made = []
    for number, turn in turns.items():
        mine = [request for request in requests if request.step.turn_id == number]
        made.append(replace(turn, requests=sum(r.requests for r in mine), tool_calls=sum(r.tool_calls for r in mine)))
    return tuple(made)
