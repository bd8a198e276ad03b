"""More than one core or machine: logs are scanned by any executor, the book has one owner."""
