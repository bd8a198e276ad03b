"""The face of budgets: one line each with a bar, what is not known below it, and its exact twin."""

import csv
import io
import json
import re

import pytest
from rich.cells import cell_len

from sessionlog.analytics.budgets.report import COLUMNS, BudgetReport, ReportedBudget
from sessionlog.analytics.budgets.rules import parse_budget
from sessionlog.analytics.budgets.states import BudgetState, level_of
from sessionlog.analytics.columns import names_of
from sessionlog.render.budget import confirmed_document, finding, render_budgets, render_confirmed
from sessionlog.render.budget_notes import caveat_notes, no_budgets, render_sentences
from sessionlog.render.line import wrap_lines
from sessionlog.render.report import render_csv
from tests.analytics.week import NOW, check_golden
from tests.ledger.entries import SECOND
from tests.render.shown import view_of

EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
NOW_NS = int(NOW.timestamp()) * SECOND
HOUR = 3600 * SECOND


def budget(name="daily", *, used=0.0, gaps=(), session="", table=None, **fields):
    """A budget of $20 a day at noon, unless told otherwise."""
    rule = parse_budget(name, table or {"usd": 20, "period": "day"})
    limit = rule.in_unit(rule.limit)
    known = {
        "name": name, "used": used, "reserved": rule.in_unit(0), "limit": limit, "percent": 100 * used / limit,
        "unit": rule.unit, "window_seconds": None, "start_ns": None, "resets_ns": None, "burn_per_hour": 0.0,
        "runs_out_ns": None, "level": level_of(rule, round(used * rule.in_one)), "unpriced": 0, "source": "config",
        "session": 1 if session else None, "rule": rule,
    }  # fmt: skip
    return ReportedBudget(state=BudgetState(**(known | fields)), session=session, caveats=tuple(gaps))


def report(*budgets):
    return BudgetReport(rows=budgets)


UNPRICED = (
    "there is no price for vllm/qwen3.6-27b (requests: 12), so at least $0.50 was used; "
    "`sessionlog pricing MODEL` shows how to set one"
)
FULL = report(
    budget(used=14.2, reserved=0.4, burn_per_hour=1.3, runs_out_ns=NOW_NS + 4 * HOUR, resets_ns=NOW_NS + 12 * HOUR),
    budget(
        "five-hours", used=1_840_000, table={"tokens": 2_000_000, "window": "5h", "source": "claude-code"},
        burn_per_hour=612_300.0, runs_out_ns=NOW_NS + HOUR // 4, resets_ns=NOW_NS + 2 * HOUR,
    ),
    budget(
        "opus", used=512, table={"requests": 500, "period": "month", "model": ["claude-opus-*", "opus"]},
        resets_ns=NOW_NS + 228 * HOUR, burn_per_hour=3.0,
    ),
    budget(
        "each", used=0.031, table={"usd": 5, "per": "session", "meta": {"team": "x"}}, session="s-9f2c1",
        burn_per_hour=0.031,
    ),
    budget(
        "local", used=0.5, table={"usd": 3, "window": "7d", "provider": "vllm"}, unpriced=12,
        gaps=[UNPRICED],
    ),
)  # fmt: skip


def shown(budgets, width=160):
    found = render_budgets(budgets, view_of({"width": width}))
    return [line.plain for line in wrap_lines(found, width)]


@pytest.mark.parametrize("width", [80, 160])
def test_budgets_at_a_width(width):
    """A bar each, the fullest named, columns hidden by rank, and what is not known in words."""
    lines = shown(FULL, width)
    assert max(map(cell_len, lines)) <= width
    check_golden(f"budgets-{width}.txt", "\n".join(lines) + "\n")


def styles(one):
    """Text → style of the line of one budget."""
    lines = list(render_budgets(report(one), view_of({"width": 160})))
    return {text.strip(): style for text, style in lines[3].parts if text.strip()}


@pytest.mark.parametrize(
    ("used", "percent", "word", "style"),
    [(1.0, "5 %", "", ""), (16.0, "80 %", "warn", "unfinished"), (30.0, "150 %", "exceeded", "failed")],
)
def test_colour_says_what_the_words_say(used, percent, word, style):
    """Yellow is nearly used, red is exceeded; without colour a word says it."""
    found = styles(budget(used=used))
    assert found[percent] == style
    assert not word or found[word] == style
    assert next(value for text, value in found.items() if set(text) <= set("█░▏▎▍▌▋▊▉")) == style


def test_no_session_is_running():
    """Then there is nothing to show of a session's budget."""
    assert shown(report(budget("each", table={"usd": 5, "per": "session"})))[3].endswith(
        "no session had an event in the last ten minutes"
    )


