"""Machines that export to one folder, and DuckDB that counts by the SQL of docs/parquet.md."""

import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import duckdb

from sessionlog import aggregate_usage
from sessionlog.export.parquet import export_parquet

PAGE = (Path(__file__).parents[2] / "docs" / "parquet.md").read_text("utf-8")
SUMS = (
    "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip
BY = ("source", "provider", "model", "response_model", "project", "branch", "version", "agent", "session")


class Machine:
    """A home with a ledger of its own, that exports to a folder which others may share."""

    def __init__(self, folder, home, team):
        self.folder, self.home, self.team = Path(folder), Path(home), str(team)
        self.env = {
            "HOME": str(home),
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_DATA_HOME": f"{home}/.local/share",
            "SESSIONLOG_DIR": f"{home}/.local/state/sessionlog/sessions",
        }
        self.ledger = f"{folder}/ledger.sqlite"

    def export(self, **options):
        """Export, and return what was written."""
        return export_parquet(self.team, **{"ledger": self.ledger, "env": self.env, "jobs": 1} | options)

    def usage(self, by=BY, **options):
        """What the report has: group keys → sums and costs in nano-dollars."""
        report = aggregate_usage(by=by, ledger=self.ledger, env=self.env, jobs=1, **options)
        return {
            tuple(row.keys[key] for key in by): (*(getattr(row, name) for name in SUMS), *map(nano, (row.known_cost_usd, row.estimated_cost_usd)))
            for row in report.rows
            if any(getattr(row, name) for name in SUMS)
        }  # fmt: skip


def export_at_once(machines):
    """Export in processes of their own, which begin when all of them are ready."""
    context = get_context("spawn")
    barrier = context.Barrier(len(machines))
    with ProcessPoolExecutor(len(machines), context, initializer=_keep, initargs=(barrier,)) as pool:
        return list(pool.map(_export_with_others, machines))


_shared = {}


def _keep(barrier):
    _shared["barrier"] = barrier


def _export_with_others(machine):
    _shared["barrier"].wait(30)
    return machine.export()


def nano(usd):
    """Dollars as whole nano-dollars."""
    return None if usd is None else round(usd * 1e9)


def counted(team):
    """A connection to DuckDB with the table `requests`, as the page makes it of a folder."""
    [tables, _] = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    connection = duckdb.connect(config={"threads": "1"})
    connection.execute(tables.replace("team/", f"{str(team).replace(chr(39), chr(39) * 2)}/"))
    return connection


def usage_of(team, by=BY):
    """The same as `Machine.usage` by DuckDB over exported files."""
    with counted(team) as connection:
        keys = ", ".join(by)
        rows = connection.execute(
            f"""SELECT {keys}, sum(requests), sum(CASE WHEN failed THEN requests ELSE 0 END), sum(input_tokens), sum(output_tokens),
            sum(cache_read_tokens), sum(cache_write_tokens), sum(reasoning_tokens), sum(recorded_nano_usd), sum(estimated_nano_usd)
            FROM requests GROUP BY ALL"""
        ).fetchall()
    found = {row[: len(by)]: row[len(by) :] for row in rows}
    return {key: sums for key, sums in found.items() if any(sums[: len(SUMS)])}


def rows_of(team, table="usage", columns="*"):
    """All rows of a table, of every revision."""
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {columns} FROM read_parquet('{team}/{table}/*/*/*/*.parquet')").fetchall()
