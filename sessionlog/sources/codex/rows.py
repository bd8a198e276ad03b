"""How Codex's rows look, and what their numbers mean.

A `token_count` row holds the thread's total so far and the last response's share. The total is the truth: rows are
repeated with every look at the rate limits, so adding up the shares counts some responses twice, while the difference
to the total before is zero for a repeat. The input of both includes what was read from and written to a cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from operator import add, sub
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import astuple

from sessionlog.events.times import SECOND
from sessionlog.events.tokens import MAX_COUNT, read_count
from sessionlog.sources.kit import Limit, Tokens, disjoint, name, read_time

PROVIDER = "openai"

Vector = tuple[int, ...]
"""Input (cached tokens included), cached input, output (reasoning included), reasoning, cache writes (in the input)."""

NOTHING: Vector = (0, 0, 0, 0, 0)
NULL = Raw(b"null")

_FILE_NAME = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?\.jsonl(?:\.gz|\.zst)?\Z")


class Window(Struct, gc=False):
    """One window of a rate limit."""

    used_percent: Any = None
    window_minutes: Any = None
    resets_at: Any = None
    resets_in_seconds: Any = None


class RateLimits(Struct, gc=False):
    """The rate limits that Codex logs with its counters."""

    limit_id: Any = None
    plan_type: Any = None
    primary: Window | None = None
    secondary: Window | None = None


class Counts(Struct, gc=False):
    """A counter object."""

    input_tokens: Any = None
    cached_input_tokens: Any = None
    output_tokens: Any = None
    reasoning_output_tokens: Any = None
    cache_write_input_tokens: Any = None


_FIELDS = Counts.__struct_fields__
Counted = Counts | str | int | float | list[Any] | bool | None
"""A counter as a row holds it: anything else than an object is damage."""


class Info(Struct, gc=False):
    """The counters of a `token_count`."""

    total_token_usage: Counted = None
    last_token_usage: Counted = None
    model: Any = None
    model_name: Any = None
    model_context_window: Any = None
    service_tier: Any = None


class Payload(Struct, gc=False):
    """The payload of any row; each kind has its few."""

    type: Any = None
    role: Any = None
    content: Raw = NULL
    summary: Raw = NULL
    name: Any = None
    namespace: Any = None
    call_id: Any = None
    arguments: Raw = NULL
    input: Raw = NULL
    action: Raw = NULL
    output: Raw = NULL
    message: Raw = NULL
    info: Info | None = None
    rate_limits: RateLimits | None = None
    service_tier: Any = None
    thread_settings: Any = None
    usage: Counted = None
    response_id: Any = None
    turn_id: Any = None
    model: Any = None
    cwd: Any = None
    error: Any = None
    codex_error_info: Any = None
    last_agent_message: Raw = NULL
    success: Any = None
    status: Any = None
    exit_code: Any = None
    model_context_window: Any = None
    duration: Any = None
    invocation: Any = None
    result: Raw = NULL
    id: Any = None
    timestamp: Any = None
    session_id: Any = None
    parent_thread_id: Any = None
    forked_from_id: Any = None
    source: Any = None
    thread_source: Any = None
    agent_role: Any = None
    agent_type: Any = None
    agent_nickname: Any = None
    model_provider: Any = None
    cli_version: Any = None
    git: Any = None
    base_instructions: Any = None
    instructions: Any = None


class Row(Payload, gc=False):
    """A row; before September 2025, and in streams, what is a payload elsewhere is the row itself."""

    payload: Payload | None = None
    thread_id: Any = None
    item: Any = None


class NumberedRow(Row, gc=False):
    """A row with its place in its thread, which a fork counts on from its parent's."""

    ordinal: Any = None


def thread_of(path: str) -> str:
    """Name a thread by its file: the UUID at the end of the name, else the name."""
    file_name = os.path.basename(path)
    match = _FILE_NAME.search(file_name)
    return (match.group(1) or file_name[: match.start()]) if match else file_name


