"""How long a line of a log may be: one limit for all that writes and reads, so that what is written can be read."""

MAX_LINE = 32 << 20
"""Bytes of the longest line: a longer event is shortened, a longer line is skipped and named."""
