"""A session's events: written while it runs, and folded back into its history."""
