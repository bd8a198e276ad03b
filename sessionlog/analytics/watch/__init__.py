"""Watch: repeated snapshots of running sessions, their rates and what is left of budgets."""
