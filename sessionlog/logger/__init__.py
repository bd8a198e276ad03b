"""Writes logs: SessionLogger, session ids, health."""