def read_vector(counts: Counted, before: Vector | None = None) -> tuple[Vector | None, tuple[str, ...]]:
    """Return a counter object's counts (None for none), and what was wrong with it.

    A field that is missing or no count keeps its value from `before`, or is 0: the next whole row makes up for it.
    """
    if counts is None:
        return None, ()
    given: Vector = astuple(counts) if isinstance(counts, Counts) else ()
    if given.count(None) == len(given):
        return None, ("a token counter without counts",)
    if None in given:
        pairs = zip(given, before or NOTHING, strict=True)
        given = tuple([old if value is None else value for value, old in pairs])
    for value in given:
        if type(value) is not int or not 0 <= value <= MAX_COUNT:
            break
    else:
        return given, ()
    read = list(map(read_count, given))
    issues = tuple(f"{field}: {issue}" for field, (_, issue) in zip(_FIELDS, read, strict=True) if issue)
    kept = (before[number] if before and issue else count for number, (count, issue) in enumerate(read))
    return tuple(kept), issues


def advance(
    before: Vector | None,
    total: Vector | None,
    last: Vector | None,
    *,
    first: Vector | None = None,
    inherits: bool = False,
) -> tuple[Vector | None, Vector | None]:
    """Move a thread's counter on by one row.

    Args:
        before: The total before; None at the thread's start.
        total: The row's total.
        last: The row's share of the last response.
        first: The first total of the process that counts.
        inherits: The thread may have begun with its parent's total.

    Returns:
        The total from now on, and what was used; None when the row holds nothing new.
    """
    if total is None:
        if last is None or last == NOTHING:
            return before, None
        return plus(before or NOTHING, last), last
    if before is None:
        used = last if inherits and last is not None else total
        return total, used if any(used) else None
    if total == last and total not in (before, first, NOTHING):
        return total, total  # a process that resumed the thread counts from nothing
    used = minus(total, before)
    if min(used) >= 0:
        return total, used if any(used) else None
    was, now = before[0] + before[2], total[0] + total[2]
    share = last[0] + last[2] if last else 0
    if now * 100 >= was * 98 or now >= was - 2 * share:
        return before, None  # an older row that was written late
    used = last or total  # the counter began anew
    return total, used if any(used) else None


def plus(a: Vector, b: Vector) -> Vector:
    """Return the sum."""
    return tuple(map(add, a, b))


def minus(a: Vector, b: Vector) -> Vector:
    """Return the difference, which may be negative."""
    return tuple(map(sub, a, b))


def tokens_of(used: Vector, issues: tuple[str, ...] = ()) -> Tokens:
    """Return a counter's difference in disjoint classes."""
    given, cached, output, reasoning, written = used
    return Tokens(disjoint(given, output, cached, written, 0, reasoning, is_inclusive=True), issues)


def read_limits(limits: RateLimits, time_ns: int) -> Iterator[Limit]:
    """Yield the limits in a report; those of another limit than the usual one have its id in their names."""
    id_ = name(limits.limit_id) or "codex"
    for window_name, window in (("primary", limits.primary), ("secondary", limits.secondary)):
        used = None if window is None else read_number(window.used_percent)
        if window is None or used is None:
            continue
        yield Limit(
            time_ns=time_ns,
            name=window_name if id_ == "codex" else f"{id_}/{window_name}",
            used_percent=used,
            window_minutes=read_number(window.window_minutes),
            resets_ns=_resets(window, time_ns),
            plan=name(limits.plan_type),
        )


def _resets(window: Window, time_ns: int) -> int | None:
    """When a window ends: at a moment, or some seconds after the row (before November 2025)."""
    at, seconds = read_time(window.resets_at), read_number(window.resets_in_seconds)
    return at if at is not None or seconds is None else min(time_ns + int(seconds * SECOND), 2**63 - 1)


def read_number(value: Any) -> float | None:
    """Return a number that is neither negative nor huge; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**12
    return float(value) if is_number else None
