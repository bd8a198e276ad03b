"""Budgets: what may be used in some time, what of it is used, and who may still use how much."""
