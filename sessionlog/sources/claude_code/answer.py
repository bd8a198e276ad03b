"""One response while its rows go by: what they have told of it so far, and what can wait to be read."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from sessionlog.sources.claude_code.shapes import Counts, counts_of, same_counts

_MS = 1_000_000


class Head(NamedTuple):
    """What all rows of a log say at their beginning.

    Attributes:
        session_id: Whose row it is.
        side: It belongs to a side conversation.
        project: The working folder, or `unknown`.
        branch: The git branch.
        version: The version of the CLI.
        agent: Who speaks.
    """

    session_id: str
    side: bool
    project: str
    branch: str
    version: str
    agent: str


NOTHING: Counts = (0, 0, 0, 0, 0, 0)


class Answer:
    """One response, as far as its rows have gone by.

    Attributes:
        key: Its name in all logs.
        family: Its message id.
        copy_rank: As in `Record`.
        head: Of its first row.
        time_ns: Its first row's time.
        last_ns: Its last row's.
        asked_ns: Time of the user's row before it.
        model: Who answered.
        stop: Why it stopped; None while it has not.
        counts: The greatest that a row told.
        output: The greatest output that a row told; -1 when none has told any.
        told: An ending of a row, and the output that a row with the same other numbers told, when those have not been
            read yet.
        cost_nano: The recorded cost.
        latency_ms: The recorded time of the call.
        failed: It is an error notice.
        speed: How fast it was asked to be, where that has a price of its own.
        service_tier: The same of its tier.
        active_ns: The session's active time since the response before.
        visible: Bytes of what it said, as far as they were counted.
        unread: Contents of rows, or whole rows, whose visible bytes are counted only if that matters.
        given: It is part of what this scan gives.
        open: Rows can still be put to it.
    """

    __slots__ = (
        "active_ns",
        "asked_ns",
        "copy_rank",
        "cost_nano",
        "counts",
        "failed",
        "family",
        "given",
        "head",
        "key",
        "last_ns",
        "latency_ms",
        "model",
        "open",
        "output",
        "service_tier",
        "speed",
        "stop",
        "time_ns",
        "told",
        "unread",
        "visible",
    )  # fmt: skip

    def __init__(self, key: str, family: str, copy_rank: int, head: Head, time_ns: int | None) -> None:
        self.key, self.family, self.copy_rank, self.head = key, family, copy_rank, head
        self.time_ns = self.last_ns = time_ns
        self.asked_ns: int | None = None
        self.model: str | None = None
        self.stop: str | None = None
        self.counts = NOTHING
        self.output = -1
        self.told: tuple[re.Match[bytes], int] | None = None
        self.cost_nano: int | None = None
        self.latency_ms: float | None = None
        self.failed = False
        self.speed = self.service_tier = ""
        self.active_ns = 0
        self.visible = 0
        self.unread: list[Any] = []
        self.given = self.open = True

    def at(self, time_ns: int | None) -> None:
        """Take a row's time."""
        if time_ns is not None:
            if self.time_ns is None or time_ns < self.time_ns:
                self.time_ns = time_ns
            if self.last_ns is None or time_ns > self.last_ns:
                self.last_ns = time_ns

    def tell(self, counts: Counts) -> None:
        """Take the numbers of a row."""
        self.counts = max(self.counts, counts)
        self.output = max(self.output, counts[0])

    def tell_later(self, ending: re.Match[bytes], output: int) -> None:
        """Take the numbers of a row; they are read when that matters, and of most rows it does not."""
        if output > self.output:
            self.output, self.told = output, (ending, output)
        elif output == self.output and (self.told is None or not same_counts(ending, self.told[0])):
            self.counts = max(self.counts, counts_of(ending, output))

    def settle(self) -> None:
        """Read the numbers that wait."""
        if self.told is not None:
            self.counts = max(self.counts, counts_of(*self.told))
            self.told = None

    def latency(self) -> float | None:
        """Milliseconds from the question to the last row."""
        if self.latency_ms is not None:
            return self.latency_ms
        if self.asked_ns is None or self.last_ns is None or self.last_ns < self.asked_ns:
            return None
        return (self.last_ns - self.asked_ns) / _MS
