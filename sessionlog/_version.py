"""The version, as a constant: reading package metadata costs 60 ms."""

__version__ = "0.1.0"
