"""Read the exported table `usage` with one library; print source, input, cost, sessions that supersede, and month."""

import json
import sys

COLUMNS = ["source", "input_tokens", "recorded_nano_usd", "superseded_by", "month"]


def read_pyarrow(folder):
    """By a dataset of folders with names and values."""
    from pyarrow import dataset

    table = dataset.dataset(folder, format="parquet", partitioning="hive").to_table(columns=COLUMNS)
    return [tuple(row[name] for name in COLUMNS) for row in table.to_pylist()]


def read_polars(folder):
    """By a lazy scan."""
    import polars as pl

    return pl.scan_parquet(f"{folder}/**/*.parquet", hive_partitioning=True).select(COLUMNS).collect().rows()


def read_pyspark(folder):
    """By a local session."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        return [tuple(row) for row in spark.read.parquet(folder).select(COLUMNS).collect()]
    finally:
        spark.stop()


library, folder = sys.argv[1:]
found = {"pyarrow": read_pyarrow, "polars": read_polars, "pyspark": read_pyspark}[library](folder)
rows = [(*row[:4], None if row[4] is None or "HIVE" in str(row[4]) else str(row[4])) for row in found]
print(json.dumps(sorted(rows, key=lambda row: row[2] is None)))
