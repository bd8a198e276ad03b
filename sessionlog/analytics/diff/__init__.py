"""Diff: compare two sessions, their messages and their figures."""
