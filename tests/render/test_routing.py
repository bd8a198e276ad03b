"""The face of routing quality: figures with a sentence each, human words, and nothing a log can do to a terminal."""

import csv
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.routing import RoutingQualityScan, RoutingReport, scan_routing_quality
from sessionlog.analytics.routing_session import RoutingTally, SessionRouting
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.render.console import make_console
from sessionlog.render.report import render_csv
from sessionlog.render.routing import LISTED, bucket_words, render_routing_quality
from tests.profiles import examples

DATA = Path(__file__).parents[2] / "testdata" / "routing"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
LAW = examples(100)


def shown(scan, width=80):
    out = io.StringIO()
    make_console(out, width=width).print(render_routing_quality(scan, width=width, now=NOW))
    return out.getvalue()


def scanned(*folders, **options):
    return scan_routing_quality([str(DATA / name) for name in folders], now=NOW, **options)


def tallied(**counts):
    return RoutingQualityScan(routing=SessionRouting(tally=RoutingTally(**{"requests": 1, "routed": 1, **counts})))


def lines(text):
    return [line.rstrip() for line in text.splitlines()]


def test_each_figure_has_its_sentence():
    """At 80 columns a figure, its bar and what it means, for a person who did not write the router."""
    assert lines(shown(scanned("basic", window="2026-11-20"))) == [
        "Routing quality · 20 Nov (UTC) · 5 sessions",
        "",
        "  auto accepted       ████████░░░░░░░░░░░░    40 %",
        "                      2 of 5 sessions ran as the router chose",
        "  override disagreed  █████████████▍░░░░░░    67 %",
        "                      2 of 3 overrides chose what the router would not have",
        "",
        "  WHERE PEOPLE DISAGREE   AXIS   COUNT     OK  STALLED  FAILED",
        "  tiny prompts, no tools  model      2   50 %        0       1",
        "",
        "  WHERE PEOPLE AGREE",
        "  tiny prompts, no tools  model      1  100 %        0       0",
        "",
        "  OK: successes among the known outcomes · stalled: stopped by a limit or budget",
        "  prompts by tokens: tiny < 1k, small < 4k, medium < 16k, large < 64k",
    ]


def test_a_wide_terminal_has_the_sentences_beside_the_figures():
    """At 160 columns a figure is one line."""
    text = lines(shown(scanned("basic", window="2026-11-20"), width=160))
    assert text[2] == "  auto accepted       ████████░░░░░░░░░░░░    40 %   2 of 5 sessions ran as the router chose"
    assert text[3].startswith("  override disagreed  █████████████▍░░░░░░    67 %   2 of 3 overrides")


def test_what_went_wrong_has_its_own_lines():
    """Rejected pins say why, unreadable overrides what follows, failovers and other names which."""
    text = shown(scanned("lessons"))
    for fact in (
        "could not be honoured: unknown model 1",
        "broken overrides                               1",
        "not readable, so their sessions do not count as accepted",
        "FAILOVERS · 1 session changed provider",
        "    1  bedrock → anthropic",
        "MODEL CHANGES · the router took another model name than the one asked for",
        "    1  medium → vendor/medium-1",
        "SERVED AS · the provider answered under another model name",
        "    1  vendor/medium-1 → vendor/medium-1-20261101",
    ):
        assert fact in text


def test_sections_without_a_fact_are_absent():
    """A session that ran as routed has two figures and no tables."""
    text = lines(shown(tallied(accepted=1)))
    assert text[2:] == [
        "  auto accepted       ████████████████████   100 %",
        "                      1 of 1 session ran as the router chose",
        "  override disagreed                             –",
        "                      no override took effect, so there is nothing to compare",
    ]


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (None, "No sessions were recorded, so there is no routing to judge.\n"),
        ("2025-01-02", "No sessions were recorded 2 Jan 2025 (UTC), so there is no routing to judge.\n"),
    ],
)
def test_no_sessions_is_one_sentence(window, sentence):
    """Nothing to judge is said, with the time that was asked for."""
    assert shown(RoutingQualityScan(window=parse_usage_window(window))) == sentence


def test_an_axis_is_named_beside_its_rows():
    """The reader is told that the rates are not of this axis alone, also where it has no pins."""
    assert "only provider pins are listed; the figures above are of all" in shown(
        scanned("basic", "lessons", axis="provider")
    )
    assert "  No override pinned the harness." in lines(shown(scanned("basic", axis="harness")))


def test_rows_stand_by_frequency():
    """Disagreements before agreements, then the most frequent, then the most successful kind of prompt."""
    bucket = "tokens={},tools=no,reasoning=none".format
    pins = {
        (bucket("tiny"), "model", False, "failed"): 2,
        (bucket("small"), "model", False, "success"): 2,
        (bucket("large"), "model", False, "success"): 7,
        (bucket("medium"), "model", True, "success"): 9,
    }
    text = shown(tallied(overrides=20, pins=pins))
    kinds = re.findall(r"  (tiny|small|medium|large) prompts, no", text)
    assert kinds == ["large", "small", "tiny", "medium"]


