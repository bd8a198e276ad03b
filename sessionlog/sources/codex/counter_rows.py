"""The counters of the fast lane: what a `token_count` row says, from its bytes.

Most rows differ from the one before in their numbers alone, and of their rate limits only the last ones count: these
wait undecoded until something else asks for them.
"""

from __future__ import annotations

import re
from contextlib import suppress

import orjson

from sessionlog.sources.codex.counters import NOTHING
from sessionlog.sources.codex.heads import TO
from sessionlog.sources.codex.scan import Rollout

_COUNT = rb"(?:0|[1-9]\d{0,14}+)"  # no more than is a count, and a number in JSON
_USAGE = (
    rb'\{"input_tokens":(N),"cached_input_tokens":(N),(?:"cache_write_input_tokens":(N),)?"output_tokens":(N),'
    rb'"reasoning_output_tokens":(N),"total_tokens":N\}'
)
_INFO = (
    rb'"info":(?:null|\{"total_token_usage":' + _USAGE + rb',"last_token_usage":' + _USAGE.replace(b"(N)", b"N")
    + rb',"model_context_window":N\}),"rate_limits":'
)  # fmt: skip
_COUNTED = re.compile(_INFO.replace(b"N", _COUNT))
_DIGITS = b"0123456789."


class CounterRows:
    """Accounts for the counters of one log."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._limits = b""  # the latest word on the rate limits
        self._limits_ns = 0
        self._shape = b""

    def take(self, data: bytes, at: int, stop: int, time_ns: int) -> bool:
        """A counter: often the one before once more."""
        match = _COUNTED.match(data, at + TO)
        if match is None:
            return False
        limits = data[match.end() : stop - 2]
        if limits.translate(None, _DIGITS) != self._shape and not self._learns(limits):
            return False
        rollout = self._rollout
        given, cached, written, output, reasoning = match.groups()
        if given is None:
            own = rollout.touch(time_ns)
        else:
            before = rollout.counter
            if before is None:
                if rollout.thread.inherits:
                    return False
                before = NOTHING
            total = int(given), int(cached), int(output), int(reasoning), int(written) if written else before[4]
            if total == before:
                own = rollout.touch(time_ns)
                rollout.counter = total
            else:
                (a, b, c, d, e), (f, g, h, i, j) = total, before
                if a < f or b < g or c < h or d < i or e < j:
                    return False
                own = rollout.touch(time_ns)
                rollout.counter = total
                rollout.respond(own, time_ns, total, (a - f, b - g, c - h, d - i, e - j))
        if own:
            self._limits, self._limits_ns = limits, time_ns
        return True

    def _learns(self, limits: bytes) -> bool:
        """Whether this is JSON, and no more of the row: of limits that differ in their numbers only one is read."""
        self.flush()
        try:
            orjson.loads(limits)
        except ValueError:
            return False
        self._shape = limits.translate(None, _DIGITS)
        return True

    def flush(self) -> None:
        """Read the rate limits that wait."""
        if self._limits:
            with suppress(ValueError):
                self._rollout.take_limits(orjson.loads(self._limits), self._limits_ns)
            self._limits = b""
