"""The diff of two sessions: where they diverge, what differs from there on, and the cost of each.

Sessions are equal if they have the same messages in the same order and, if both logs have it, the same system prompt.
Model, time, tokens and cost are compared and shown, but do not make sessions unequal. Undone messages (`/undo`) are not
compared. A fork begins with its parent's history at that time: messages that the parent had dropped by then are
counted, and are not a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from sessionlog.analytics.diff.align import Pair, Pairs, align
from sessionlog.analytics.diff.gates import GateName, GateResult, Limit, check_limits, check_same_tools
from sessionlog.analytics.diff.message import KEPT, DiffMessage
from sessionlog.analytics.diff.message_list import MessageList
from sessionlog.analytics.diff.side import Side, is_same_log, read_side
from sessionlog.analytics.diff.transcript import ToolUse, Transcript
from sessionlog.errors import Problem, problems_dict
from sessionlog.transcript.fold import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook
    from sessionlog.sources.protocol import Env, Log

SCHEMA = "sessionlog.diff/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPair:
    """The use of a tool on both sides.

    Attributes:
        tool: Its name.
        left: The left session's use; None if it never called the tool.
        right: The right session's use; None if it never called the tool.
    """

    tool: str
    left: ToolUse | None
    right: ToolUse | None

    @property
    def is_alike(self) -> bool:
        """Whether both sides have the same numbers of calls and errors; durations always differ."""
        left, right = self.left or ToolUse(), self.right or ToolUse()
        return (left.calls, left.errors) == (right.calls, right.errors)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "tool": self.tool,
            "left": self.left and self.left.to_dict(),
            "right": self.right and self.right.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDiff:
    """The differences between two sessions.

    The document `sessionlog.diff/1` has, in this order:

        schema, equal (the same messages), fork ("left" or "right" is a fork of the other one, "both" of a third; null)
        left, right: source, session, path, parent, start, status, models, requests, failed_requests, the token classes
            and total_tokens, known_cost_usd, estimated_cost_usd, cost_usd, cost_is_partial, duration_ms, error, turns,
            messages, inherited_messages (of a fork, among the messages and turns), taken_back_messages (not among
            them), tool_calls, failed_tool_calls; null is unknown
        changed: names of those figures, `system_prompt` and `offered_tools`, that differ
        divergence: null where all messages are the same, else common (messages alike before it), left_message and
            right_message (null at the end of a session), left_turn, right_turn
        counts: of messages that are same, changed, left (only there), right; and dropped: those that the parent had
            dropped before the fork, which are none of the others
        system_prompt: equal (null if one log does not have it), left, right
        offered_tools: left_only, right_only, changed: names
        messages: those that differ, from the divergence on: kind (changed, left, right), left, right: message, turn,
            role, tool, text, left_out (characters that are cut from it), calls, failed, partial; null for none
        tools: tool, left, right: calls, errors, duration_ms
        gates: those that were asked for: gate, limit, passed, left, right and allowed (its figures), reason (null if it
            has passed)
        problems: count, first

    Attributes:
        left: The first session.
        right: The second.
        pairs: All messages of both, aligned, without the dropped ones.
        dropped: Messages that the parent had dropped when the fork was made.
        gates: What gates found; empty without gates.
    """

    left: Side
    right: Side
    pairs: Pairs
    dropped: int = 0
    gates: tuple[GateResult, ...] = ()

    @property
    def failed_gates(self) -> tuple[GateResult, ...]:
        """The gates that the right session does not pass."""
        return tuple(gate for gate in self.gates if not gate.has_passed)

    @property
    def is_equal(self) -> bool:
        """Whether both have the same messages and, as far as known, the same system prompt."""
        return self.is_same_system is not False and self.common == len(self.pairs)

    @property
    def is_same_system(self) -> bool | None:
        """Whether both have the same system prompt; None if one log does not have it."""
        left, right = self.left.transcript.system, self.right.transcript.system
        if any(not text and side.source not in OWN for text, side in ((left, self.left), (right, self.right))):
            return None
        return left.strip() == right.strip()

    @property
    def common(self) -> int:
        """The number of equal messages before the sessions diverge."""
        return self.pairs.common

    @property
    def rest(self) -> Pairs:
        """The messages after the common ones."""
        return self.pairs[self.common :]

    @property
    def fork(self) -> str | None:
        """Which side is a fork of the other: `left`, `right`, or `both` of the same third session."""
        return _fork(self.left, self.right)

    @property
    def tools(self) -> tuple[ToolPair, ...]:
        """Every tool that was called, by name."""
        left, right = self.left.transcript.tools, self.right.transcript.tools
        return tuple(
            ToolPair(tool=name, left=left.get(name), right=right.get(name)) for name in sorted({*left, *right})
        )  # fmt: skip

    @property
    def offered(self) -> dict[str, list[str]]:
        """Tool definitions that only one side's requests have, or that differ; empty if one log has none."""
        left, right = self.left.transcript.offered, self.right.transcript.offered
        if not (left and right):
            return {"left_only": [], "right_only": [], "changed": []}
        return {
            "left_only": sorted(left.keys() - right.keys()),
            "right_only": sorted(right.keys() - left.keys()),
            "changed": sorted(name for name in left.keys() & right.keys() if left[name] != right[name]),
        }

    @property
    def changed(self) -> tuple[str, ...]:
        """Names of the figures that are known on both sides and differ."""
        left, right = self.left.figures(), self.right.figures()
        names = [
            name for name in left
            if name != "start" and None not in (left[name], right[name]) and left[name] != right[name]
        ]  # fmt: skip
        names += ["system_prompt"] if self.is_same_system is False else []
        return (*names, *(["offered_tools"] if any(self.offered.values()) else []))

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of messages that are the same, changed, on one side only, or dropped before the fork."""
        return self.pairs.counts() | {"dropped": self.dropped}

    @property
    def problem_count(self) -> int:
        """The number of problems in both logs."""
        return sum(side.transcript.problem_count for side in (self.left, self.right))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The first of them."""
        return (*self.left.transcript.problems, *self.right.transcript.problems)

    def first(self, side: Literal["left", "right"]) -> DiffMessage | None:
        """Return a side's first message after the common ones; None if it has no more."""
        both = ((pair.left if side == "left" else pair.right) for pair in self.rest)
        return next((message for message in both if message is not None), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "schema": SCHEMA,
            "equal": self.is_equal,
            "fork": self.fork,
            "left": self.left.to_dict(),
            "right": self.right.to_dict(),
            "changed": list(self.changed),
            "divergence": self._divergence(),
            "counts": self.counts,
            "system_prompt": {
                "equal": self.is_same_system,
                "left": self.left.transcript.system or None,
                "right": self.right.transcript.system or None,
            },
            "offered_tools": self.offered,
            "messages": [_pair_json(pair) for pair in self.rest if pair.kind != "same"],
            "tools": [tool.to_dict() for tool in self.tools],
            "gates": [gate.to_dict() for gate in self.gates],
            "problems": problems_dict(self.problem_count, self.problems),
        }

    def _divergence(self) -> dict[str, Any] | None:
        """The JSON object of the divergence: each side's first message after the common ones."""
        if not self.rest:
            return None
        left, right = self.first("left"), self.first("right")
        return {
            "common": self.common,
            "left_message": left and left.number,
            "right_message": right and right.number,
            "left_turn": left and left.turn,
            "right_turn": right and right.turn,
        }


