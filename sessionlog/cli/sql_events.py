"""`sessionlog sql --events`: a query of the events of all logs, by DuckDB."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from sessionlog.analytics.sql.event_logs import EventSelection
from sessionlog.analytics.sql.event_relations import EXAMPLES, RELATIONS
from sessionlog.analytics.sql.result_stream import THREAD
from sessionlog.analytics.zones import resolve_zone, zone_name
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, USAGE, Exit, fail, note
from sessionlog.cli.sql_output import print_answer, show_schema
from sessionlog.errors import InvalidQuery, MissingExtra
from sessionlog.render.notes import damage_note
from sessionlog.render.sql import column_lines

_END_SECONDS = 3.0
_EXAMPLES = ("Examples:", *(f'  sessionlog sql --events "{example}"' for example in EXAMPLES))


def sql_events(
    words: list[str] | None, arguments: r.ReportArguments, sessions: Sequence[str], *, schema: bool, seconds: float
) -> None:
    """Query the events of the logs; without a query show the relations, their columns and examples."""
    if schema or not words:
        show_schema(arguments.form, RELATIONS, _EXAMPLES)
        return
    question, *arguments.paths = words
    context = arguments.context()
    with r.scan_progress("reading events") as progress:
        selection = r.event_selection(context, arguments, sessions, progress=progress)
        _answer(question, selection, arguments.form, context, seconds, wide=arguments.wide)


def _answer(
    question: str, selection: EventSelection, form: str, context: r.ReportContext, seconds: float, *, wide: bool
) -> None:
    try:
        from sessionlog.analytics.sql.events import EventQuery, load_events
    except ImportError as error:
        raise MissingExtra("queries of events need: pip install 'sessionlog[parquet]'") from error
    try:
        with load_events(question, selection) as database:
            print_answer(EventQuery(database.path, question, zone=_zone(context.zone)), form, seconds, wide=wide)
    except InvalidQuery as error:
        _fail_with_hint(error)
    except OSError as error:
        fail(f"the events need room for a temporary copy: {error}; narrow the query, or set TMPDIR", UNREADABLE)
    for sentence in database.notes:
        note(sentence)
    if database.problem_count:
        note(damage_note(database.problem_count, database.problems))
    if not database.logs and database.is_read:
        narrowed = bool(selection.window or selection.sources or selection.projects or selection.sessions)
        note(r.nothing_found(context, narrowed=narrowed))


def _zone(tz: str) -> str:
    """Return the name of a zone for DuckDB; UTC for one without a name."""
    name = zone_name(resolve_zone(tz))
    return name if "/" in name else "UTC"


def _fail_with_hint(error: InvalidQuery) -> NoReturn:
    note(f"sessionlog: DuckDB cannot answer: {error}")
    is_unknown = "not found in FROM clause" in str(error) or "does not exist" in str(error)
    for line in column_lines(RELATIONS) if is_unknown else ("`sessionlog sql --events` lists relations and columns",):
        note(f"  {line}")
    _end_if_stuck()
    raise Exit(USAGE) from error


def _end_if_stuck() -> None:
    """End the process now if a call of a function cannot be interrupted: DuckDB must not be unloaded while it works."""
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(_END_SECONDS)
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(USAGE)
