"""The history: its messages, the rules for valid ones, and truncation."""
