"""The face of a watch: it fits every screen, counts what it leaves out, and no name can do anything to it."""

import io
import re
from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.analytics.budgets.states import BudgetState
from sessionlog.analytics.limits import RateLimit
from sessionlog.analytics.watch.snapshot import Pace, RunningSession, WatchEvent, WatchSnapshot
from sessionlog.render.console import THEME
from sessionlog.render.line import wrap_lines
from sessionlog.render.numbers import human_count
from sessionlog.render.sessions import MARKS
from sessionlog.render.watch import render_watch
from sessionlog.render.watch_screen import open_screen
from sessionlog.render.watch_tables import short_id
from tests.analytics.week import check_golden
from tests.ledger.entries import NOON, SECOND
from tests.profiles import examples

MINUTE = 60 * SECOND
EVIL = "\x1b]0;owned\x07\x1b[2J\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def pace(tokens=288_000, cost=1_240_000_000, **more):
    """What was used in the last minutes, ever faster."""
    steps = tuple(tokens * n // 45 for n in range(10))
    known = {"requests": 9, "input_tokens": sum(steps), "estimated_nano": cost, "minutes": 4.5, "steps": steps}
    return Pace(**(known | more))


def running(name="0199f2d1-4c1b-7a10-9c55-1f0b6c7e8a21", **more):
    """A session that is running."""
    known = {
        "source": "claude-code", "session": name, "path": f"/logs/{name}.jsonl", "project": "/home/you/src/api",
        "model": "claude-opus-4-5-20251101", "start_ns": NOON - 40 * MINUTE, "last_ns": NOON - 4 * SECOND, "turns": 7,
        "requests": 31, "input_tokens": 1_240_000, "estimated_nano": 4_100_000_000,
        "context_tokens": 148_200, "context_window": 200_000, "pace": pace(),
    }  # fmt: skip
    return RunningSession(**(known | more))


def budget(name, used, limit, unit="usd", level="ok", **more):
    """A budget of which something is used."""
    [rule] = parse_budgets({name: {unit: limit, "period": "day"}})
    known = {
        "name": name, "used": used, "reserved": 0, "limit": limit, "percent": used / limit * 100, "unit": unit,
        "window_seconds": 86_400, "start_ns": NOON - 720 * MINUTE, "resets_ns": NOON + 720 * MINUTE,
        "burn_per_hour": 1.5, "runs_out_ns": None, "level": level, "unpriced": 0, "source": "config", "session": None,
        "rule": rule,
    }  # fmt: skip
    return BudgetState(**(known | more))


def limit(name, used, minutes, resets_ns, source="codex"):
    """A provider's word."""
    return RateLimit(source, name, NOON - MINUTE, used, minutes, resets_ns, now_ns=NOON)


def event(kind, seconds, **more):
    """Something that happened some seconds ago."""
    known = {"source": "claude-code", "session": "0199f2d1-4c1b-7a10-9c55-1f0b6c7e8a21"}
    return WatchEvent(time_ns=NOON - seconds * SECOND, kind=kind, **(known | more))


def answer(seconds, **more):
    """A response."""
    known = {"name": "claude-opus-4-5", "tokens": (148_200, 96), "cost_nano": 31_000_000, "duration_ms": 4200.0}
    return event("response", seconds, **(known | more))


def busy(sessions=3):
    """A morning's work."""
    others = (
        running(
            "s-9f2", source="native", model="gpt-5.3-codex", project="unknown", turns=None,
            estimated_nano=None, context_window=None, pace=pace(9_000, None),
        ),
        running(
            "20261120T113000Z-1a2b3c4d", source="native", model="", last_ns=NOON - 3 * MINUTE, requests=0,
            input_tokens=0, estimated_nano=None, context_tokens=None, turns=0, pace=Pace(),
        ),
    )  # fmt: skip
    return WatchSnapshot(
        now_ns=NOON,
        sessions=(running(), *others, *(running(f"more-{n}") for n in range(sessions)))[:sessions],
        totals=pace(298_000, cost_is_partial=True),
        budgets=(
            budget("daily", 14.4, 20, "usd", runs_out_ns=NOON + 224 * MINUTE),
            budget("team", 1_900_000, 2_000_000, "tokens", "warn"),
            budget("tries", 51, 50, "requests", "exceeded"),
        ),
        limits=(limit("primary", 72.0, 300, NOON + 130 * MINUTE), limit("secondary", 31.0, 10080, NOON + 5400 * MINUTE)),
        events=(
            event("tool", 4, name="bash", failed=True, duration_ms=3100.0),
            event("tool", 5, name="read", duration_ms=12.0),
            answer(6, estimated=True),
            answer(31, session="s-9f2", failed=True, tokens=(0, 0), cost_nano=None, name="gpt-5.3-codex"),
            event("tool", 40, session="s-9f2", name="grep", finished=False),
            event("end", 95, session="s-old", name="iteration_limit", failed=True),
            event("start", 600, session="20261120T113000Z-1a2b3c4d", source="native"),
        ),
        notes=("another sessionlog is reading new logs into the ledger: these are the numbers without them",),
    )  # fmt: skip


def shown(seen, width, height=None):
    """The picture as text."""
    lines = render_watch(seen, width=width, height=height, tz="UTC", home="/home/you")
    return "".join(f"{line.plain}\n" for line in (wrap_lines(lines, width) if height is None else lines))


@pytest.mark.parametrize("width", [80, 160])
def test_a_busy_morning(width):
    """Everything that can be on the picture, as it is printed once."""
    check_golden(f"watch-{width}.txt", shown(busy(), width))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
def test_a_crowded_screen(width, height):
    """Twenty sessions: every part keeps some rows, and says how many it leaves out."""
    text = shown(busy(20), width, height)
    check_golden(f"watch-{width}x{height}.txt", text)
    assert text.count("\n") <= height


def test_nothing_is_running():
    """One sentence, and no table of nothing."""
    text = shown(WatchSnapshot(now_ns=NOON), 80)
    assert text.splitlines() == [
        "Watch · 20 Nov 12:00:00 · 0 running" + " " * 12 + "▁▁▁▁▁▁▁▁▁▁  last 5 min  0 tok/min",
        "",
        "No session is running.",
    ]


@examples(60)
@given(st.integers(0, 40), st.integers(60, 200), st.integers(6, 60), st.booleans())
def test_it_fits_every_screen(sessions, width, height, quiet):
    """Neither wider nor higher; whoever has no row is counted."""
    seen = busy(sessions) if not quiet else replace(busy(sessions), budgets=(), limits=(), notes=())
    lines = shown(seen, width, height).splitlines()
    assert len(lines) <= height
    assert max(map(cell_len, lines)) <= width
    rows = sum(line.startswith("●") for line in lines)
    more = next((int(found[1]) for line in lines if (found := re.match(r"\+(\d+) more session", line))), 0)
    assert rows + more == sessions or height < 16


@examples(60)
@given(st.sampled_from([80, 100, 120, 160]), st.integers(0, 10**13), st.none() | st.integers(0, 10**14), st.booleans())
def test_columns_are_those_of_the_width(width, tokens, cost, known):
    """They neither come nor go with the numbers in them."""
    one = running(
        input_tokens=tokens, requests=tokens, estimated_nano=cost, turns=tokens if known else None, pace=pace(tokens, cost),
        context_tokens=tokens if known else None, context_window=None, project="/a/b" if known else "unknown",
    )  # fmt: skip
    own = (budget("daily", tokens, 20, "tokens", runs_out_ns=NOON + MINUTE if known else None),)
    usual = shown(WatchSnapshot(now_ns=NOON, sessions=(running(),), budgets=own[:1]), width).splitlines()
    lines = shown(WatchSnapshot(now_ns=NOON, sessions=(one,), budgets=own), width).splitlines()
    for number, first in ((2, "SESSION"), (5, "BUDGET")):
        titles, usual_titles = lines[number].split(), usual[number].split()
        assert usual_titles[0] == first
        assert len(titles) == len(usual_titles)
        assert all(there.startswith(here.rstrip("…")) for here, there in zip(titles, usual_titles, strict=True))
    assert max(map(cell_len, lines)) <= width


def test_marks_are_those_of_the_list_of_sessions():
    """A running session looks the same everywhere; one that is quiet is dimmed."""
    lines = [line for line in render_watch(busy(), width=80, tz="UTC") if line.plain.startswith("●")]
    assert [line.parts[0][1] for line in lines] == [MARKS["running"][1]] * 2 + ["secondary"]


def test_the_head_is_the_sum_of_the_rows():
    """Of the sessions that are running; what others used is not of it."""
    seen = replace(busy(2), totals=pace(10**9))
    tokens = sum(one.pace.total_tokens for one in seen.sessions)
    assert f"last 5 min  {human_count(round(tokens / 4.5))} tok/min" in shown(seen, 160).splitlines()[0]


def test_a_call_that_took_no_time():
    """Is spelled in one way."""
    for took in (0.0, 0.4):
        seen = WatchSnapshot(now_ns=NOON, events=(event("tool", 1, name="read", duration_ms=took),))
        assert "<1 ms" in shown(seen, 80)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 30), (160, 50)])
