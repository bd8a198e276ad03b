"""Lay out what an export has sent: how much, where to, and what is missing there."""

from __future__ import annotations

from collections.abc import Iterator

from sessionlog.analytics.columns import counted
from sessionlog.export.otlp import Exported
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line


def render_exported(done: Exported, *, width: int) -> Iterator[Line]:  # noqa: ARG001 - lines are wrapped by the caller
    """Yield the lines."""
    parts = [
        counted(count, what)
        for count, what in (
            (done.requests, "request"), (done.tool_calls, "tool call"), (done.sessions, "session"),
            (done.points, "point"), (done.events, "event"),
        )
        if count
    ]  # fmt: skip
    would = "would send" if done.dry_run else "sent"
    yield Line.of((f"{would} {', '.join(parts) or 'nothing new'}", "title"), f" · {one_line(done.endpoint, 200)}")
    if done.unchanged:
        yield Line(f"{counted(done.unchanged, 'item')} sent before (--again sends them again)", "note")
    if done.without_log:
        yield Line(f"{counted(done.without_log, 'item')} without messages: the log is gone", "note")
    if done.without_time:
        yield Line(f"{counted(done.without_time, 'item')} not sent: the log has no time for them", "note")
    if done.rejected:
        words = "; ".join(one_line(message, 300) for message in done.messages) or "it gave no reason"
        yield Line(f"✘ the collector rejected {counted(done.rejected, 'item')}: {words}", "failed")
