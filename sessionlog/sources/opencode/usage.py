"""What one assistant message of opencode used: the numbers and names that its record and its event share.

`tokens.output` leaves the reasoning out, and reasoning is billed as output: they are added. A cost of 0 means that
opencode knew no price. A fork copies messages under new ids, and the move from files to the database copied everything:
what a copy keeps — times, model, provider, tokens, cost — is the key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from sessionlog.events.money import read_usd
from sessionlog.events.times import epoch_ns
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.sources.opencode.parts import Message, as_map, as_text
from sessionlog.sources.record import UNKNOWN, Quality, read_name

_ENDS = {"stop": "success", "end_turn": "success", "end-turn": "success"}
ABORTED = "MessageAbortedError"


@dataclass(slots=True, kw_only=True)
class Answer:
    """One assistant message, read.

    Attributes:
        key: Names the response wherever it is copied to.
        start_ns: When it was asked for.
        end_ns: When it was complete; None while it is not, or when that is not stored.
        provider: Who served it.
        model: Which model.
        usage: Its tokens.
        cost_nano: What opencode reckoned; None for unknown.
        agent: The agent's name, such as build, plan, general or explore.
        error: Why it failed; empty if it did not.
        aborted: The user stopped it.
        finish: Why it stopped, as stored.
        issues: Numbers that are none.
    """

    key: str
    start_ns: int | None
    end_ns: int | None
    provider: str
    model: str
    usage: TokenUsage
    cost_nano: int | None
    agent: str
    error: str
    aborted: bool
    finish: str
    issues: tuple[str, ...]

    @property
    def time_ns(self) -> int | None:
        """When it was answered, as far as is known."""
        return self.start_ns if self.end_ns is None else self.end_ns

    @property
    def latency_ms(self) -> float | None:
        """From asked to complete; tools that ran in between are in it."""
        if self.start_ns is None or self.end_ns is None or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1_000_000

    @property
    def failed(self) -> bool:
        """Whether the call failed; stopping it is no failure of it."""
        return bool(self.error) and not self.aborted

    @property
    def happened(self) -> bool:
        """Whether there was a response: a message that has just been begun is none yet."""
        return bool(self.usage) or self.end_ns is not None or bool(self.error)

    @property
    def quality(self) -> Quality:
        """`partial` where a whole answer has no tokens: its provider reported none."""
        return "partial" if not self.usage and not self.error else "exact"

    @property
    def status(self) -> str | None:
        """How the session ends if this is its last word."""
        if self.error:
            return "cancelled" if self.aborted else "error"
        return _ENDS.get(self.finish)


def read_answer(message: Message) -> Answer:
    """Read an assistant message of any shape; what is wrong in it counts 0 and is named."""
    data = message.data
    issues: list[str] = []
    tokens, model = as_map(data.get("tokens")), as_map(data.get("model"))
    cache = as_map(tokens.get("cache"))
    counts: list[int] = []
    for name, value in (
        ("input", tokens.get("input")), ("output", tokens.get("output")), ("reasoning", tokens.get("reasoning")),
        ("cache.read", cache.get("read")), ("cache.write", cache.get("write")),
    ):  # fmt: skip
        count, issue = read_count(value)
        counts.append(count)
        if issue:
            issues.append(f"message {message.id}: tokens.{name}: {issue}")
    cost, issue = read_usd(data.get("cost"))
    if issue:
        issues.append(f"message {message.id}: {issue}")
    time = as_map(data.get("time"))
    start_ns, end_ns = epoch_ns(time.get("created")), epoch_ns(time.get("completed"))
    provider = read_name(data.get("providerID")) or read_name(model.get("providerID")) or UNKNOWN
    name = read_name(data.get("modelID")) or read_name(model.get("id")) or read_name(model.get("modelID")) or UNKNOWN
    told = "|".join(map(str, (start_ns or message.id, end_ns, name, provider, *counts, cost or 0)))
    fault = as_map(data.get("error"))
    agent = read_name(data.get("agent")) or read_name(data.get("mode")) or UNKNOWN
    return Answer(
        key=hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=12).hexdigest(),
        start_ns=start_ns, end_ns=end_ns, provider=provider, model=name,
        usage=TokenUsage(
            input=counts[0], output=counts[1] + counts[2], reasoning=counts[2], cache_read=counts[3],
            cache_write=counts[4],
        ),
        cost_nano=cost or None, agent=agent, error=_reason(fault) if data.get("error") else "",
        aborted=ABORTED in (fault.get("name"), fault.get("type")) or fault.get("type") == "aborted",
        finish=as_text(data.get("finish")), issues=tuple(issues),
    )  # fmt: skip


def _reason(fault: Any) -> str:
    """The words of an error: v1 has them in `data`, v2 beside the type."""
    said = as_text(as_map(fault.get("data")).get("message")) or as_text(fault.get("message"))
    return said or as_text(fault.get("name")) or as_text(fault.get("type")) or "failed"
