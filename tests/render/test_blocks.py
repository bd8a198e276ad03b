"""The face of blocks: the present first, then limits, then one line a block; nothing that is not known is claimed."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.analytics.block import COLUMNS, Block, BlockReport
from sessionlog.analytics.columns import names_of
from sessionlog.analytics.limits import RateLimit
from sessionlog.render.line import wrap_lines
from sessionlog.render.numbers import human_count
from sessionlog.render.report import render_csv
from sessionlog.sources.record import Limit
from tests.analytics.week import check_golden
from tests.analytics.workday import HOUR, MINUTE, PRESENT, PRESENT_NS, day_of_blocks, day_of_limits, fold_hours
from tests.ledger.entries import NOON, record, session
from tests.profiles import examples
from tests.render.shown import markdown, show

NAMES = names_of(COLUMNS)

EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def day(**options):
    return fold_hours(*day_of_blocks(), limits=day_of_limits(), **options)


def render(report, width=160, **options):
    return show(report, **({"width": width, "tz": "UTC", "now": PRESENT} | options))


def lines(report, **options):
    return [line.plain for line in render(report, **options)]


def shown(report, width, **options):
    """What a terminal of this width gets to see."""
    return "".join(f"{line.plain}\n" for line in wrap_lines(render(report, width, **options), width))


def line_of(report, beginning, **options):
    """The one line that begins so, its words separated by one blank."""
    [found] = [line for line in lines(report, **options) if line.startswith(beginning)]
    return re.sub(r"\s+", " ", found)


# --- whole texts


@pytest.mark.parametrize("width", [80, 160])
def test_the_day_at_a_width(width):
    """The present, the limits, the blocks, and marks explained."""
    check_golden(f"blocks-{width}.txt", shown(day(), width, gaps=True))


def test_the_day_as_csv():
    """Exact numbers."""
    check_golden("blocks.csv", render_csv(day()))


def test_the_day_as_markdown():
    """For an issue or a chat."""
    check_golden("blocks.md", markdown(day(), tz="UTC", now=PRESENT))


# --- one truth in four forms


def test_csv_is_the_document():
    """Header and rows hold the JSON's values under the JSON's names, models joined."""
    header, *rows = csv.reader(io.StringIO(render_csv(day())))
    documents = day().to_dict()["rows"]
    assert header == list(documents[0]) == list(NAMES)
    for row, told in zip(rows, documents, strict=True):
        cells = {name: cell if name in ("start", "end", "first", "last", "models") else json.loads(cell or "null")
                 for name, cell in zip(header, row, strict=True)}  # fmt: skip
        assert cells == told | {"models": " ".join(told["models"])}


def test_table_and_markdown_tell_the_same():
    """The cells of the wide table stand in Markdown."""
    rows = [re.split(r"\s{2,}", line) for line in lines(day(), wide=True) if re.match(r"\d+ Nov .* – ", line)]
    table = markdown(day(), tz="UTC", now=PRESENT).splitlines()
    heading, _, *cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    titles = re.split(r"\s{2,}", next(line for line in lines(day(), wide=True) if line.startswith("BLOCK")))
    for row, others in zip(rows, cells, strict=True):
        assert row[0].startswith(others[0])
        known = dict(zip(titles[-11:], row[-11:], strict=True))
        told = dict(zip(heading, others, strict=True))
        assert {title: known[title] for title in told if title in known} == {t: told[t] for t in told if t in known}
        assert set(known) - set(told) <= {"FAILED", "REASONING"}  # what a narrower table would hide first


def test_short_forms_of_nothing():
    """Headings only, and a title."""
    empty = BlockReport(window=None, hours=5)
    assert render_csv(empty) == ",".join(NAMES) + "\n"
    assert markdown(empty, tz="UTC", now=PRESENT).count("\n") == 2
    assert [line for line in lines(empty) if line] == ["Blocks of 5 h · all time · 0 blocks, none active"]


# --- the title and the present


@pytest.mark.parametrize(
    ("sources", "who"),
    [
        ([], ""),
        (["claude-code"], " · claude-code"),
        (["a", "b", "c"], " · a, b, c"),
        (["a", "b", "c", "d"], " · 4 agents"),
    ],
)
def test_the_title_says_whose_blocks_these_are(sources, who):
    """Three at most by name."""
    report = BlockReport(window=None, hours=8, sources=tuple(sources), found_blocks=1)
    assert lines(report)[0] == f"Blocks of 8 h{who} · all time · 1 block, none active"


def test_the_present_is_told_in_four_lines():
    """Until when, what was used, how fast, and where that leads."""
    one = session("s", record(time_ns=NOON + MINUTE, input=300_000, output=0, cache_read=600_000, cost_nano=5 * 10**8))
    text = lines(fold_hours(one, now_ns=NOON + 2 * HOUR))[2:6]
    assert text == [
        "now       12:00 – 17:00 · 3h 00m left",
        "used      900.0k tokens · $0.50 · 1 request · 1 session",
        "pace      7.5k tokens a minute, 2.5k without cache · $0.25 an hour",
        "by 17:00  2.3M tokens · $1.25 if it goes on like this",
    ]


def test_what_is_estimated_or_partial_stays_so():
    """A mark on the sum is on its pace, too; without a price there is no money at all."""
    guess = session("s", record(time_ns=NOON + MINUTE, input=10**6, output=0), record(provider="stranger"))
    text = "\n".join(lines(fold_hours(guess, now_ns=NOON + HOUR)))
    assert all(part in text for part in ("tokens · ~$1.00+ · 2 requests", "~$1.00+ an hour", "~$5.00+ if it goes on"))
    unknown = "\n".join(lines(fold_hours(session("s", record(provider="stranger")), now_ns=NOON + HOUR))[2:6])
    assert "$" not in unknown
    assert "15 tokens · 1 request" in unknown


def test_no_pace_is_said_to_be_unknown():
    """Until the first request is a minute old."""
    report = fold_hours(session("s", record()), now_ns=NOON + 1)
    assert line_of(report, "pace") == "pace unknown before the first request is a minute old"
    assert not [line for line in lines(report) if line.startswith("by ")]


def test_clocks_are_those_of_the_zone():
    """Blocks begin at full hours of UTC, which may be half past in India."""
    report = fold_hours(session("s", record()), now_ns=NOON + HOUR)
    assert line_of(report, "now", tz="Asia/Kolkata") == "now 17:30 – 22:30 · 4h 00m left"
    assert line_of(report, "20 Nov", tz="Asia/Kolkata").startswith("20 Nov 17:30 – 22:30 ●")


# --- limits


def limits(**fields):
    known = {"time_ns": PRESENT_NS - 10 * MINUTE, "name": "primary", "logged_percent": 50.0}
    word = RateLimit(source="codex", **(known | fields), now_ns=PRESENT_NS)
    return BlockReport(window=None, hours=5, limits=(word,))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "codex primary █████░░░░░ 50 % – – 10m 00s"),
        (
            {"logged_percent": 25.0, "window_minutes": 300, "resets_ns": NOON + 4 * HOUR, "plan": "plus"},
            "codex primary ██▌░░░░░░░ 25 % 5h 00m 20 Nov 16:00 10m 00s plus",
        ),
        ({"resets_ns": NOON}, "codex primary – – window over since 20 Nov 12:00 10m 00s"),
        ({"logged_percent": 130.0}, "codex primary ██████████ 130 % – – 10m 00s"),
        ({"logged_percent": 0.0}, "codex primary ░░░░░░░░░░ 0 % – – 10m 00s"),
        ({"resets_ns": 10**30}, "codex primary █████░░░░░ 50 % – 31 Dec 9999 23:59 10m 00s"),
    ],
)
def test_a_limit_is_what_was_said_of_it(fields, line):
    """A bar, how much, of how long, until when, and how old that word is; a dash for what nobody said."""
    assert line_of(limits(**fields), "codex", wide=True) == line


@pytest.mark.parametrize(("used", "style"), [(79.0, set()), (80.0, {"unfinished"}), (100.0, {"failed"})])
def test_colours_warn_of_a_limit(used, style):
    """Yellow when it is nearly used up, red when it is."""
    [line] = [line for line in render(limits(logged_percent=used)) if line.plain.startswith("codex")]
    assert {part for _, part in line.parts} - {"", "secondary"} == style


def test_a_limit_whose_window_is_over_is_dim():
    """In every cell: it is history."""
    [line] = [line for line in render(limits(resets_ns=NOON, plan="plus")) if line.plain.startswith("codex")]
    assert {style for _, style in line.parts} == {"", "secondary"}
    assert all(text.isspace() for text, style in line.parts if not style)


# --- the table


def test_pauses_are_named_on_demand():
    """Between blocks, where they are longer than a block."""
    one = session("s", *[record(time_ns=NOON + hour * HOUR) for hour in (0, 5, 10.5, 16)])
    report = fold_hours(one)
    assert "without a request" not in "\n".join(lines(report))
    text = [line.strip() for line in lines(report, gaps=True) if line.startswith(("20 Nov", "21 Nov", "  "))]
    assert [line[:12] if " – " in line else line for line in text] == [
        "21 Nov 04:00", "5h 30m without a request", "20 Nov 22:00", "5h 30m without a request", "20 Nov 17:00", "20 Nov 12:00",
    ]  # fmt: skip


def test_long_blocks_end_on_a_day():
    """The clock alone could mean any of several days."""
    one = session("s", record())
    spans = [line_of(fold_hours(one, hours=hours), "20 Nov")[:27] for hours in (23, 24, 48)]
    assert spans == ["20 Nov 12:00 – 11:00 ● 12:0", "20 Nov 12:00 – 21 Nov 12:00", "20 Nov 12:00 – 22 Nov 12:00"]


def test_marks_are_explained_where_they_occur():
    """No mark, no sentence."""
    known = fold_hours(session("s", record(cost_nano=10**9)))
    assert [line for line in lines(known) if line.startswith(("~", "+"))] == []
    text = lines(fold_hours(session("s", record(), record(provider="stranger"))))
    assert [line[0] for line in text if line.startswith(("~", "+"))] == ["~", "+"]


def test_what_is_left_out_is_said():
    """Requests without a time, blocks beyond a limit, columns beyond the edge."""
    report = fold_hours(session("s", record(time_ns=None)))
    assert "1 request has no time and so no block" in lines(report)
    assert "2 more blocks (--limit)" in lines(BlockReport(window=None, hours=5, hidden_rows=2))
    assert "hidden columns: " in "\n".join(lines(day(), width=80))
    assert "hidden" not in "\n".join(lines(day(), width=80, wide=True))


def test_another_year_is_named():
    """Now is a parameter."""
    text = lines(fold_hours(session("s", record())), now=datetime(2031, 1, 1, tzinfo=UTC))
    assert any(line.startswith("20 Nov 2026 12:00 – 17:00") for line in text)


COUNTS = st.integers(0, 2**63 - 1)
BLOCKS = st.builds(
    lambda hour, **fields: Block(
        start_ns=NOON + hour * HOUR, end_ns=NOON + (hour + 5) * HOUR, first_ns=NOON, last_ns=NOON, reasoning_tokens=0,
        cache_write_tokens=0, failed_requests=0, **fields,
    ),
    st.integers(-9000, 0),
    is_active=st.booleans(),
    sessions=COUNTS,
    requests=COUNTS,
    models=st.lists(st.text(max_size=60), min_size=1, max_size=3).map(tuple),
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    known_nano=st.none() | st.integers(0, 10**13),
    estimated_nano=st.none() | st.integers(0, 10**13),
    cost_is_partial=st.booleans(),
)  # fmt: skip


@examples(80)
@given(st.lists(BLOCKS, min_size=1, max_size=4), st.integers(60, 200))
def test_no_line_of_the_table_is_longer_than_the_terminal(blocks, width):
    """A block keeps its tokens and its cost at any width."""
    report = BlockReport(window=None, hours=5, rows=tuple(blocks))
    table = [line for line in render(report, width) if line.no_wrap]
    assert len(table) == len(blocks) + 1
    assert max(cell_len(line.plain) for line in table) <= width
    assert all(human_count(block.total_tokens) in line.plain for block, line in zip(blocks, table[1:], strict=True))


# --- hostile names


@pytest.mark.parametrize("width", [40, 80, 160])
def test_names_from_a_log_cannot_act(width):
    """Escapes, line ends and direction marks are shown, not obeyed."""
    limit = Limit(time_ns=NOON, name=EVIL, used_percent=1, plan=EVIL)
    report = fold_hours(session(EVIL, record(model=EVIL), source=EVIL), limits=[(EVIL, limit)])
    assert not CONTROLS.search(shown(report, width))


def test_csv_and_markdown_cells_are_harmless():
    """No formula, no link, no cell that ends a row."""
    report = fold_hours(session("s", record(model="=1+1"), record(model=EVIL, output=1)))
    [_, row] = csv.reader(io.StringIO(render_csv(report)))
    assert row[NAMES.index("models")].startswith("'=1+1")
    text = markdown(report, tz="UTC", now=PRESENT)
    assert not CONTROLS.search(text)
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines()}) == 1