def test_a_screen_is_used(width, height):
    """With enough to show, all of it but a line or two."""
    many = replace(busy(40), events=tuple(answer(n) for n in range(50)))
    assert height - 2 <= shown(many, width, height).count("\n") <= height


def test_ids_are_told_apart_by_their_ends():
    """The beginnings of those made within a minute are the same."""
    assert short_id("s-9f2") == "s-9f2"
    assert short_id("0199f2d1-4c1b-7a10-9c55-1f0b6c7e8a21") == "…6c7e8a21"


HOSTILE = st.text(max_size=40) | st.just(EVIL)


@examples(60)
@given(HOSTILE, HOSTILE, st.sampled_from([80, 160]), st.sampled_from([None, 24]))
def test_hostile_names(name, other, width, height):
    """They are text, whatever they are."""
    seen = WatchSnapshot(
        now_ns=NOON,
        sessions=(running(name, source=other, model=name, project=other),),
        limits=(limit(name, 5.0, None, None, source=other),),
        events=(
            event("tool", 1, name=name, session=other), event("end", 2, name=other, session=name),
            answer(3, name=name), event("start", 4, source=other),
        ),
        notes=(name,) if name else (),
    )  # fmt: skip
    text = shown(seen, width, height)
    assert not CONTROLS.search(text)
    assert all(cell_len(line) <= width for line in text.splitlines())


