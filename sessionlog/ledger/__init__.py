"""The ledger: usage records in SQLite; every report is a query over it."""
