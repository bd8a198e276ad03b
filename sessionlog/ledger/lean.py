"""Lean scans: what a log told as plain tuples, small enough to go from one process to another.

Whoever scans makes them; whoever owns the book prices them and decides what counts. Names are kept once and referred to
by number; a response is known by two hashes that are the same on every machine: of its family, which all its copies
share, and of its key within that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from sessionlog.ledger.histogram import bucket_of
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.sources.record import NO_PROBLEMS, Limit, Problems, ScannedSession

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanSession:
    """One session of a log.

    Attributes:
        facts: What the log tells of it, without records and calls.
        responses: (label, family, key, standing, told_by, time_ns, requests, failed, input, output, cache_read,
            cache_write, cache_write_1h, reasoning, cost_nano, priced, latency_ms, latency_bucket, active_ms) each.
        calls: (name, key, told_by, time_ns, finished, failed, duration_ms, duration_bucket, output_bytes) each.
    """

    facts: ScannedSession
    responses: tuple[Row, ...]
    calls: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeanScan:
    """What a scan of one log gave.

    Attributes:
        sessions: Its sessions.
        labels: Names that responses have in common, in the order of `schema.LABEL`.
        names: The same of calls, in the order of `schema.NAME`.
        problems: As in `LogScan`.
        limits: As in `LogScan`.
        resume: As in `LogScan`.
        replaced_count: As in `LogScan`.
        full_rescan: As in `LogScan`.
        failed: The log could not be read at all: what is known of it stays.
    """

    sessions: tuple[LeanSession, ...] = ()
    labels: tuple[Row, ...] = ()
    names: tuple[Row, ...] = ()
    problems: Problems = NO_PROBLEMS
    limits: tuple[Limit, ...] = ()
    resume: Resume | None = None
    replaced_count: int = 0
    full_rescan: bool = False
    failed: bool = False


def lean(scan: LogScan, *, failed: bool = False) -> LeanScan:
    """Return a scan as tuples."""
    labels: dict[Row, int] = {}
    names: dict[Row, int] = {}
    sessions = tuple(
        LeanSession(
            facts=replace(session, records=(), tools=()),
            responses=_responses(session, labels),
            calls=_calls(session, names),
        )
        for session in scan.sessions
    )
    return LeanScan(
        sessions=sessions,
        labels=tuple(labels),
        names=tuple(names),
        problems=scan.problems,
        limits=scan.limits,
        resume=scan.resume,
        replaced_count=scan.replaced_count,
        full_rescan=scan.full_rescan,
        failed=failed,
    )


def _responses(session: ScannedSession, labels: dict[Row, int]) -> tuple[Row, ...]:
    rows: list[Row] = []
    seed, own = blake2b(session.source.encode(), digest_size=8), session.project
    families: dict[str, int] = {}
    for r in session.records:
        label = (
            r.provider, r.model, r.response_model or "unknown", r.project or own, r.branch, r.version, r.agent,
            r.granularity, r.quality, r.speed, r.service_tier,
        )  # fmt: skip
        number = labels.get(label)
        if number is None:
            number = labels[label] = len(labels)
        family = key = None
        if r.key:
            name = r.family or r.key
            family = families.get(name)
            if family is None:
                family = families[name] = _numbered(name, seed)
            key = family if name == r.key else _numbered(f"{name}\0{r.key}", seed)
        usage, latency = r.usage, r.latency_ms
        rows.append((
            number, family, key, int(r.copy_rank), r.superseded_by or None, r.time_ns, r.requests, r.failed,
            usage.input, usage.output, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.reasoning,
            r.cost_nano, r.priced, latency, None if latency is None or r.failed else bucket_of(latency), r.active_ms,
        ))  # fmt: skip
    return tuple(rows)


def _calls(session: ScannedSession, names: dict[Row, int]) -> tuple[Row, ...]:
    rows = []
    seed, own = blake2b(session.source.encode(), digest_size=8), session.project
    for call in session.tools:
        name = (call.tool, call.server, call.agent, call.project or own)
        number = names.get(name)
        if number is None:
            number = names[name] = len(names)
        took = call.duration_ms
        rows.append((
            number, _numbered(call.key, seed), call.superseded_by or None, call.time_ns, call.finished, call.failed,
            took, None if took is None else bucket_of(took), call.output_bytes,
        ))  # fmt: skip
    return tuple(rows)


def number_of(name: str, seed: bytes) -> int:
    """Return a name as a number of 64 bits; two of a million names share one with a chance of 1 in 30 million."""
    return _numbered(name, blake2b(seed, digest_size=8))


def _numbered(name: str, seeded: blake2b) -> int:
    hashed = seeded.copy()  # half the time of making a new one
    hashed.update(name.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashed.digest(), "little", signed=True)
