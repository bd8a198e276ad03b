"""Values of names that logs do not have."""

UNKNOWN = "unknown"
"""The value of every missing group key, which is never null."""

MAIN = "main"
"""The agent itself, not one of its sub-agents."""
