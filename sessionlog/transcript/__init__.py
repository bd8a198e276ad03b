"""The conversation, folded: events → splices, turns and requests. Replay, diff, context and resume are its users."""
