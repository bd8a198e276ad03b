"""The face of usage: one table at any width, its exact twins, and marks that are explained where they occur."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import fold_usage
from sessionlog.analytics.usage_row import COLUMNS, UsageReport, UsageRow
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.render.line import wrap_lines
from sessionlog.render.numbers import cost_text, duration, human_count, percent, rate
from sessionlog.render.report import render_csv
from tests.analytics.week import NOW, check_golden, week_report
from tests.ledger.entries import NOON, book_of, record, session
from tests.profiles import examples
from tests.render.shown import markdown, show

NAMES = names_of(COLUMNS)

EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def lines(report, width=160, **options):
    return [line.plain for line in show(report, **({"width": width, "tz": "UTC", "now": NOW} | options))]


def shown(report, width):
    """What a terminal of this width gets to see."""
    return "".join(f"{line.plain}\n" for line in wrap_lines(show(report, width=width, tz="UTC", now=NOW), width))


def of(*sessions, by=("provider", "model"), **fields):
    known = {"window": None, "by": by, "filters": {}, "zone": UTC, "now_ns": NOON}
    return fold_usage(book_of(*sessions), Selection(**(known | fields)))


def table_of(report, **options):
    """The cells of the table: heading, rows, total."""
    text = lines(report, width=1000, **options)
    first = text.index("")
    body = [line for line in text[first + 1 : text.index("", first + 1)] if not line.startswith("─")]
    return [re.split(r"\s{2,}", line.strip()) for line in body]


def test_a_latency_of_zero_is_unknown():
    """No call of a model takes no time: a log that writes 0 ms has not measured it."""
    head, row, *_ = table_of(of(session("s", record(latency_ms=0.0))), wide=True)
    shown = dict(zip(head, row, strict=True))
    assert (shown["P50"], shown["P95"]) == ("–", "–")


def test_tokens_that_the_log_does_not_have_are_unknown():
    """A function that answers reports no usage: neither 0 tokens nor a missing price. A failed request may use none."""
    silent = session("a", record(provider="own", model="f", input=0, output=0))
    report = of(silent, session("b", record(provider="p", model="m", input=7, output=0)))
    head, *rows, _ = table_of(report, wide=True)
    shown = [dict(zip(head, row, strict=True)) for row in rows]
    assert [[row[name] for name in ("MODEL", "INPUT", "OUTPUT", "COST")] for row in shown] == [
        ["m", "7", "0", "–"],
        ["f", "–", "–", "–"],
    ]
    assert (
        lines(report)[-1]
        == "2 sessions have parts without a price (p/m) or without tokens in the log (own/f): `sessionlog models --unpriced` "
        "shows why"
    )
    both = of(session("a", record(), record(input=0, output=0)))
    assert both.unpriced == ()
    [(provider, model)] = both.without_usage
    assert lines(both)[-1] == f"+ 1 session has parts without tokens in the log ({provider}/{model})"
    failed = of(session("c", record(input=0, output=0, failed=True)))
    head, row, *_ = table_of(failed, wide=True)
    assert row[head.index("OUTPUT")] == "0"


# --- whole texts


@pytest.mark.parametrize("width", [80, 160])
def test_the_week_at_a_width(width):
    """The table, its marks explained, what was skipped and what was hidden."""
    text = shown(week_report(), width)
    check_golden(f"week-{width}.txt", text)


def test_the_week_as_csv():
    """Exact numbers, a TOTAL row last."""
    check_golden("week.csv", rounded_csv(render_csv(week_report())))


def rounded_csv(text):
    return re.sub(r"\d+\.\d{9,}", lambda match: f"{float(match[0]):.9g}", text)


def test_the_week_as_markdown():
    """The short columns, for an issue or a chat."""
    check_golden("week.md", markdown(week_report()))


# --- one truth in four forms


def test_csv_is_the_document():
    """Header, rows and totals hold the JSON's values under the JSON's names, to the last digit."""
    report = week_report(by=("day", "model"))
    document = report.to_dict()
    header, *rows = csv.reader(io.StringIO(render_csv(report)))
    assert header == list(document["rows"][0]) == ["day", "model", *NAMES]
    expected = [list(row.values()) for row in document["rows"]] + [["TOTAL", "", *document["totals"].values()]]
    assert [[*row[:2], *(json.loads(cell or "null") for cell in row[2:])] for row in rows] == expected


def test_the_table_is_the_document():
    """Every cell of the wide table is its JSON value in short."""
    report = week_report(sort="-requests")
    heading, *rows = table_of(report, wide=True)
    assert heading == [
        "PROVIDER", "MODEL", "SESSIONS", "OK", "FAILED", "OPEN", "REQUESTS", "INPUT", "CACHED", "WRITTEN", "OUTPUT",
        "REASONING", "SEARCHES", "HIT", "SAVED", "COST", "EXTRA", "PER OK", "TOK/S", "DURATION", "P50", "P95",
        "PER REQUEST",
    ]  # fmt: skip
    document = report.to_dict()
    assert [row[2:] for row in rows[:-1]] == [short(row) for row in document["rows"]]
    assert rows[-1] == ["total", *short(document["totals"])]


def short(values):
    """A row of the document as a person reads it."""
    guess = {"estimated": bool(values["estimated_cost_usd"])}
    more = "+" if values["unknown_cost_sessions"] and values["cost_usd"] is not None else ""
    per_success = cost_text(values["cost_per_success"], **guess)
    counts = {
        name: human_count(values[f"{name}_tokens"])
        for name in ("input", "cache_read", "cache_write", "output", "reasoning")
    }
    counts["reasoning"] = counts["reasoning"] if values["reasoning_tokens"] else "–"
    return [
        human_count(values["sessions"]), percent(values["success_rate"]), human_count(values["failed_sessions"]),
        human_count(values["unfinished_sessions"]), human_count(values["requests"]), *counts.values(),
        human_count(values["searches"]) if values["searches"] else "–", percent(values["cache_hit_rate"]), cost_text(values["cache_savings_usd"]),
        cost_text(values["cost_usd"], **guess) + more, cost_text(values["extra_cost_usd"] or None), per_success,
        rate(values["generation_tokens_per_second"]), duration(values["duration_ms"] or None),
        duration(values["latency_p50_ms"] or None), duration(values["latency_p95_ms"] or None),
        cost_text(values["cost_per_request"], **guess),
    ]  # fmt: skip


def test_markdown_is_the_table():
    """The same cells in fewer columns, totals included."""
    report = week_report()
    heading, rule, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in markdown(report).splitlines()
    ]
    assert heading[:2] == ["provider", "model"]
    assert rule == ["---", "---", *["---:"] * (len(heading) - 2)]
    titles, *table = table_of(report, wide=True)
    for row, cells in zip(rows[:-1], table, strict=False):
        assert row == [*cells[:2], *(cells[titles.index(title)] for title in heading[2:])]
    total = ["total", "", *table[-1][1:]]
    assert rows[-1] == ["**total**", "", *(total[titles.index(title)] for title in heading[2:])]


def test_short_forms_agree_on_an_empty_report():
    """A heading and zeros; money and rates are dashes or nothing."""
    empty = UsageReport(window=None, group_by=("model",))
    assert render_csv(empty).splitlines()[1].startswith("TOTAL,0,0,0,")
    assert markdown(empty).splitlines()[2].startswith("| **total** | 0 | – | 0 |")
    assert lines(empty) == ["Usage · all time · 0 sessions"]


def test_a_report_without_groups_is_its_totals():
    """There is no key to name the total by."""
    report = week_report(by=())
    assert render_csv(report).splitlines()[0] == ",".join(NAMES)
    assert markdown(report).count("\n") == 4
    assert lines(report)[2].split()[0] == "SESSIONS"


# --- marks


@pytest.mark.parametrize(
    ("sessions", "cost", "notes"),
    [
        ([session("a", record(cost_nano=500_000_000))], "$0.50", []),
        ([session("a", record(cost_nano=0, model="gift"))], "$0", []),
        ([session("a", record(input=10**6, output=0))], "~$1.00", ["~"]),
        ([session("a", record(cost_nano=5 * 10**8, provider="p"), record(provider="p"))], "$0.50+", ["+"]),
        ([session("a", record(provider="p"))], "–", ["1"]),
        ([session("a", record(input=10**6, output=0), record(provider="p"))], "~$1.00+", ["~", "+"]),
        ([session("a", record(priced=False))], "–", []),
    ],
)
def test_marks_are_explained_where_they_occur(sessions, cost, notes):
    """`~` for estimated, `+` for more that has no price; no mark, no sentence."""
    report = of(*sessions, by=())
    heading, row, total = table_of(report, wide=True)
    assert row[heading.index("COST")] == total[heading.index("COST")] == cost
    _, _, _, _, rule, _, _, *below = lines(report)
    assert set(rule) == {"─"}
    assert [line[0] for line in below] == notes
    assert "unknown" not in "".join(lines(report))


def test_the_marks_of_hidden_rows_are_not_explained():
    """Where a limit leaves no table there is nothing to explain."""
    report = week_report(limit=0)
    assert not [line for line in lines(report) if line.startswith(("~", "+"))]
    assert "5 more rows (--limit)" in lines(report)


def test_cost_per_success_is_of_what_ended_and_is_known():
    """A session without an end, or with a part without a price, is in neither of the two that are divided."""
    priced = record(cost_nano=4 * 10**8, provider="p")
    sessions = [
        session("good", priced), session("bad", priced, status="error"), session("open", priced, status=None),
        session("part", priced, record(provider="p")),
    ]  # fmt: skip
    heading, row, total = table_of(of(*sessions, by=("provider",)), wide=True)
    shown = dict(zip(heading, row, strict=True))
    assert (shown["COST"], shown["PER OK"]) == ("$1.60+", "$0.80")
    assert total[heading.index("PER OK")] == "$0.80"
    heading, row, _ = table_of(of(session("part", priced, record(provider="p")), by=()), wide=True)
    assert row[heading.index("PER OK")] == "–"


def test_what_has_no_price_is_named():
    """Three pairs, the rest as a number, and where to ask."""
    odd = [session(f"s{n}", record(provider="p", model=f"m{n}")) for n in range(5)]
    [note] = [line for line in lines(of(*odd)) if "without a price" in line]
    assert (
        note
        == "5 sessions have parts without a price (p/m0, p/m1, p/m2 and 2 more): `sessionlog models --unpriced` shows why"
    )


def test_requests_that_are_not_exact_are_told():
    """How many of how many, and what that means."""
    report = of(
        session("s", record(), record(quality="partial"), record(quality="estimated"), record(granularity="session"))
    )
    told = [line for line in lines(report) if "requests:" in line]
    assert told == [
        "1 of 4 requests: their numbers are known to be incomplete",
        "1 of 4 requests: their numbers are estimates",
        "1 of 4 requests: only the session's totals are in the log, counted as one request",
    ]


@pytest.mark.parametrize(
    ("window", "title"),
    [
        (None, "Usage · all time · 9 sessions, 1 running"),
        ("2026-11-19", "Usage · 19 Nov (UTC) · 4 sessions"),
        ("2026-11-20", "Usage · 20 Nov (UTC) · 4 sessions"),
        ("2026-11-18..2026-11-19", "Usage · 18 Nov – 19 Nov (UTC) · 4 sessions"),
        ("2026-11-21T11:00:00Z..2026-11-21T12:00:00Z", "Usage · 21 Nov 11:00 – 12:00 (UTC) · 1 session, 1 running"),
    ],
)
def test_the_title_says_the_window(window, title):
    """Weakness 23: the last day that is inside, and the times where they are not midnight."""
    assert lines(week_report(window=window))[0] == title


def test_nothing_in_a_window_is_said():
    """The title alone, and what was damaged."""
    text = lines(week_report(window="2025-01-01"))
    assert text[0] == "Usage · 1 Jan 2025 (UTC) · 0 sessions"
    assert [line[:15] for line in text[1:]] == ["1 damaged piece"]


# --- widths


ROWS = st.builds(
    UsageRow,
    keys=st.fixed_dictionaries({"provider": st.text(max_size=30), "model": st.text(max_size=70)}),
    sessions=st.integers(0, 2**63),
    success_sessions=st.integers(0, 9),
    failed_sessions=st.integers(0, 9),
    requests=st.integers(0, 10**6),
    input_tokens=st.integers(0, 2**63 - 1),
    output_tokens=st.integers(0, 2**63 - 1),
    cache_read_tokens=st.integers(0, 10**9),
    duration_ms=st.integers(0, 10**15),
    latency_p50_ms=st.none() | st.floats(0, 1e9),
    known_nano=st.none() | st.integers(0, 2**63 - 1),
    estimated_nano=st.none() | st.integers(0, 2**63 - 1),
    unknown_cost_sessions=st.integers(0, 1),
    generation_tokens=st.integers(0, 10**9),
    generation_ms=st.floats(0, 1e9),
)


@examples(100)
@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(40, 200))
def test_no_line_of_the_table_is_longer_than_the_terminal(rows, width):
    """Whatever the names and numbers are; a row keeps its cost at any width."""
    report = UsageReport(window=None, group_by=("provider", "model"), rows=tuple(rows), totals=rows[0])
    table = [line for line in show(report, width=width, tz="UTC", now=NOW) if line.no_wrap]
    assert len(table) == len(rows) + 2
    assert max(cell_len(line.plain) for line in table) <= width
    assert "COST" in table[0].plain
    assert all(re.search(r"[$–]", line.plain) for line in table[1:])


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160, 200])
def test_what_is_hidden_is_said(width):
    """A column is in the table or named below it; `--wide` hides none and says nothing."""
    text = "\n".join(lines(week_report(), width=width))
    hidden = re.search(r"hidden columns: (.*) \(--wide\)", text)
    assert ("P95" in text) != bool(hidden and "latency p95" in hidden[1])
    assert "hidden" not in "\n".join(lines(week_report(), width=width, wide=True))


def test_long_names_keep_the_columns_apart():
    """Weakness 24: a name of sixty letters moves nothing."""
    report = of(session("s", record(model="x" * 90), record(model="y")))
    heading, first, second, _, total = lines(report, width=80)[2:7]
    assert cell_len(first) <= 80
    assert "…" in first
    end = heading.index("OUTPUT") + len("OUTPUT")
    assert [line[end - 2 : end] for line in (first, second, total)] == [" 5", " 5", "10"]


def test_folders_of_the_reader_are_short():
    """`~` in tables only: exact forms keep the path."""
    report = of(session("s", record(), project="/home/ada/shop"), by=("project",))
    assert lines(report, home="/home/ada")[3].startswith("~/shop")
    assert "/home/ada/shop" in render_csv(report)
    assert "/home/ada/shop" in markdown(report)


# --- hostile names


@pytest.mark.parametrize("width", [40, 80, 160])
def test_names_from_a_log_cannot_act(width):
    """Escapes, line ends and direction marks are shown, not obeyed, also in a key's own name."""
    report = of(
        session(EVIL, record(provider=EVIL, model=EVIL), metadata={EVIL: EVIL}), by=("model", "session", f"meta.{EVIL}")
    )
    assert not CONTROLS.search(shown(report, width))


def test_csv_and_markdown_cells_are_harmless():
    """No formula, no link, no cell that ends a row."""
    report = of(
        session("s", record(model="=1+1", provider=EVIL), metadata={EVIL: "x"}),
        by=("model", "provider", f"meta.{EVIL}"),
    )
    rows = list(csv.reader(io.StringIO(render_csv(report))))
    assert [row[0] for row in rows] == ["model", "'=1+1", "TOTAL"]
    assert len({len(row) for row in rows}) == 1
    text = markdown(report)
    assert not CONTROLS.search(text)
    assert "[x](y)" not in text
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}) == 1


def test_a_window_of_another_year_has_its_year():
    """Now is a parameter."""
    report = UsageReport(window=parse_usage_window("2026-11-19"), group_by=())
    then = datetime(2031, 1, 1, tzinfo=UTC)
    assert lines(report, now=then)[0] == "Usage · 19 Nov 2026 (UTC) · 0 sessions"
