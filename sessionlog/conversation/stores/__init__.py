"""Stores: snapshots of sessions, kept between processes, in addition to the log."""
