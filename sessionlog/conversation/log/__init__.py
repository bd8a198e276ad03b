"""A session's events: the recorder writes them, the fold reads them back as the history."""
