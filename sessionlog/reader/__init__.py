"""Reads logs: stream, follow, check and repair."""
