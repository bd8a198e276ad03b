"""Snapshots: what a live agent, its messages or a log have in the window, as values that programs keep."""
