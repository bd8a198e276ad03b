"""The face of the X-ray: golden at two widths, readable without colour, and never harmed by what a log says."""

import csv
import io
import os
import re
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.context.xray.items import Item, Repeat
from sessionlog.context.xray.parts import Part
from sessionlog.context.xray.report import ContextReport, Growth
from sessionlog.errors import Problem
from sessionlog.render.console import THEME
from sessionlog.render.context import CSV_COLUMNS, model_name, render_context, render_context_csv
from sessionlog.render.line import wrap_lines
from tests.analytics.week import NOW
from tests.ledger.entries import NOON
from tests.profiles import examples

DATA = Path(__file__).parents[2] / "testdata" / "context"
EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def part(kind, name, tokens, count=1):
    return Part(kind=kind, name=name, tokens=tokens, count=count, share=tokens / 148_200)


REPORT = ContextReport(
    source="native", session="s-9f2c1", path="/home/ada/s-9f2c1.jsonl", request=31, requests=34, time_ns=NOON,
    model="claude-opus-4-5", provider="anthropic", window_tokens=200_000,
    parts=(
        part("system", "system prompt", 12_100), part("tools", "mcp__github__search", 7_200),
        part("tools", "mcp__github__read", 4_100), part("tools", "bash", 1_400), part("tools", "read", 900),
        part("history", "assistant", 20_300, 28), part("history", "tool calls", 14_000, 31),
        part("history", "user", 7_100, 5), part("tool_results", "bash", 47_800, 18),
        part("tool_results", "read", 14_000, 5), part("turn", "user", 1_900), part("not_in_log", "not in the log (what the provider adds)", 17_400, 0),
    ),
    total_tokens=148_200, reported_tokens=148_200, estimated_tokens=130_800, cached_tokens=142_272, is_whole=True,
    growth=tuple(Growth(request=n + 1, tokens=size, reported=True) for n, size in enumerate(
        [*range(20_000, 180_000, 8_000), 60_000, 64_000, *range(70_000, 150_000, 6_700)])),
    compactions=(21,),
    items=(
        Item(kind="tool_results", name="tool results of bash #18: pytest -q tests/test_importer.py", tokens=19_200),
        Item(kind="not_in_log", name="not in the log (what the provider adds)", tokens=17_400),
        Item(kind="tool_results", name="read src/app.py ×5 (the same file five times)", tokens=14_000, count=5),
        Item(kind="system", name="system prompt", tokens=12_100),
        Item(kind="tools", name="mcp github tool definitions", tokens=11_300, count=2),
        *(Item(kind="history", name=f"assistant message #{n}", tokens=7_420) for n in range(1, 11)),
    ),
    repeats=(Repeat(kind="file", name="read src/app.py", count=5, tokens=14_000, spare_tokens=11_200),),
)  # fmt: skip


def shown(report, width, **options):
    """What a terminal of this width gets to see."""
    found = render_context(report, width=width, zone=UTC, now=NOW, **options)
    return "".join(f"{line.plain}\n" for line in wrap_lines(found, width))


def check_golden(name, text):
    """Compare a text with the file it is meant to be."""
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        DATA.mkdir(exist_ok=True)
        (DATA / name).write_text(text, "utf-8")
    assert text == (DATA / name).read_text("utf-8")


@pytest.mark.parametrize("width", [80, 160])
def test_a_window_at_a_width(width):
    """Headline, bar with its legend, growth, what is largest, what repeats."""
    check_golden(f"window-{width}.txt", shown(REPORT, width))


@pytest.mark.parametrize("width", [80, 160])
def test_all_of_a_window_at_a_width(width):
    """Every part and every item has a line of its own."""
    check_golden(f"window-full-{width}.txt", shown(REPORT, width, full=True))


def test_an_estimate_is_marked():
    """Where nobody counted, the total is an estimate like the rest, and the last line says why."""
    text = shown(replace(REPORT, reported_tokens=None, cached_tokens=None), 120)
    assert text.startswith("Context at request 31 of 34 · ~148.2k of 200k tokens (74 %)\n")
    assert "~51.8k" in text
    assert "~ estimated: the log has no token count by the provider for this request" in text


def test_a_window_that_is_not_known_is_not_drawn():
    """The bar is what was sent; nothing is free."""
    text = shown(replace(REPORT, window_tokens=None), 120)
    assert text.startswith("Context at request 31 of 34 · 148.2k tokens, window unknown · 96 % cached\n")
    assert "free" not in text
    assert "·" not in text.splitlines()[2]


def test_more_than_the_window_is_said():
    """A window may be larger than is known."""
    text = shown(replace(REPORT, window_tokens=100_000), 120)
    assert "148.2k of 100k tokens (148 %)" in text
    assert re.search(r"· free +0", text)


def test_a_nearly_empty_window_is_drawn_to_scale():
    """Each kind has one of a hundred cells at least, and the rest is free."""
    bar = shown(replace(REPORT, window_tokens=2_000_000), 120).splitlines()[2]
    assert (len(bar), bar.count("·"), len(set(bar))) == (100, 91, 7)


def test_the_legend_has_the_signs_and_colours_of_the_bar():
    """In their order; each kind has a colour of its own, and none of those that judge."""
    lines = list(render_context(REPORT, width=120, zone=UTC, now=NOW))
    bar = [(text[0], style) for text, style in lines[2].parts]
    legend = [(line.parts[0][0][0], line.parts[0][1]) for line in lines[4 : 4 + len(bar)]]
    assert legend == bar
    colours = [THEME.styles[style] for _, style in bar if style not in ("in.free", "in.not_in_log")]
    assert len(set(colours)) == len(colours) == 5
    assert not {"red", "green", "yellow"} & {style.color.name for style in colours}


