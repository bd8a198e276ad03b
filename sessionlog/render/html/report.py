"""The page of an overview: charts and tables of a period. Every number is a report's; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from sessionlog.analytics.budgets.report import BudgetReport
from sessionlog.analytics.columns import Column, counted
from sessionlog.analytics.overview import Overview
from sessionlog.analytics.report import Report
from sessionlog.analytics.usage_row import UsageReport
from sessionlog.analytics.window import describe_window
from sessionlog.render.heatmap import amount_of, as_date, calendar_levels
from sessionlog.render.html.charts import SERIES, calendar, share_bar, stacked_bars
from sessionlog.render.html.page import Html, join, render_page, tag
from sessionlog.render.notes import archived_note, damage_note
from sessionlog.render.numbers import UNKNOWN, cost_text, human_count, percent
from sessionlog.render.report import View, cell, closing_notes, key_text, row_cost, table_columns

_STYLES = {"failed": "bad", "unfinished": "unsure", "estimated": "unsure", "success": "good", "secondary": "dim"}
_ROWS = 15
"""Rows of a longer table that are shown; all are folded below them."""

_HIDDEN_RANK = 8
_SESSION_COLUMNS = ("start", "cost_usd", "status", "project", "prompt", "models", "requests", "total_tokens")


def render_overview(
    found: Overview, view: View, *, budgets: BudgetReport | None, pages: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    """Yield the page piece by piece.

    Args:
        found: The reports.
        view: Zone, present and home folder.
        budgets: The user's budgets; None without any.
        pages: Source and session → the address of its page, relative to this one.
    """
    span = describe_window(found.usage.window, view.tz, now=view.now)
    yield from render_page(f"Usage · {span}", _body(found, view, span, budgets, pages), kind="report")


def _body(
    found: Overview, view: View, span: str, budgets: BudgetReport | None, pages: Mapping[tuple[str, str], str]
) -> Iterator[Html]:
    made = view.stamp(int(view.now.timestamp()) * 10**9)
    yield tag("header", tag("h1", "Usage"), tag("p", f"{span} · made {made}", class_="dim"), _cards(found))
    sections = [
        (
            "days",
            "By day",
            [_days_chart(found, view), _folded(report_table(found.days, view, most=None), "Table of days")],
        ),
        ("year", "The last year", [_year(found.year, view)]),
        ("models", "Models", [report_table(found.usage, view)]),
        ("projects", "Projects", [report_table(found.projects, view)]),
        ("agents", "Agents", [report_table(found.sources, view)]),
    ]
    if found.tools is not None and found.tools.rows:
        sections.append(("tools", "Tools", [report_table(found.tools, view)]))
    if budgets is not None and budgets.rows:
        sections.append(("budgets", "Budgets", [report_table(budgets, view)]))
    if found.blocks.limits:
        sections.append(("limits", "Rate limits", [_limits(found, view)]))
    sections.append(("sessions", "Costliest sessions", [_sessions(found, view, pages)]))
    links = (tag("a", title, href=f"#{name}") for name, title, _ in sections)
    yield tag("nav", *(part for link in links for part in (link, " ")), aria_label="Sections")
    yield Html("<main>")
    if found.usage.is_empty:
        yield tag("p", "No usage in this time.")
    else:
        for name, title, content in sections:
            yield tag(
                "section", tag("h2", title, id=f"{name}-title"), *content, id=name, aria_labelledby=f"{name}-title"
            )
    yield Html("</main>")
    yield tag("footer", *(tag("p", sentence, class_="note") for sentence in _notes(found)))


def _cards(found: Overview) -> Html:
    row = found.usage.totals
    cards = [
        ("Cost", row_cost(row).text),
        ("Sessions", human_count(row.sessions)),
        ("Requests", human_count(row.requests)),
        ("Tokens", human_count(row.total_tokens)),
        ("Output", human_count(row.output_tokens)),
        ("From cache", percent(row.cache_hit_rate)),
        ("Saved by cache", cost_text(row.cache_savings_usd)),
        ("Succeeded", percent(row.success_rate)),
    ]
    entries = (tag("div", tag("dt", name), tag("dd", value)) for name, value in cards)
    return tag("dl", *entries, class_="cards")


def report_table(report: Report, view: View, *, most: int | None = _ROWS) -> Html:
    """Return any report as a table: its group keys and the columns that terminal tables have; sortable in a browser.

    The cost is the first column, so that it is seen on a phone. Of more than `most` rows the first are shown.
    """
    if not report.rows:
        return tag("p", "None in this time.", class_="dim")
    columns = [column for column in table_columns(report) if column.rank <= _HIDDEN_RANK]
    columns = [
        column for column in columns if any(cell(column, row, view).text not in ("", UNKNOWN) for row in report.rows)
    ]
    columns.sort(key=lambda column: column.name != "cost_usd")
    heads = [tag("th", key.replace("_", " "), scope="col") for key in report.group_by]
    heads += [tag("th", (column.title or "").lower(), scope="col", title=column.note or column.label,
                  class_=None if column.unit in ("text", "texts") else "number") for column in columns]  # fmt: skip
    rows = [_row(report, row, columns, view) for row in report.rows]
    foot = None
    if report.total_row and report.group_by:
        empty = (tag("td") for _ in report.group_by[1:])
        totals = (_cell(column, report.totals, view) for column in columns)
        foot = tag("tfoot", tag("tr", tag("th", "total", scope="row"), *empty, *totals))
    head = tag("thead", tag("tr", *heads))

    def table(shown: Sequence[Html], name: str) -> Html:
        return _scrolling(tag("table", head, tag("tbody", *shown), foot, data_sortable=True), name)

    whole = table(rows, f"{report.title}: table")
    if most is None or len(rows) <= most:
        return whole
    title = f"All {counted(len(rows), report.thing)}"
    return join(table(rows[:most], f"{report.title}: the first rows"), _folded(whole, title))


def _row(report: Report, row: object, columns: Sequence[Column], view: View) -> Html:
    keys = [(key, value) for key, value in getattr(row, "keys", {}).items()] if report.group_by else []
    names = [tag("th" if n == 0 else "td", tag("bdi", key_text(key, value, view)), scope="row" if n == 0 else None)
             for n, (key, value) in enumerate(keys)]  # fmt: skip
    return tag("tr", *names, *(_cell(column, row, view) for column in columns))


def _cell(column: Column, row: object, view: View) -> Html:
    shown, value = cell(column, row, view), column.value(row)
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    classes = [] if column.unit in ("text", "texts") else ["number"]
    classes += [_STYLES[shown.style]] if shown.style in _STYLES else []
    bar = share_bar(number) if column.unit == "share" and number is not None else None
    text = percent(number) if bar is not None else shown.text
    return tag("td", bar, " " if bar else None, tag("bdi", text), class_=" ".join(classes) or None, data_value=number)


def _scrolling(content: Html, name: str) -> Html:
    """Return a region that scrolls sideways where the screen is narrow, also by keyboard."""
    return tag("div", content, class_="scroll", tabindex=0, role="region", aria_label=name)


def _folded(content: Html, title: str) -> Html:
    return tag("details", tag("summary", title), content)


def _days_chart(found: Overview, view: View) -> Html:
    """Bars of cost, or of tokens where no cost is known, stacked by the models with the most."""
    report = found.days_by_model
    amount = amount_of(report.rows)
    sums: dict[str, float] = {}
    by_day: dict[str, dict[str, float]] = {}
    for row in report.rows:
        model, day = row.keys["model"], row.keys["day"]
        value = max(0, amount(row))
        sums[model] = sums.get(model, 0) + value
        by_day.setdefault(day, {})[model] = by_day.get(day, {}).get(model, 0) + value
    largest = sorted(sums, key=lambda model: (-sums[model], model))
    names, rest = largest[:SERIES], largest[SERIES:]
    is_money = any(row.cost_nano for row in report.rows)

    def text(value: float) -> str:
        return cost_text(value / 10**9) if is_money else f"{human_count(round(value))} tokens"

    labels, amounts, tooltips = [], [], []
    for day in _every_day(list(by_day)):
        label, models = key_text("day", day, view), by_day.get(day, {})
        values = [models.get(name, 0) for name in names] + [sum(models.get(name, 0) for name in rest)]
        labels.append(label)
        amounts.append(values)
        tooltips.append([f"{label} · {name} · {text(n)}" for name, n in zip([*names, "others"], values, strict=True)])
    title = f"{'Cost' if is_money else 'Tokens'} by day and model; the table below has the numbers"
    shown = [*names, *(["others"] if rest else [])]
    legend = (tag("li", tag("span", class_=f"key key{n}", aria_hidden="true"), tag("bdi", name))
              for n, name in zip([*range(1, len(names) + 1), SERIES + 1], shown, strict=False))  # fmt: skip
    scale = text(max(map(sum, amounts), default=0))
    chart = _scrolling(stacked_bars(labels, amounts, tooltips, title=title, scale=scale), "Chart")
    return tag("figure", chart, tag("figcaption", tag("ul", *legend, class_="legend")))


def _every_day(days: Sequence[str]) -> Iterator[str]:
    """Yield the days with usage, and those between them; rows without a time come last."""
    dates = [found for day in days if (found := as_date(day)) is not None]
    if dates:
        for number in range((max(dates) - min(dates)).days + 1):
            yield (min(dates) + timedelta(days=number)).isoformat()
    yield from (day for day in days if as_date(day) is None)


def _year(report: UsageReport, view: View) -> Html:
    amount = amount_of(report.rows)
    rows = {day: row for row in report.rows if (day := as_date(row.keys["day"])) is not None}
    if not rows:
        return tag("p", "None.", class_="dim")
    today = view.now.astimezone(view.zone).date()
    first, last = min(rows), max(*rows, today)
    used = {day: amount(row) for day, row in rows.items() if row.requests or row.total_tokens}

    def text(day: date) -> str:
        row = rows[day]
        cost = cost_text(row.cost_usd, estimated=bool(row.estimated_nano))
        return f"{key_text('day', day.isoformat(), view)} · {cost} · {counted(row.requests, 'request')}"

    levels = {day: level + 1 for day, level in calendar_levels(used).items()}
    caption = tag("figcaption", f"{counted(len(used), 'day')} with usage; a stronger colour is more")
    drawing = calendar(
        levels, {day: text(day) for day in used}, first, last, title="Usage of each day of the last year"
    )
    return tag("figure", _scrolling(drawing, "Calendar"), caption)


def _limits(found: Overview, view: View) -> Html:
    from sessionlog.render.blocks import limit_rows

    heads, rows = limit_rows(found.blocks, view)
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in heads)))
    body = tag("tbody", *(tag("tr", *(tag("td", tag("bdi", text)) for text in row)) for row in rows))
    return _scrolling(tag("table", head, body), "Rate limits")


def _sessions(found: Overview, view: View, pages: Mapping[tuple[str, str], str]) -> Html:
    columns = {column.name: column for column in found.sessions.columns}
    shown = [columns[name] for name in _SESSION_COLUMNS]
    heads = [tag("th", (column.title or "").lower(), scope="col") for column in shown]
    rows = []
    for session in found.sessions.rows:
        address = pages.get((session.source, session.session))
        command = f"sessionlog replay {session.session}"
        link = tag("a", "page", href=address) if address else tag("code", command)
        rows.append(tag("tr", *(_cell(column, session, view) for column in shown), tag("td", link)))
    table = tag("table", tag("thead", tag("tr", *heads, tag("th", "replay", scope="col"))), tag("tbody", *rows),
                data_sortable=True)  # fmt: skip
    return _scrolling(table, "Costliest sessions")


def _notes(found: Overview) -> Iterable[str]:
    """The notes of all reports, each once."""
    sentences = [line.plain for report in (found.usage, found.days, found.tools) if report is not None
                 for line in closing_notes(report)]  # fmt: skip
    sentences += found.usage.notes
    if found.usage.archived_sessions:
        sentences.append(archived_note(found.usage.archived_sessions))
    if found.usage.problem_count:
        sentences.append(damage_note(found.usage.problem_count, found.usage.problems))
    return dict.fromkeys(sentences)
