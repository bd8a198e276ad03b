"""`sessionlog sql`: read-only SQL queries of the ledger, or of the events of all logs."""

from __future__ import annotations

from sessionlog.analytics.sql.question import LedgerQuery, limit_memory
from sessionlog.analytics.sql.views import VIEWS
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, USAGE, Exit, fail, note
from sessionlog.cli.sql_output import print_answer, show_schema
from sessionlog.engine import scan_in_parallel
from sessionlog.errors import InvalidQuery, LedgerUnusable
from sessionlog.ledger.refreshing import refresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

_TABLES = "The tables themselves are main.responses, main.sessions, main.calls and others: see sqlite_schema."
_OF_EVENTS = ("since", "until", "project", "source", "session", "tz", "jobs")
"""Settings that only --events has."""


def sql(
    *,
    words: list[str] | None,
    events: bool,
    schema: bool,
    session: list[str] | None,
    no_sync: bool,
    seconds: float,
    **settings: Any,
) -> None:
    """Query the ledger in SQL: the views usage (a row per response), sessions and tools (a row per call). Read only.

    With --events, the events of all logs: every prompt, answer and tool call.

    Example: sessionlog sql "SELECT model, sum(cost_usd) FROM usage WHERE time >= '2026-11' GROUP BY model"

    Example: sessionlog sql --events "SELECT time, session, text FROM messages WHERE text ILIKE '%deadlock%'"
    """
    arguments = r.ReportArguments(settings)
    if events:
        from sessionlog.cli.sql_events import sql_events

        if no_sync:
            fail("--no-sync is for the ledger; events are always read from the logs")
        sql_events(words, arguments, r.split_list(session), schema=schema, seconds=seconds)
    elif schema:
        show_schema(arguments.form, VIEWS, [_TABLES])
    else:
        question = _question(words, {**settings, "session": session})
        _query_ledger(question, arguments, no_sync=no_sync, seconds=seconds)


def _question(words: list[str] | None, settings: Mapping[str, Any]) -> str:
    """Return the query of the ledger; options and arguments that only events have end the command."""
    for setting in _OF_EVENTS:
        if settings[setting] is not None:
            fail(f"--{setting} is for --events; a query of the ledger has WHERE")
    if not words:
        fail("""give a query: sessionlog sql "SELECT …"; --schema shows the views and their columns""")
    if len(words) > 1:
        fail(f"{words[1]}: a PATH is for --events; quote the whole query")
    return words[0]


def _query_ledger(question: str, arguments: r.ReportArguments, *, no_sync: bool, seconds: float) -> None:
    context = arguments.context()
    path = str(context.ledger)
    if not no_sync:
        _bring_up_to_date(context, path)
    now_ns = int(context.now.timestamp() * 1_000_000_000)
    limit_memory()
    try:
        print_answer(LedgerQuery(path, question, now_ns), arguments.form, seconds, wide=arguments.wide)
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except InvalidQuery as error:
        _fail_with_hint(error)


def _bring_up_to_date(context: r.ReportContext, path: str) -> None:
    """Read what is new in the logs into the ledger, and print its notes."""
    from sessionlog.cli.ledger import opened_ledger

    with opened_ledger(context, path) as book, r.scan_progress() as progress:
        refresh(book, context.env, scanner=scan_in_parallel(), progress=progress)
    for sentence in book.notes:
        note(sentence)


def _fail_with_hint(error: InvalidQuery) -> NoReturn:
    note(f"sessionlog: SQLite cannot answer: {error}")
    from sessionlog.render.sql import column_lines

    is_too_much = "too big" in str(error)
    hints = column_lines(VIEWS) if "no such" in str(error) else ("`sessionlog sql --schema` lists views and columns",)
    for line in ("a value may have 4 MiB",) if is_too_much else hints:
        note(f"  {line}")
    raise Exit(USAGE) from error