def _pair_json(pair: Pair) -> dict[str, Any]:
    left, right = pair.left, pair.right
    return {"kind": pair.kind, "left": left and left.to_dict(), "right": right and right.to_dict()}


def check_gates(diff: SessionDiff, limits: Mapping[GateName, Limit], *, same_tools: bool = False) -> SessionDiff:
    """Return a comparison with what gates found: limits of the right session, and whether it calls the same tools.

    No gate passes if the right log is damaged: what cannot be read may be what exceeds it.
    """
    found = [*check_limits(limits, diff.left.figures(), diff.right.figures())]
    found += [check_same_tools(diff.left.transcript.tools, diff.right.transcript.tools)] if same_tools else []
    if diff.right.transcript.problem_count:
        reason = "the log of B is damaged, so a part of it is not known"
        found = [replace(one, has_passed=False, reason=reason) if one.has_passed else one for one in found]
    return replace(diff, gates=tuple(found))


def diff_sessions(
    left: tuple[Log, str | None],
    right: tuple[Log, str | None],
    *,
    full: bool = False,
    prices: PriceBook | None = None,
    now: datetime | None = None,
    progress: Progress | None = None,
    env: Env | None = None,
    ledger: str | None = None,
) -> SessionDiff:
    """Compare two sessions of any agents.

    Args:
        left: A log, and the id of one of its sessions; None for its first.
        right: The other log and session.
        full: Whether to keep whole texts instead of their first `KEPT` characters.
        prices: Prices of responses without a recorded cost; None for the list prices.
        now: The present, to distinguish running from unfinished sessions.
        progress: Called with the progress of the scans.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file, for the figures of its sessions; None counts each log alone.

    Raises:
        LogNotReadable: A log cannot be read.
    """
    read = partial(
        read_side, kept=None if full else KEPT, prices=prices, now=now, progress=progress, env=env, ledger=ledger
    )
    one = read(*left)
    other = one if is_same_log(left, right) else read(*right)
    return compare(one, other)


def compare(left: Side, right: Side) -> SessionDiff:
    """Compare two sides that were read."""
    fork = _fork(left, right)
    one, other = left.transcript.messages, right.transcript.messages
    ours: Sequence[int] = range(len(one))
    theirs: Sequence[int] = range(len(other))
    if fork == "right":
        ours = _without_dropped(one, right.transcript)
    elif fork == "left":
        theirs = _without_dropped(other, left.transcript)
    dropped = len(one) + len(other) - len(ours) - len(theirs)
    return SessionDiff(left=left, right=right, pairs=align(one, other, ours=ours, theirs=theirs), dropped=dropped)


def _fork(left: Side, right: Side) -> Literal["left", "right", "both"] | None:
    """Which side is a fork of the other."""
    if left.source != right.source:
        return None
    if right.parent and right.parent == left.session:
        return "right"
    if left.parent and left.parent == right.session:
        return "left"
    return "both" if left.parent and left.parent == right.parent and left.session != right.session else None


def _without_dropped(messages: MessageList, fork: Transcript) -> Sequence[int]:
    """The places of the parent's messages not dropped before the fork; a summary is where the fork has it."""
    if fork.forked_at is None:
        return range(len(messages))
    before: dict[bytes, list[int]] = {}
    after: list[int] = []
    for place, one in enumerate(messages):
        if one.seq <= fork.forked_at:
            before.setdefault(one.digest, []).append(place)
        else:
            after.append(place)
    # Of equal messages, the last ones are those that were not dropped.
    kept = [before[digest].pop() for digest in reversed(fork.inherited) if before.get(digest)]
    return [*reversed(kept), *after]