def test_outcomes_become_words_where_the_columns_do_not_fit():
    """No figure is cut off: with all five outcomes at 80 columns, or at 60, they are listed."""
    bucket = "tokens=xlarge,tools=yes,reasoning=high"
    ends = {"success": 5, "stalled": 1, "failed": 2, "cancelled": 3, "unknown": 4}
    scan = tallied(overrides=15, pins={(bucket, "provider", False, word): count for word, count in ends.items()})
    wide, narrow = shown(scan, width=160), shown(scan, width=80)
    assert re.search(r"COUNT    OK  STALLED  FAILED  CANCELLED  UNKNOWN", wide)
    assert re.search(r"provider     15  45 %        1       2          3        4", wide)
    assert "ENDED" in narrow
    words = " ".join(" ".join(line[40:].split()) for line in narrow.splitlines())
    assert re.search(r"5 success,.*1 stalled,.*2 failed,.*3 cancelled,.*4 unknown", words)


@pytest.mark.parametrize("width", [40, 60, 80, 160])
@pytest.mark.parametrize("folders", [("basic",), ("lessons",), ("basic", "three-of-four-pinned", "lessons")])
def test_the_view_fits_its_width(width, folders):
    """No line is longer than the terminal, and the figures are all there."""
    text = shown(scanned(*folders), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "override disagreed" in text


def test_long_lists_say_what_they_leave_out():
    """Ten paths are shown, the rest is counted."""
    paths = {(f"p{n:02}", "q"): 1 for n in range(LISTED + 3)}
    text = shown(tallied(failovers=20, paths=paths))
    assert text.count(" → q") == LISTED
    assert "and 3 more (--json lists all)" in text
    assert "13 sessions changed provider, 20 times in all" in text


def test_many_reasons_are_cut_to_three():
    """The sentence about rejected pins stays a sentence."""
    text = shown(tallied(rejections={f"reason {n}": n for n in range(1, 7)}), width=160)
    assert "could not be honoured: reason 6 6 · reason 5 5 · reason 4 4 · 3 other reasons" in text


@pytest.mark.parametrize("width", [60, 80, 160])
def test_names_from_a_log_cannot_act(width):
    """Escapes, line ends and direction marks in any logged name are shown, not obeyed."""
    scan = tallied(
        overrides=1,
        undecodable=1,
        failovers=1,
        pins={
            (f"tokens=tiny,tools=no,reasoning={EVIL}", EVIL, False, "success"): 1,
            (EVIL, "model", True, "failed"): 1,
        },
        rejections={EVIL: 1},
        paths={(EVIL, "b"): 1, (): 1},
        model_changes={(EVIL, "m"): 1},
        served_changes={("m", EVIL): 1},
    )
    text = shown(scan, width=width)
    assert not CONTROLS.search(text)
    assert text.count("\\x1b[31mred") >= 3
    assert "providers not logged" in text


@pytest.mark.parametrize(
    ("bucket", "words"),
    [
        ("tokens=large,tools=yes,reasoning=high", "large prompts with tools, high reasoning"),
        ("tokens=small,tools=no,reasoning=none", "small prompts, no tools"),
        ("tokens=unknown,tools=no,reasoning=off", "unsized prompts, no tools, reasoning off"),
        ("tokens=xlarge,tools=yes,reasoning=none", "very large prompts with tools"),
        ("something else", "something else"),
    ],
)
def test_buckets_are_words(bucket, words):
    """A kind of prompt reads as one would say it."""
    assert bucket_words(bucket) == words


def test_csv_is_the_breakdown():
    """A header and the rows of the JSON breakdown, in its order."""
    scan = scanned("basic", "three-of-four-pinned")
    rows = csv.DictReader(io.StringIO(render_csv(RoutingReport.of(scan))))
    texts = {"prompt_feature_bucket", "axis"}
    values = [{key: text if key in texts else json.loads(text) for key, text in row.items()} for row in rows]
    assert values == scan.to_dict()["override_class_breakdown"]
    assert render_csv(RoutingReport.of(RoutingQualityScan())).count("\n") == 1


def test_csv_cells_are_harmless():
    """A logged axis cannot become a formula."""
    text = render_csv(RoutingReport.of(tallied(pins={("b", "=1+1", False, "success"): 1})))
    assert next(csv.DictReader(io.StringIO(text)))["axis"] == "'=1+1"


def test_sessions_without_a_router_are_not_called_accepted():
    """There is no rate of decisions that nobody made."""
    assert shown(tallied(routed=0, requests=3, accepted=3)).split() == (
        [
            "3",
            "sessions,",
            "and",
            "no",
            "decision",
            "of",
            "a",
            "router",
            "in",
            "their",
            "logs:",
            "there",
            "is",
            "no",
            "routing",
            "to",
            "judge.",
        ]
    )
