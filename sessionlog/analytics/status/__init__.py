"""Status: what a session used and what is left, for a person, a statusline, and the agent itself."""
