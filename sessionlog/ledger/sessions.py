"""What several logs tell of one session, put together: the facts of the whole, whichever log comes first."""

from __future__ import annotations

from dataclasses import replace

from sessionlog.sources.record import UNKNOWN, ScannedSession


def merge_sessions(known: ScannedSession, more: ScannedSession) -> ScannedSession:
    """Return one session's facts from two logs of it (records and tool calls are not facts; they are left out).

    The main log speaks for the session and its sub-agents' logs only add times. Of two main logs the later tells how it
    ended, the earlier how it began.
    """
    start_ns, last_ns = _least(known.start_ns, more.start_ns), _greatest(known.last_ns, more.last_ns)
    if known.part != more.part:
        main = more if known.part else known
        return replace(main, start_ns=start_ns, last_ns=last_ns, records=(), tools=())
    first, second = (known, more) if _begins_before(known, more) else (more, known)
    late, early = (more, known) if (more.last_ns or 0) >= (known.last_ns or 0) else (known, more)
    return replace(
        first,
        start_ns=start_ns,
        last_ns=last_ns,
        status=late.status,
        error=late.error,
        prompt=first.prompt or second.prompt,
        project=first.project if first.project != UNKNOWN else second.project,
        harness=first.harness if first.harness != UNKNOWN else second.harness,
        route=first.route if first.route != UNKNOWN else second.route,
        parent=first.parent or second.parent,
        duration_ms=late.duration_ms if late.duration_ms is not None else early.duration_ms,
        metadata={**second.metadata, **first.metadata},
        counted=first.counted or second.counted,
        records=(),
        tools=(),
    )


def _begins_before(one: ScannedSession, other: ScannedSession) -> bool:
    if one.start_ns is None or other.start_ns is None:
        return other.start_ns is None
    return (one.start_ns, one.path) <= (other.start_ns, other.path)


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _greatest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
