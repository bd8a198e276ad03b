"""`sessionlog sql`: read-only SQL queries of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import NoReturn

from sessionlog.analytics.sql.question import ResultStream, ask_sql, limit_memory
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, USAGE, Exit, fail, json_text, note, print_json, print_text
from sessionlog.engine.scanner import scanner
from sessionlog.errors import InvalidQuery, LedgerUnusable
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.store import open_ledger
from sessionlog.render.sql import (
    column_lines,
    query_document,
    render_query_csv,
    render_query_markdown,
    render_query_result,
    render_views,
    row_document,
    views_document,
)

_SHOWN = 1000
"""Rows that a table shows; JSON, CSV and Markdown have all."""

_LINE = "\n    "  # the indent of a row in the JSON document


def sql(
    *,
    question: str | None,
    schema: bool,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
    wide: bool,
    no_sync: bool,
    ledger: str | None,
    seconds: float,
    now: str | None,
) -> None:
    """Query the ledger in SQL: the views usage (a row per response), sessions and tools (a row per call). Read only.

    Example: sessionlog sql "SELECT model, sum(cost_usd) FROM usage WHERE time >= '2026-11' GROUP BY model"
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    if schema:
        _show_schema(form)
        return
    if question is None:
        fail("""give a query: sessionlog sql "SELECT …"; --schema shows the views and their columns""")
    context = r.report_context(None, now=now, ledger=ledger)
    path = str(context.ledger)
    if not no_sync:
        _bring_up_to_date(context, path)
    now_ns = int(context.now.timestamp() * 1_000_000_000)
    limit_memory()
    try:
        _answer(path, question, form, seconds, now_ns, wide=wide)
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except InvalidQuery as error:
        _fail_with_hint(error)


def _answer(path: str, question: str, form: str, seconds: float, now_ns: int, *, wide: bool) -> None:
    if form in {"csv", "json"}:
        with ResultStream(path, question, seconds=seconds, now_ns=now_ns) as found:
            for piece in _csv(found) if form == "csv" else _json(found):
                print_text(piece)
        return
    limit = _SHOWN if form == "table" else None
    answer = ask_sql(path, question, limit=limit, seconds=seconds, now_ns=now_ns)
    if form == "markdown":
        print_text(render_query_markdown(answer))
    else:
        r.print_lines(partial(render_query_result, answer, wide=wide))


def _csv(found: ResultStream) -> Iterator[str]:
    return render_query_csv(found.columns, found)


def _json(found: ResultStream) -> Iterator[str]:
    """Yield the JSON document in pieces, row by row, as `json_text` would write it."""
    head, end = json_text(query_document(found.columns)).rsplit("[]", 1)
    yield f"{head}["
    between, after = "", ""
    for row in found:
        yield f"{between}\n    {json_text(row_document(found.columns, row), _LINE)}"
        between, after = ",", "\n  "
    yield f"{after}]{end}\n"


def _show_schema(form: str) -> None:
    if form == "json":
        print_json(views_document())
    elif form == "table":
        r.print_lines(render_views)
    else:
        fail("--schema is text or --json")


def _bring_up_to_date(context: r.ReportContext, path: str) -> None:
    """Read what is new in the logs into the ledger, and print its notes."""
    try:
        book = open_ledger(path, r.price_book(context.settings))
        try:
            with r.scan_progress() as progress:
                refresh(book, context.env, scanner=scanner(), progress=progress)
        finally:
            book.close()
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except sqlite3.DatabaseError as error:
        fail(f"{path}: {error}; `sessionlog ledger verify` shows more", UNREADABLE)
    for sentence in book.notes:
        note(sentence)


def _fail_with_hint(error: InvalidQuery) -> NoReturn:
    note(f"sessionlog: SQLite cannot answer: {error}")
    is_too_much = "too big" in str(error)
    hints = column_lines() if "no such" in str(error) else ("`sessionlog sql --schema` lists views and columns",)
    for line in ("a value may have 4 MiB",) if is_too_much else hints:
        note(f"  {line}")
    raise Exit(USAGE) from error
