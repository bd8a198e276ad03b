"""Status: the usage of a session and what is left of budgets, for people, status lines and agents."""
