"""The face of tools: one table at any width, its exact twins, and nothing that a tool's name could do."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.tool_row import COLUMNS, ToolReport, ToolRow
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.render.line import wrap_lines
from sessionlog.render.numbers import UNKNOWN, duration, human_count, percent, size
from sessionlog.render.report import render_csv
from tests.analytics.week import check_golden
from tests.analytics.workday import PRESENT, call, day_of_calls, fold_calls, open_call
from tests.ledger.entries import session
from tests.profiles import examples
from tests.render.shown import markdown, show

NAMES = names_of(COLUMNS)

EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def day(**options):
    return fold_calls(*day_of_calls(), **options)


def lines(report, width=160, **options):
    return [line.plain for line in show(report, width=width, tz="UTC", now=PRESENT, **options)]


def shown(report, width):
    """What a terminal of this width gets to see."""
    return "".join(f"{line.plain}\n" for line in wrap_lines(show(report, width=width, tz="UTC", now=PRESENT), width))


def table_of(report, **options):
    """The cells of the table: heading, rows, total."""
    text = lines(report, width=1000, **options)
    text = [re.sub("[█▉-▏]+ +", "", line) for line in text]
    body = [line for line in text[2 : text.index("", 2)] if not line.startswith("─")]
    return [re.split(r"\s{2,}", line.strip()) for line in body]


# --- whole texts


@pytest.mark.parametrize("width", [80, 160])
def test_the_day_at_a_width(width):
    """The table, what its words mean, and what was hidden."""
    check_golden(f"tools-{width}.txt", shown(day(), width))


def test_the_day_as_csv():
    """Exact numbers, a TOTAL row last."""
    text = re.sub(r"\d+\.\d{9,}", lambda match: f"{float(match[0]):.9g}", render_csv(day()))
    check_golden("tools.csv", text)


def test_the_day_as_markdown():
    """Every column, for an issue or a chat."""
    check_golden("tools.md", markdown(day()))


# --- one truth in four forms


def test_csv_is_the_document():
    """Header, rows and totals hold the JSON's values under the JSON's names, to the last digit."""
    document = day().to_dict()
    header, *rows = csv.reader(io.StringIO(render_csv(day())))
    assert header == list(document["rows"][0]) == ["server", "tool", *NAMES]
    expected = [list(row.values()) for row in document["rows"]] + [["TOTAL", "", *document["totals"].values()]]
    assert [[*row[:2], *(json.loads(cell or "null") for cell in row[2:])] for row in rows] == expected


def test_the_table_is_the_document():
    """Every cell of the wide table is its JSON value in short."""
    heading, *rows = table_of(day(), wide=True)
    assert heading == [
        "SERVER", "TOOL", "CALLS", "OPEN", "ERRORS", "RATE", "P50", "P95", "TIME", "OUTPUT", "MEAN", "SHARE",
    ]  # fmt: skip
    document = day().to_dict()
    assert [row[2:] for row in rows[:-1]] == [short(row) for row in document["rows"]]
    assert rows[-1] == ["total", *short(document["totals"])]


def short(values):
    """A row of the document as a person reads it."""
    mean = values["output_bytes_mean"]
    return [
        *(human_count(values[name]) for name in ("calls", "open_calls", "errors")), percent(values["error_rate"]),
        *(duration(values[f"duration_{name}ms"]) for name in ("p50_", "p95_", "")), size(values["output_bytes"]),
        UNKNOWN if mean is None else size(round(mean)), percent(values["context_share"]),
    ]  # fmt: skip


def test_markdown_is_the_table():
    """The same cells, totals included."""
    heading, rule, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in markdown(day()).splitlines()
    ]
    titles, *table = table_of(day(), wide=True)
    assert heading == ["server", "tool", *titles[2:]]
    assert rule == ["---", "---", *["---:"] * 10]
    assert rows[:-1] == [[cell.replace("<", "&lt;").replace("_", r"\_") for cell in row] for row in table[:-1]]
    assert rows[-1] == ["**total**", "", *table[-1][1:]]


def test_short_forms_agree_on_an_empty_report():
    """A heading and zeros; rates are dashes or nothing."""
    empty = ToolReport(window=None, group_by=("tool",))
    assert render_csv(empty).splitlines()[1] == "TOTAL,0,0,0,,,,,0,,"
    assert markdown(empty).splitlines()[2].startswith("| **total** | 0 | 0 | 0 | – |")
    assert lines(empty) == ["Tools · all time · 0 calls"]


def test_a_report_without_groups_is_its_totals():
    """There is no key to name the total by."""
    report = day(by=())
    assert render_csv(report).splitlines()[0] == ",".join(NAMES)
    assert markdown(report).count("\n") == 4
    assert lines(report)[2].split()[0] == "CALLS"


# --- what is said beside the numbers


def test_the_title_counts_calls():
    """Open ones and errors only where there are some."""
    window = parse_usage_window("2026-11-20")
    report = ToolReport(window=window, group_by=(), totals=ToolRow(keys={}, calls=1))
    assert lines(report) == ["Tools · 20 Nov (UTC) · 1 call"]
    assert lines(day())[0] == "Tools · all time · 26 calls, 2 open · 4 errors"


def test_words_are_explained_where_they_occur():
    """No open call, no sentence about them; no output, none about shares."""
    quiet = fold_calls(session("s", tools=(call(1, output_bytes=0),)))
    assert lines(quiet)[-1] == ""
    waiting = fold_calls(session("s", tools=(open_call(1),)))
    assert lines(waiting)[-1] == "1 open call has no result in the log: not in rates, times and means"
    assert "SHARE: of all bytes" in "\n".join(lines(day()))


def test_frequent_errors_are_red():
    """More than every fifth; what is open is yellow."""
    often = [call(n, "often", failed=n < 2) for n in range(9)]
    seldom = [call(f"s{n}", "seldom", failed=n < 1) for n in range(9)]
    report = fold_calls(session("s", tools=(*often, *seldom, open_call("o", "open"))), by=("tool",))
    styles = {
        line.plain.split()[0]: {style for _, style in line.parts if style}
        for line in show(report, width=160, tz="UTC", now=PRESENT)
        if line.plain.startswith(("often", "seldom", "open"))
    }
    assert styles == {"often": {"failed"}, "seldom": set(), "open": {"unfinished"}}


def test_what_is_hidden_is_said():
    """A column is in the table or named below it; `--wide` hides none; rows that a limit left out are counted."""
    narrow = "\n".join(lines(day(), width=60))
    assert "hidden columns: " in narrow
    assert "SHARE" in narrow
    assert "hidden" not in "\n".join(lines(day(), width=60, wide=True))
    cut = ToolReport(window=None, group_by=(), rows=(ToolRow(keys={}),), hidden_rows=2)
    assert lines(cut)[-1] == "2 more rows (--limit)"


def test_folders_of_the_reader_are_short():
    """`~` in tables only: exact forms keep the path."""
    report = day(by=("project",))
    assert lines(report, home="/home/ada")[3].startswith("~/shop")
    assert "/home/ada/shop" in render_csv(report)
    assert "/home/ada/shop" in markdown(report)


# --- widths and hostile names


ROWS = st.builds(
    ToolRow,
    keys=st.fixed_dictionaries({"server": st.text(max_size=30), "tool": st.text(max_size=70)}),
    calls=st.integers(0, 2**63 - 1),
    open_calls=st.integers(0, 9),
    errors=st.integers(0, 10**9),
    duration_p50_ms=st.none() | st.floats(0, 1e9),
    duration_us=st.none() | st.integers(0, 2**63 - 1),
    output_bytes=st.integers(0, 2**63 - 1),
    selected_bytes=st.integers(1, 2**63 - 1),
)


@examples(80)
@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(40, 200))
def test_no_line_of_the_table_is_longer_than_the_terminal(rows, width):
    """Whatever the names and numbers are."""
    report = ToolReport(window=None, group_by=("server", "tool"), rows=tuple(rows), totals=rows[0])
    table = [line for line in show(report, width=width, tz="UTC", now=PRESENT) if line.no_wrap]
    assert len(table) == len(rows) + 2
    assert max(cell_len(line.plain) for line in table) <= width
    assert "SHARE" in table[0].plain


@pytest.mark.parametrize("width", [40, 80, 160])
def test_names_from_a_log_cannot_act(width):
    """Escapes, line ends and direction marks are shown, not obeyed."""
    report = fold_calls(session(EVIL, tools=(call(1, EVIL, server=EVIL),)), by=("tool", "server", "session"))
    assert not CONTROLS.search(shown(report, width))


def test_csv_and_markdown_cells_are_harmless():
    """No formula, no link, no cell that ends a row."""
    report = fold_calls(session("s", tools=(call(1, "=1+1", server=EVIL),)), by=("tool", "server"))
    rows = list(csv.reader(io.StringIO(render_csv(report))))
    assert [row[0] for row in rows] == ["tool", "'=1+1", "TOTAL"]
    text = markdown(report)
    assert not CONTROLS.search(text)
    assert "[x](y)" not in text
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}) == 1