def test_an_estimate_far_above_the_count_is_told():
    """The parts were scaled down."""
    text = shown(replace(REPORT, estimated_tokens=300_000), 120)
    assert "~ estimated: the parts were 300.0k, scaled to the provider's count" in text


def test_a_single_request_has_no_growth():
    """And no cache, no time, no model says nothing of them."""
    text = shown(replace(REPORT, growth=REPORT.growth[:1], cached_tokens=0, time_ns=None, model=""), 120)
    assert "growth" not in text
    assert "cache" not in text
    assert text.splitlines()[1] == "s-9f2c1"


def test_many_compactions_are_counted():
    """The first of them are named."""
    assert "(compacted at 1, 2, 3, 4, 5 and 4 more)" in shown(replace(REPORT, compactions=tuple(range(1, 10))), 120)


def test_growth_that_is_partly_estimated_is_marked():
    """At its ends."""
    points = (Growth(request=1, tokens=900, reported=False), Growth(request=2, tokens=2_000, reported=True))
    assert "~900 → 2.0k" in shown(replace(REPORT, growth=points), 120)


def test_damage_is_said():
    """In one line, with its place."""
    problem = Problem(path="/x/s.jsonl", line=7, offset=0, kind="not_json", detail="")
    assert "1 damaged piece skipped (s.jsonl:7)" in shown(replace(REPORT, problem_count=1, problems=(problem,)), 120)


def test_an_empty_window_is_shown():
    """A request of nothing."""
    empty = replace(REPORT, parts=(), items=(), repeats=(), total_tokens=0, reported_tokens=None, cached_tokens=None)
    assert "~0 of 200k tokens (0 %)" in shown(empty, 80)


@pytest.mark.parametrize("full", [False, True])
def test_hostile_names_are_harmless(full):
    """Whatever a log calls its tools, models and sessions; in CSV, too."""
    evil = replace(
        REPORT, model=EVIL, session=EVIL, parts=(part("tools", EVIL, 100_000), part("turn", EVIL, 48_200)),
        items=(Item(kind="tools", name=EVIL, tokens=1),),
        repeats=(Repeat(kind="file", name=EVIL, count=2, tokens=2, spare_tokens=1),),
    )  # fmt: skip
    assert not CONTROLS.search(shown(evil, 120, full=full))
    assert not re.search(r"[\x1b\u202e]", render_context_csv(evil))
    equals = replace(REPORT, parts=(part("tools", "=cmd()", 1),))
    assert "'=cmd()" in render_context_csv(equals)


def test_csv_has_one_row_per_part():
    """With exact numbers; they sum to the total."""
    header, *rows = csv.reader(io.StringIO(render_context_csv(REPORT)))
    assert tuple(header) == CSV_COLUMNS
    assert len(rows) == len(REPORT.parts)
    assert sum(int(row[2]) for row in rows) == REPORT.total_tokens


@examples(60)
@given(st.lists(st.integers(0, 10**7), min_size=6, max_size=6), st.integers(50, 200), st.none() | st.integers(1, 10**7))
def test_no_line_is_wider_than_the_terminal(sizes, width, window):
    """And every part that there is has a cell of the bar, as long as there are enough."""
    kinds = ("system", "tools", "history", "tool_results", "turn", "not_in_log")
    parts = tuple(part(kind, "name", size) for kind, size in zip(kinds, sizes, strict=True))
    report = replace(REPORT, parts=parts, total_tokens=sum(sizes), window_tokens=window)
    lines = shown(report, width).splitlines()
    assert max(map(cell_len, lines)) <= width
    bar = (
        lines[next(n for n, line in enumerate(lines) if line and not set(line) - set("█▒░▓▚╱·"))] if sum(sizes) else ""
    )
    assert all(sign in bar for sign, size in zip("█▒░▓▚╱", sizes, strict=True) if size)


def test_the_default_screen_fits_a_small_terminal():
    """22 lines at 80 columns, each of one row, however much there is; the headline is whole."""
    text = shown(replace(REPORT, session_requests=40), 80)
    assert len(text.splitlines()) <= 23  # one more where other logs are spoken of
    assert len(shown(REPORT, 80).splitlines()) == 22
    assert text.splitlines()[0].endswith("96 % cached")


@pytest.mark.parametrize(
    ("requests", "says"),
    [
        (34, None), (None, None), (37, "3 more requests by sub-agents or in other logs of this session"),
        (35, "1 more request by sub-agents"), (32, "2 requests of this log copied from another session"),
    ],
)  # fmt: skip
def test_another_number_of_requests_is_explained(requests, says):
    """A session has other logs, and a log repeats what another session counts."""
    plain, text = shown(REPORT, 100), shown(replace(REPORT, session_requests=requests), 100)
    assert (says is None and text == plain) or (says is not None and says in text)


def test_a_request_that_waits_is_not_counted():
    """It is said of the one that is looked at, and the others' number is right."""
    waiting = replace(REPORT, is_waiting=True, session_requests=33)
    assert "sub-agents" not in shown(waiting, 100)
    assert "copied" not in shown(waiting, 100)
    assert "this request has no answer yet" in shown(replace(waiting, request=34), 100)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"), ("anthropic/claude-opus-4-5", "claude-opus-4-5"),
        ("gpt-5.3-codex", "gpt-5.3-codex"), ("gpt-4o-2024-08-06", "gpt-4o"), ("", ""),
    ],
)  # fmt: skip
def test_a_model_has_its_short_name(model, name):
    """Without its place and its date."""
    assert model_name(model) == name
