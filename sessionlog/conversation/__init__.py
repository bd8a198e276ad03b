"""Sessions that remember: history, truncation, fork, stores, resume from a log."""
