"""Two sessions compared: where they part, and what it cost."""
