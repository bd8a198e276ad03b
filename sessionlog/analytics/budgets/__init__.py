"""Budgets: limits on usage per time, their current use, and reservations for calls that are not logged yet."""
