"""Replay: a recorded log stands in for the model."""
