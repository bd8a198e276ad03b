"""Scanning with several cores or machines: any executor scans logs, one process owns the ledger."""
