"""Print the result of a SQL query in each format, or the views that it may use."""

from __future__ import annotations

from functools import partial

from sessionlog.analytics.sql.result_stream import ResultStream, read_result
from sessionlog.cli import reporting as r
from sessionlog.cli.output import fail, json_text, print_json, print_text
from sessionlog.render.sql import (
    query_document,
    render_query_csv,
    render_query_markdown,
    render_query_result,
    render_views,
    row_document,
    views_document,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessionlog.analytics.sql.result_stream import Query
    from sessionlog.analytics.sql.views import View

_SHOWN = 1000
"""Rows that a table shows; JSON, CSV and Markdown have all."""

_LINE = "\n    "  # the indent of a row in the JSON document


def print_answer(query: Query, form: str, seconds: float, *, wide: bool) -> None:
    """Run a query and print its result.

    Raises:
        InvalidQuery: The query is not valid, not allowed, too slow or too large.
    """
    with ResultStream(query, seconds=seconds) as found:
        if form in {"csv", "json"}:
            for piece in render_query_csv(found.columns, found) if form == "csv" else _json(found):
                print_text(piece)
            return
        result = read_result(found, _SHOWN if form == "table" else None)
    if form == "markdown":
        print_text(render_query_markdown(result))
    else:
        r.print_lines(partial(render_query_result, result, wide=wide))


def show_schema(form: str, views: Sequence[View], last: Sequence[str]) -> None:
    """Print the views and their columns, and sentences below them."""
    if form == "json":
        print_json(views_document(views))
    elif form == "table":
        r.print_lines(partial(render_views, views=views, last=last))
    else:
        fail("--schema is text or --json")


def _json(found: ResultStream) -> Iterator[str]:
    """Yield the JSON document in pieces, row by row, as `json_text` would write it."""
    head, end = json_text(query_document(found.columns)).rsplit("[]", 1)
    yield f"{head}["
    between, after = "", ""
    for row in found:
        yield f"{between}\n    {json_text(row_document(found.columns, row), _LINE)}"
        between, after = ",", "\n  "
    yield f"{after}]{end}\n"
