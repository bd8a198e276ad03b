"""The book: SQLite of usage records; every report is a query over it."""
