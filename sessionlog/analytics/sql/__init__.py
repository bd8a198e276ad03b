"""User queries in SQL: the views, and a runner that cannot change the ledger."""
