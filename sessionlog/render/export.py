"""Lay out what an export has sent or written: how much, where to, and what is missing there."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.columns import counted
from sessionlog.export.events import ExportedEvents
from sessionlog.export.otlp import Exported
from sessionlog.export.parquet import ExportedParquet
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import size


def render_exported(done: Exported, *, width: int) -> Iterator[Line]:  # noqa: ARG001 - lines are wrapped by the caller
    """Yield the lines."""
    what = _counted(
        (done.requests, "request"), (done.tool_calls, "tool call"), (done.sessions, "session"), (done.points, "point"),
        (done.events, "event"),
    )  # fmt: skip
    would = "would send" if done.dry_run else "sent"
    yield Line.of((f"{would} {what}", "title"), f" · {one_line(done.endpoint, 200)}")
    if done.unchanged:
        yield Line(f"{counted(done.unchanged, 'item')} sent before (--again sends them again)", "note")
    if done.without_log:
        yield Line(f"{counted(done.without_log, 'item')} without messages: the log is gone", "note")
    if done.without_time:
        yield Line(f"{counted(done.without_time, 'item')} not sent: the log has no time for them", "note")
    if done.rejected:
        words = "; ".join(one_line(message, 300) for message in done.messages) or "it gave no reason"
        yield Line(f"✘ the collector rejected {counted(done.rejected, 'item')}: {words}", "failed")


def render_parquet(done: ExportedParquet, *, width: int) -> Iterator[Line]:  # noqa: ARG001 - lines are wrapped by the caller
    """Yield the lines."""
    what = _counted(
        (done.usage, "response"), (done.tools, "tool call"), (done.sessions, "session"), (done.deleted, "tombstone")
    )
    would = "would write" if done.dry_run else "wrote"
    yield Line.of((f"{would} {what}", "title"), f" · {one_line(done.destination, 200)}")
    if done.files:
        name = f" ({one_line(done.machine_name, 100)})" if done.machine_name else ""
        in_files = f"{counted(done.files, 'file')} of {size(done.bytes)}, machine {done.machine_id}{name}"
        yield Line(in_files, "note")
    if done.merged:
        yield Line(f"{counted(done.merged, 'file')} merged", "note")
    if done.unchanged:
        yield Line(f"{counted(done.unchanged, 'row')} there before", "note")


def _counted(*counts: tuple[int, str]) -> str:
    """Return the counts that are not 0 in words."""
    return ", ".join(counted(count, thing) for count, thing in counts if count) or "nothing new"


def render_events(done: ExportedEvents, *, is_dry: bool, width: int) -> Iterator[Line]:  # noqa: ARG001 - as above
    """Yield the lines about events, and whether texts were written."""
    parts = [counted(done.events, "event")] if done.events else []
    parts += [counted(done.deleted, "tombstone")] if done.deleted else []
    would = "would write" if is_dry else "wrote"
    in_files = f" · {counted(done.files, 'file')} of {size(done.bytes)}" if done.files else ""
    yield Line.of((f"{would} {' and '.join(parts) or 'no new event'}", "title"), in_files)
    if done.merged:
        yield Line(f"{counted(done.merged, 'file')} of events merged", "note")
    has_texts = "with texts and payloads; secrets that are known by their shapes are replaced"
    yield Line(has_texts if done.has_texts else "without texts, payloads and errors", "note")