def test_nothing_is_said_that_is_not():
    """A quiet budget is a short line."""
    assert shown(report(budget()))[2:] == [
        "BUDGET  PER                        USED      OF    LEFT    %",
        "daily   day  ░░░░░░░░░░░░░░░░░░░░    $0  $20.00  $20.00  0 %",
    ]


def test_money_of_which_nothing_is_known():
    """Is not 0, and the budget is not fine."""
    row = shown(report(budget(unpriced=3, gaps=[UNPRICED])))[3]
    assert row.split() == ["daily", "day", "–", "$20.00", "–", "–", "unknown"]


def test_money_that_is_a_part():
    """At least so much; what is estimated is marked, and what is left is not known."""
    row = shown(report(budget(used=5.0, unpriced=3, estimated=True, gaps=[UNPRICED])))[3]
    assert row.split()[3:] == ["~$5.00+", "$20.00", "–", "25", "%+", "at", "least"]
    row = shown(report(budget(used=5.0, estimated=True)))[3]
    assert row.split()[3:] == ["~$5.00", "$20.00", "~$15.00", "25", "%"]


def test_what_is_left_is_what_nobody_has_reserved():
    """Up to the stop level."""
    row = shown(report(budget(used=5.0, reserved=1.0, table={"usd": 20, "period": "day", "stop": 50})))[3]
    assert "$4.00" in row.split()


def test_sentences_end_between_words():
    """What is pasted stays whole."""
    lines = list(render_sentences(no_budgets("/home/you/.config/sessionlog/config.toml"), 40))
    assert lines == [
        "no budgets yet; a first one in", "/home/you/.config/sessionlog/config.toml", "would be", "", "[budgets.daily]",
        "usd = 20", 'period = "day"',
    ]  # fmt: skip


def test_findings_are_sentences():
    """What, how much, and when it is better."""
    said = [finding(one, view_of({})) for one in FULL.rows[1:4]]
    assert said == [
        "five-hours: nearly used: 1.8M tok of 2.0M per 5h (92 %), begins to reset 14:00",
        "opus: exceeded: 512 req of 500 per month (102 %), resets 1 Dec 00:00",
        "each: nearly used: $0.031 of $5.00 per session (1 %) in session s-9f2c1",
    ]


def test_one_reason_is_said_once():
    """Of all, or of those that it is about."""
    both, one = "the clock was set", "a log cannot be read"
    found = report(budget("a", gaps=[both]), budget("b", gaps=[both, one]))
    assert caveat_notes(found) == ["not all is known: the clock was set", "not all is known of b: a log cannot be read"]


def test_csv_is_the_document():
    """Every value of the JSON under its name; reasons are joined, null is empty."""
    header, *rows = csv.reader(io.StringIO(render_csv(FULL)))
    assert header == list(names_of(COLUMNS))
    for row, one in zip(rows, FULL.to_dict()["rows"], strict=True):
        expected = {**one, "unknown": "; ".join(one["unknown"])}
        texts = {key for key, value in expected.items() if isinstance(value, str)}
        read = {
            key: cell if key in texts else json.loads(cell or "null") for key, cell in zip(header, row, strict=True)
        }
        assert read == expected


def test_the_document_names_what_was_found():
    """For a program that asks nothing else."""
    document = FULL.to_dict()
    assert (document["exceeded"], document["warned"]) == (["opus"], ["five-hours"])


def test_nothing_from_outside_reaches_a_terminal_as_it_is():
    """Names are the user's, ids and models are those of logs."""
    evil = budget(EVIL, used=19.0, session=EVIL, gaps=[EVIL], table={"usd": 20, "period": "day", "model": EVIL})
    text = "\n".join([*shown(report(evil)), finding(evil, view_of({})), *caveat_notes(report(evil))])
    assert not CONTROLS.search(text.replace("\n", ""))
    assert not CONTROLS.search(render_confirmed([EVIL]).replace("\n", ""))
    assert "\n=" not in render_csv(report(budget("=1+1")))


def test_what_was_confirmed():
    """A line each, without the advice that was followed."""
    said = "the clock was set back by 3,600 s since the ledger was first asked: `sessionlog budget reset` confirms that"
    assert render_confirmed([said]) == (
        "confirmed: the clock was set back by 3,600 s since the ledger was first asked\n"
    )
    assert render_confirmed([]) == "there was nothing to confirm\n"
    assert confirmed_document("/l", [said]) == {
        "schema": "sessionlog.budget.reset/1",
        "path": "/l",
        "confirmed": [said],
    }


def test_the_first_budget():
    """Where it goes, and what it may be."""
    assert no_budgets("/c.toml")[0] == "no budgets yet; a first one in /c.toml would be"
