"""What the ledger knows, written for other programs: spans and metrics for a collector of OpenTelemetry, and parquet.

An exported item has an id that is made from its keys, so that a second export of the same logs gives the same ids.
"""
