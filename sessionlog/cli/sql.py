"""`sessionlog sql`: questions of one's own to the ledger, which they cannot change."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import NoReturn

from sessionlog.analytics.sql.question import ResultStream, ask_sql, limit_memory
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, USAGE, Leave, fail, json_text, note, print_json, print_text
from sessionlog.engine.scanner import scanner
from sessionlog.errors import InvalidQuery, LedgerUnusable
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.store import open_ledger
from sessionlog.render.sql import (
    answer_document,
    column_lines,
    render_answer,
    render_answer_csv,
    render_answer_markdown,
    render_views,
    row_document,
    views_document,
)

_SHOWN = 1000
"""Rows that a table shows; programs get all."""

_LINE = "\n    "  # where a row of the JSON document begins


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
    """Ask the ledger in SQL: the views usage (a row per response), sessions and tools (a row per call). It only reads.

    Example: sessionlog sql "SELECT model, sum(cost_usd) FROM usage WHERE time >= '2026-11' GROUP BY model"
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    if schema:
        _show_schema(form)
        return
    if question is None:
        fail("""name a question: sessionlog sql "SELECT …"; --schema shows what there is""")
    where = r.reporting(None, now=now, ledger=ledger)
    path = str(where.ledger)
    if not no_sync:
        _bring_up_to_date(where, path)
    now_ns = int(where.now.timestamp() * 1_000_000_000)
    limit_memory()
    try:
        _answer(path, question, form, seconds, now_ns, wide=wide)
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except InvalidQuery as error:
        _refuse(error)


def _answer(path: str, question: str, form: str, seconds: float, now_ns: int, *, wide: bool) -> None:
    if form in {"csv", "json"}:
        with ResultStream(path, question, seconds=seconds, now_ns=now_ns) as found:
            for piece in _csv(found) if form == "csv" else _json(found):
                print_text(piece)
        return
    limit = _SHOWN if form == "table" else None
    answer = ask_sql(path, question, limit=limit, seconds=seconds, now_ns=now_ns)
    if form == "markdown":
        print_text(render_answer_markdown(answer))
    else:
        r.print_lines(partial(render_answer, answer, wide=wide))


def _csv(found: ResultStream) -> Iterator[str]:
    return render_answer_csv(found.columns, found)


def _json(found: ResultStream) -> Iterator[str]:
    """Yield the JSON document in pieces, row by row, as `json_text` would write it."""
    head, end = json_text(answer_document(found.columns)).rsplit("[]", 1)
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


def _bring_up_to_date(where: r.Reporting, path: str) -> None:
    """Let the ledger read what is new; what could not be done is said."""
    try:
        book = open_ledger(path, r.price_book(where.settings))
        try:
            with r.scan_progress() as progress:
                refresh(book, where.env, scanner=scanner(), progress=progress)
        finally:
            book.close()
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except sqlite3.DatabaseError as error:
        fail(f"{path}: {error}; `sessionlog ledger verify` says more", UNREADABLE)
    for sentence in book.notes:
        note(sentence)


def _refuse(error: InvalidQuery) -> NoReturn:
    note(f"sessionlog: SQLite cannot answer: {error}")
    is_too_much = "too big" in str(error)
    hints = column_lines() if "no such" in str(error) else ("`sessionlog sql --schema` shows what there is",)
    for line in ("a value may have 4 MiB",) if is_too_much else hints:
        note(f"  {line}")
    raise Leave(USAGE) from error
