"""The cached path: answer `usage --json` and `status` from an up-to-date ledger, with as few imports as possible.

It answers only if the output is, to the byte, that of the full path, and declines everything else: a config file, times
and zones, an empty report. It imports the rules of the full path; only the code that connects them is duplicated.
"""

from __future__ import annotations

import os

from sessionlog.cli.options import COMMANDS, USAGE_BY, split_list
from sessionlog.places import config_file, ledger_file, session_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sessionlog.errors import Problem

    Answer = tuple[dict[str, Any] | str, list[str]]
    """A document or a text, and notes."""

_SAME: Mapping[str, frozenset[str]] = {
    "usage": frozenset({
        "as_json", "by", "sort", "limit", "provider", "model", "project", "status", "ledger", "wide"
    }),
    "status": frozenset({"as_json", "as_line", "session", "everything", "ledger"}),
}  # fmt: skip
"""The settings that the cached path supports, by command; all others must have their defaults."""


def answer(command: str, settings: Mapping[str, Any]) -> bool:
    """Run a command and return True, or return False without having printed anything."""
    run = _COMMANDS.get(command)
    if run is None or bool(settings.get("as_json")) == bool(settings.get("as_line")) or os.environ.get("SESSIONLOG_TZ"):
        return False
    if any(
        settings[option.setting] != option.default
        for option in COMMANDS[command]
        if option.setting not in _SAME[command]
    ):
        return False
    if command != "status" and os.path.exists(config_file(os.environ)):
        return False
    from sessionlog.ledger.cached import open_up_to_date

    env = {**os.environ, "SESSIONLOG_DIR": session_directory(os.environ)}
    try:
        connection = open_up_to_date(settings["ledger"] or ledger_file(env), env)
        if connection is None:
            return False
        try:
            found = run(connection, settings)
        finally:
            connection.close()
    except Exception:  # noqa: BLE001 - a damaged row may raise anything; the full path reports it
        return False
    if found is None:
        return False
    from sessionlog.cli.output import note, print_json, print_text

    value, notes = found
    if isinstance(value, str):
        print_text(value)
    else:
        print_json(value)
    for sentence in notes:
        note(sentence)
    return True


_MAX_ROWS = 10_000
"""With more rows the full path takes less memory."""


def _usage(connection: sqlite3.Connection, settings: Mapping[str, Any]) -> Answer | None:
    """Answer `sessionlog usage --json`."""
    from time import time_ns

    from sessionlog.analytics import columns, conditions, row_order, usage_columns, usage_sums

    by, sort, limit = split_list(settings["by"] or [USAGE_BY]), settings["sort"], settings["limit"]
    if len(set(by)) != len(by) or any(key not in conditions.KEYS or key in conditions.TIME_KEYS for key in by):
        return None
    words = columns.column_aliases(usage_columns.COLUMNS)
    if sort and sort.removeprefix("-") not in (*by, *words):
        return None

    def query(sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return connection.execute(sql, parameters).fetchall()

    connection.create_function("lower_case", 1, str.lower, deterministic=True)
    connection.create_function("project_key", 1, str, deterministic=True)
    filters = {key: settings[key] for key in conditions.FILTERS if settings[key]}
    where, parameters = conditions.filter_condition(filters, time_ns())
    keys = [conditions.KEYS[key] for key in by]
    usage_sums.fill_shares(query, keys=keys, tables="quarter_hours", bounds={}, where=where, parameters=parameters)
    if query("SELECT COUNT(*) FROM shares", {})[0][0] > _MAX_ROWS:
        return None
    rows = sorted(usage_sums.sums_of(query, usage_columns.SummedRow, by), key=row_order.by_cost(by, ()))
    [totals] = usage_sums.sums_of(query, usage_columns.SummedRow)
    if not rows and not totals.sessions:
        return None
    if sort:
        key, turned = row_order.by_column(sort, by, words)
        rows.sort(key=row_order.by_keys)
        rows.sort(key=key, reverse=turned)
    hidden = 0 if limit is None else max(0, len(rows) - limit)
    archived = usage_sums.archived_sessions(query)
    damaged, problems = _problems(connection)
    value = columns.document(
        usage_columns.SCHEMA, usage_columns.COLUMNS, window=None, group_by=by, rows=rows[: len(rows) - hidden],
        totals=totals,
        provenance=usage_sums.provenance(query), hidden_rows=hidden,
        archived_sessions=archived, problem_count=damaged, problems=map(str, problems[:10]),
    )  # fmt: skip
    if not (damaged or hidden or archived):
        return value, []
    from sessionlog.render.notes import archived_note, damage_note, limit_note

    notes = [damage_note(damaged, problems)] if damaged else []
    notes += [limit_note(hidden, "row")] if hidden else []
    return value, notes + ([archived_note(archived)] if archived else [])


def _problems(connection: sqlite3.Connection) -> tuple[int, Sequence[Problem]]:
    """Return the number of problems in the logs, and the first of them."""
    if connection.execute("SELECT 1 FROM files WHERE problems AND NOT missing LIMIT 1").fetchone() is None:
        return 0, ()
    from sessionlog.ledger.reading import ReadBook

    book = ReadBook(connection)
    return book.problem_count, book.problems


def _status(connection: sqlite3.Connection, settings: Mapping[str, Any]) -> Answer | None:
    """Answer `sessionlog status --json` and `--line`."""
    from sessionlog.cli.cached_status import answer_status

    return answer_status(connection, settings)


_COMMANDS: Mapping[str, Callable[[sqlite3.Connection, Mapping[str, Any]], Answer | None]] = {
    "usage": _usage, "status": _status,
}  # fmt: skip
"""The commands that have a cached path."""
