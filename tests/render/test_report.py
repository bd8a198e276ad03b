"""Every report in every form: the table, JSON, CSV and Markdown have the same numbers."""

import csv
import io
import json
import re

import pytest

from sessionlog.analytics.advice import report_advice
from sessionlog.analytics.blocks import list_blocks
from sessionlog.analytics.models import list_models
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.survey import survey_sources
from sessionlog.analytics.tools import aggregate_tools
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.yields import report_yield
from sessionlog.cli.output import json_text
from sessionlog.cli.reports import REPORTS
from sessionlog.render.report import (
    View,
    cell,
    heading,
    key_text,
    render_csv,
    render_markdown,
    render_table,
    table_columns,
)
from tests.analytics.week import DATA, NOW
from tests.ledger.entries import PRICES


def survey(folder, **options):
    """Sources are asked of agents' own places."""
    options.pop("prices")
    return survey_sources(env={"HOME": str(folder), "SESSIONLOG_DIR": str(folder)}, **options)


ASKED = {
    "usage": aggregate_usage, "models": list_models, "sessions": list_sessions, "tools": aggregate_tools,
    "yield": report_yield, "advise": report_advice,
    "blocks": list_blocks, "sources": survey,
}  # fmt: skip
FOLDERS = ["week"]
VIEW = View(tz="UTC", now=NOW, width=2000, wide=True)
ALIKE = ["schema", "window", "group_by", "rows", "totals", "provenance", "hidden_rows", "archived_sessions", "problems"]


@pytest.fixture(params=[(name, folder) for name in ASKED for folder in FOLDERS], ids=" ".join)
def report(request):
    """One report on one folder of logs."""
    name, folder = request.param
    return ASKED[name](DATA / folder, prices=PRICES, now=NOW)


def test_every_report_that_is_a_command_is_here():
    """A new one is tried, too."""
    assert set(ASKED) == set(REPORTS)


def test_documents_are_alike(report):
    """The same keys, around those that only one report has; rows hold group keys and columns; it is JSON."""
    document = json.loads(json_text(report.to_dict()))
    assert [key for key in document if key not in report.extra] == ALIKE
    names = [*report.group_by, *(column.name for column in report.columns)]
    assert all(list(row) == names for row in document["rows"])
    assert set(document["totals"]) <= set(names)


def test_csv_has_the_numbers_of_the_document(report):
    """Every value under its name: texts as they are, lists joined, null empty."""
    document = report.to_dict()
    header, *rows = csv.reader(io.StringIO(render_csv(report)))
    wanted = [*document["rows"], *([document["totals"]] if report.total_row else [])]
    assert len(rows) == len(wanted)
    for cells, values in zip(rows, wanted, strict=True):
        for name, text in zip(header, cells, strict=True):
            value = values.get(name, text)  # a row of totals has no keys
            if isinstance(value, str | list):
                assert text.lstrip("'") == (value if isinstance(value, str) else " ".join(value))
            else:
                assert json.loads(text or "null") == value


def test_markdown_has_the_cells_of_the_table(report):
    """Fewer columns, but each as the table shows it."""
    columns, view = {column.title: column for column in table_columns(report)}, View(tz="UTC", now=NOW, wide=True)
    titles, _, *rows = [[text.strip() for text in line.strip("|").split(" | ")] for line in
                        render_markdown(report, view).splitlines()]  # fmt: skip
    keys = len(report.group_by)
    for texts, row in zip(rows, report.rows, strict=False):
        shown = [cell(columns[title], row, view).text for title in titles[keys:]]
        assert [re.sub(r"\\(.)", r"\1", text).replace("&lt;", "<") for text in texts[keys:]] == shown
    assert len(rows) == len(report.rows) + report.total_row


def test_the_table_shows_every_titled_column_where_there_is_room(report):
    """In one order, and nothing is hidden when all columns are asked for."""
    if report.rows:
        text = [line.plain for line in render_table(report, VIEW)]
        assert text[2].split() == " ".join([key.upper() for key in report.group_by]
                                           + [heading(c).title for c in table_columns(report)]).split()  # fmt: skip
        assert not [line for line in text if line.startswith("hidden columns")]


def test_long_paths_that_differ_at_their_end_are_told_apart():
    """A table shows no more than sixty characters of a group key: of a path the last."""
    folder = "/home/ada/work/clients/acme-corporation/monorepo/packages/internal"
    names = [key_text("project", f"{folder}/{name}", VIEW) for name in ("api", "web")]
    assert [name[-13:] for name in names] == ["/internal/api", "/internal/web"]
    assert {len(name) for name in names} == {60}
    assert key_text("model", "m" * 70, VIEW) == "m" * 59 + "…"
