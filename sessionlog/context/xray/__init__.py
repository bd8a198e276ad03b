"""The X-ray: what was in the context window at a request, folded from a session's events."""

from sessionlog.context.xray.report import ContextReport, Growth, xray

__all__ = ["ContextReport", "Growth", "xray"]
