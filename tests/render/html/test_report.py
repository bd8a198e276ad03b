"""The report's page: numbers of the reports, allowed elements alone, whatever logs call their things."""

import re
from datetime import UTC, datetime

from sessionlog.analytics.overview import fold_overview, overview
from sessionlog.analytics.question import Question
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import aggregate_usage, fold_usage
from sessionlog.render.html.report import render_overview, report_table
from sessionlog.render.report import View
from tests.analytics.week import DATA, NOW
from tests.ledger.entries import NOON, PRICES, book_of, record, session
from tests.render.html.test_page import EVIL, Elements

VIEW = View(tz="UTC", now=NOW, home="/home/ada")
ALLOWED = {
    "a", "bdi", "body", "button", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer", "h1", "h2",
    "head", "header", "html", "li", "line", "main", "meta", "nav", "p", "rect", "script", "section", "span", "style",
    "summary", "svg", "table", "tbody", "td", "text", "tfoot", "th", "thead", "title", "tr", "ul",
}  # fmt: skip


def page(found, **options):
    """The page of an overview."""
    return "".join(render_overview(found, VIEW, **({"budgets": None, "pages": {}} | options)))


def test_the_numbers_are_those_of_the_reports():
    """The overview's totals are those of `usage` in the same window, and each is on the page."""
    found = overview(DATA / "week", since="7d", now=NOW, prices=PRICES)
    usage = aggregate_usage(DATA / "week", since="7d", now=NOW, prices=PRICES)
    assert found.usage.rows == usage.rows
    for report in (found.usage, found.days, found.projects, found.sources):
        assert report.totals.cost_nano == usage.totals.cost_nano
        assert report.totals.total_tokens == usage.totals.total_tokens
    assert found.days.totals.requests == sum(row.requests for row in found.days_by_model.rows)
    written = Elements(page(found)).texts
    assert str(usage.totals.requests) in written
    for row in usage.rows:
        assert row.model in written


def test_values_for_sorting_are_exact():
    """Cells show rounded numbers, and carry the exact ones."""
    usage = aggregate_usage(DATA / "week", now=NOW, prices=PRICES)
    values = {a["data-value"] for name, a in Elements(report_table(usage, VIEW)).elements if "data-value" in a}
    assert {str(row.input_tokens) for row in usage.rows} <= values


def test_whatever_logs_name_stays_text():
    """Only allowed elements, no handlers, no addresses outside the page."""
    evil = record(model=EVIL, provider=EVIL, project=f"/{EVIL}", branch=EVIL, cost_nano=10)
    book = book_of(session(EVIL, evil, prompt=EVIL, status=EVIL, error=EVIL))
    question = Question(now=datetime(2026, 11, 21, tzinfo=UTC), window="7d")
    elements = Elements(page(fold_overview(book, question, most_sessions=5))).elements
    assert {name for name, _ in elements} <= ALLOWED
    assert [name for name, _ in elements].count("script") == 1
    for _, attributes in elements:
        assert not {name for name in attributes if name.startswith("on") or name in ("style", "src")}
        assert attributes.get("href", "#").startswith("#")


def test_sessions_link_to_their_pages():
    """Where one lies beside, else the command that shows the session."""
    book = book_of(session("with", record(time_ns=NOON)), session("without", record(time_ns=NOON)))
    found = fold_overview(book, Question(now=datetime(2026, 11, 21, tzinfo=UTC), window="7d"), most_sessions=5)
    text = page(found, pages={("native", "with"): "with.html"})
    assert '<a href="with.html">page</a>' in text
    assert "<code>sessionlog replay without</code>" in text


def test_nothing_is_a_page_too(tmp_path):
    """It says so."""
    text = page(overview(tmp_path / "none", now=NOW, prices=PRICES))
    assert "No usage in this time." in text
    assert "<table" not in text


def test_a_long_table_shows_its_first_rows_and_folds_all():
    """The costliest are seen at once, with the total; a table within a fold has all rows once."""
    records = [record(project=f"/w/p{number:02}", cost_nano=(30 - number) * 10**9) for number in range(20)]
    usage = fold_usage(book_of(session("one", *records)), Selection.of(None, until=None, filters=None, tz="UTC", now=NOW, by=("project",)))  # fmt: skip
    shown = report_table(usage, VIEW)
    assert shown.count("<table") == 2
    assert shown.index("p14") < shown.index("<summary>All 20 rows") < shown.index("p19")
    assert [foot.count("$410.00") > 0 for foot in re.findall("<tfoot>.*?</tfoot>", shown)] == [True, True]
    assert report_table(usage, VIEW, most=None).count("<table") == 1


def test_the_cost_is_the_first_number():
    """A phone shows two columns of a table."""
    usage = aggregate_usage(DATA / "week", now=NOW, prices=PRICES)
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', report_table(usage, VIEW))
    assert heads[: len(usage.group_by) + 1] == [*usage.group_by, "cost"]
