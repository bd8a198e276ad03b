"""The dashboard on terminals of any width, with and without colours and signs."""

from dataclasses import replace

import pytest

from sessionlog import __version__
from sessionlog.analytics.dashboard import Dashboard
from sessionlog.analytics.trend import PeriodUsage
from sessionlog.analytics.window import UsageWindow
from sessionlog.render.cells import cell_len
from sessionlog.render.dashboard import COMMANDS, render_dashboard
from sessionlog.render.line import wrap_lines
from sessionlog.render.report import View
from tests.analytics.week import NOW, check_golden
from tests.ledger.entries import SECOND
from tests.render.test_watch import CONTROLS, EVIL, running

NOON = int(NOW.timestamp()) * SECOND
DAY = 86_400 * SECOND


def used(cost, sessions, tokens, **more):
    """The usage of a period."""
    known = {"window": UsageWindow(), "sessions": sessions, "requests": sessions * 9, "known_nano": cost}
    return PeriodUsage(**(known | {"input_tokens": tokens} | more))


def entry(percent, *, unit="usd", level="ok", **more):
    """A budget of the status document."""
    known = {"percent": percent, "unit": unit, "used": percent / 2, "limit": 50, "source": "config", "level": level}
    return known | {"resetsAt": "2026-11-22T00:00:00Z", "unknown": [], "estimated": False} | more


BUSY = Dashboard(
    whole=used(None, 1204, 0, first_ns=NOON - 202 * DAY),
    sources=6,
    today=used(31_200_000_000, 17, 1_300_000),
    week=used(100_000_000_000, 86, 64_100_000, estimated_nano=48_100_000_000),
    week_before=used(121_400_000_000, 80, 60_000_000),
    days=(3, 2, 5, 9, 31, 22, 9),
    running=(
        running(start_ns=NOON - 720 * SECOND),
        running(source="codex", model="gpt-5.3-codex", project="/home/you/src/日本語/site", context_tokens=16_000,
                estimated_nano=310_000_000, start_ns=NOON - 70 * SECOND),
        running(source="native", model="", project="unknown", context_tokens=None, context_window=None,
                estimated_nano=None, start_ns=None),
    ),
    budgets={
        "daily": entry(86.0, level="warn", estimated=True),
        "hourly": entry(72.0, unit="percent", level=None, source="claude-code", resetsAt="2026-11-21T14:10:00Z"),
        "tokens of the week": entry(38.2, unit="tokens", used=7_640_000, limit=20_000_000, unknown=["no price"]),
    },
    priced_from="genai-prices 0.2.3 of 2026-11-10",
    problem_count=2,
    notes=(),
)  # fmt: skip
NOTHING = replace(
    BUSY, whole=used(None, 0, 0), sources=0, today=used(None, 0, 0), week=used(None, 0, 0), week_before=None,
    days=(0,) * 7, running=(), budgets={}, problem_count=0,
)  # fmt: skip


def shown(seen, width, **options):
    """The dashboard as text."""
    lines = render_dashboard(seen, View(width=width, tz="UTC", now=NOW, home="/home/you"), **options)
    text = "".join(f"{line.plain}\n" for line in wrap_lines(lines, width))
    return text.replace(__version__, "0.0.0")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_busy_day(width):
    """Everything that can be on it."""
    check_golden(f"dashboard-{width}.txt", shown(BUSY, width))


@pytest.mark.parametrize("width", [40, 80])
def test_where_nothing_is_known(width):
    """The first steps instead of figures."""
    check_golden(f"dashboard-nothing-{width}.txt", shown(NOTHING, width))


def test_every_width_is_kept():
    """No line is wider than the terminal, whatever the texts are; each command stands at the start of its column."""
    evil = replace(BUSY, running=tuple(running(model=EVIL, project=EVIL, source=EVIL) for _ in range(9)), notes=(EVIL,))
    for width in range(20, 200, 3):
        for seen in (BUSY, NOTHING, evil):
            lines = shown(seen, width).splitlines()
            assert max(map(cell_len, lines)) <= width
            assert not any(map(CONTROLS.search, lines))
    assert [name for name, _ in COMMANDS if f"  {name} " not in shown(BUSY, 80)] == []


def test_hidden_commands_are_not_offered():
    """`ui` is offered only where textual is installed."""
    assert "browse everything" in shown(BUSY, 80)
    assert "browse everything" not in shown(BUSY, 80, hidden=("ui",))


def test_tokens_are_compared_where_costs_are_incomplete():
    """A sum of which a part has no price says nothing about a trend."""
    partial = replace(BUSY, week=replace(BUSY.week, cost_is_partial=True))
    assert "▲ tokens 7 % above last week by this time" in shown(partial, 120)
    assert "above last week" not in shown(replace(BUSY, week_before=None), 120)


def test_many_running_sessions_and_budgets_are_counted():
    """Only the first are shown, with the command that has the others."""
    many = replace(
        BUSY, running=tuple(running(f"s-{n}", start_ns=NOON - n * SECOND) for n in range(8)),
        budgets={f"b{n}": entry(90.0 - n) for n in range(5)},
    )  # fmt: skip
    text = shown(many, 80)
    assert "+3 running sessions (`sessionlog watch`)" in text
    assert "+1 budget (`sessionlog budget`)" in text
    assert shown(replace(many, running=many.running[:1]), 80).count("+") == 1
