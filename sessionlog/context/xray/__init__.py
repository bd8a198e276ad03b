"""The context report: what was in the context window at one request of a session."""

from sessionlog.context.xray.report import ContextReport, Growth, xray

__all__ = ["ContextReport", "Growth", "xray"]