def screen(width, height):
    """A console that is a terminal of some size, and what it was sent."""
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, force_interactive=True, width=width, height=height, theme=THEME, legacy_windows=False,
        _environ={"TERM": "xterm-256color"},
    )  # fmt: skip
    return console, out


def test_the_screen_is_given_back():
    """The other screen, and the cursor, whatever ends the watch."""
    console, out = screen(80, 24)

    def ended_by_hand():
        with open_screen(tz="UTC", home="", console=console) as live:
            live.show(busy())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ended_by_hand()
    text = out.getvalue()
    assert text.startswith("\x1b[?1049h")
    assert text.index("\x1b[?25l") < text.index("Watch") < text.index("\x1b[?1049l")
    assert "\x1b[?25h" in text


def test_it_is_laid_out_anew_for_another_size():
    """The same picture, as wide and as high as the terminal is now."""
    console, out = screen(80, 16)
    with open_screen(tz="UTC", home="", console=console) as live:
        live.show(busy(20))
        small = out.getvalue()
        console.size = (160, 50)
        live.repaint()
    large = out.getvalue()[len(small) :]
    assert "SOURCE" not in small
    assert "SOURCE" in large
    assert small.rpartition("Watch")[2].count("\n") == 15
    assert large.count("\n") == 49
    assert busy().sessions[0].session[-8:] in small


def test_colour_says_what_is_failed():
    """Red, and in words."""
    console, out = screen(160, 50)
    with open_screen(tz=UTC.tzname(None), home="", console=console) as live:
        live.show(busy())
    assert re.search("\x1b\\[31m[^\x1b]*failed", out.getvalue())
