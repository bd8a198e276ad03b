"""The context report: what was in the context window at one request of a session."""
