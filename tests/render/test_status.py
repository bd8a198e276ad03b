"""The face of a status: a small page for people, one line for the bottom of an agent's screen."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.analytics.status.answer import choose_session, nothing_known
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.status.statusline_input import StatuslineInput, parse_statusline_input, with_statusline_input
from sessionlog.render.line import wrap_lines
from sessionlog.render.report import View
from sessionlog.render.status import render_status
from sessionlog.render.status_line import (
    NO_SESSION,
    block_bar,
    short_model,
    status_line,
    until_words,
)
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit
from tests.analytics.status.statuses import rules
from tests.analytics.week import check_golden
from tests.ledger.entries import NOON, SECOND, book_of, record, session
from tests.profiles import examples

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
NOW_NS = NOON + HOUR
NOW = datetime(2026, 11, 20, 13, tzinfo=UTC)
EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
BUDGETS = """
[daily]
usd = 40
period = "day"
[tokens]
tokens = 10_000_000
window = "7d"
"""


def request(minutes, *, cost=None, **fields):
    """A request of a model whose window is known, some minutes after noon."""
    known = {"provider": "anthropic", "model": "claude-opus-4-5-20251101", "input": 1200, "output": 900}
    cost_nano = None if cost is None else round(cost * 1e9)
    return record(time_ns=NOON + minutes * MINUTE, cost_nano=cost_nano, **(known | fields))


def busy_book():
    """A session of an agent that tells all that can be told, others before it, and a provider's word."""
    mine = session(
        "0199f2d1-4c1b-7a10-9c55-1f0b6c7e8a21",
        request(1, cost=1.25, cache_write=40_000), request(20, cost=2.35, cache_read=100_000),
        request(50, cost=0.5, cache_read=140_000, cache_write=6800),
        source="codex", project="/home/you/src/api", metadata={"task": "bugfix"}, turns=7, status=None,
        last_ns=NOON + 55 * MINUTE, last_turn_ns=NOON + 45 * MINUTE,
    )  # fmt: skip
    others = [
        session(f"done-{n}", request(-60, cost=2.0 + n, cache_read=50_000 * n), metadata={"task": task}, source="codex")
        for n, task in enumerate(("bugfix", "bugfix", "review", "bugfix"))
    ]
    others.append(session("plain", request(-70, provider="none", model="none")))
    book = book_of(*others)
    words = (("primary", 72.0, 300, NOON + 130 * MINUTE), ("secondary", 31.0, 10080, NOON + 90 * HOUR))
    limits = tuple(
        Limit(time_ns=NOON, name=name, used_percent=used, window_minutes=minutes, resets_ns=resets_ns)
        for name, used, minutes, resets_ns in words
    )
    book.add_scan(LogScan(sessions=(mine,), limits=limits))
    return book


def busy(text=BUDGETS, **options):
    """Its status."""
    question = StatusQuestion(zone=UTC, rules=rules(text), **options)
    return question.answer(busy_book(), NOW_NS)[0].to_dict()


def little():
    """A status of which hardly anything is known."""
    book = book_of(session("s", record(provider="none", model="none"), start_ns=None, source="llm"))
    assert choose_session(book.query, None, NOW_NS)
    return StatusQuestion(zone=UTC).answer(book, NOW_NS)[0].to_dict()


def shown(document, width=160, **options):
    """What a terminal of this width gets to see."""
    known = {"tz": "UTC", "now": NOW, "home": "/home/you"}
    lines = render_status(document, View(width=width, **(known | options)))
    return "".join(f"{line.plain}\n" for line in wrap_lines(lines, width))


def line(document, now_ns=NOW_NS, zone=UTC):
    """The line's text."""
    return "".join(text for text, _ in status_line(document, now_ns=now_ns, zone=zone))


# --- whole texts


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("kind", ["busy", "little", "all"])
def test_the_page_at_a_width(kind, width):
    """The session, tokens and cost, the context, what is left and what is usual; marks explained."""
    document = {"busy": busy, "little": little, "all": lambda: busy("", everything=True)}[kind]()
    check_golden(f"status-{kind}-{width}.txt", shown(document, width))


def test_the_line():
    """As it is promised: model, context, session, today, the tightest budget."""
    assert line(busy()) == (
        "opus-4-5 · ctx 74 % · $4.10 session · $18.10+ today · 5h ▓▓▓▓▓▓░░ 72 % until 14:10"
    )  # fmt: skip


def test_what_is_not_known_is_left_out_of_the_line():
    """It is not a place for dashes."""
    assert line(little()) == "none"
    assert line(nothing_known("because").to_dict()) == NO_SESSION


def test_the_line_of_all_sessions_says_so():
    """Their sum is nobody's session."""
    assert line(busy("", everything=True)).startswith("$18.10+ in all · ")


def test_estimates_are_marked():
    """As everywhere."""
    book = book_of(session("s", record(input=10**6)))
    found = StatusQuestion(zone=UTC).answer(book, NOW_NS)[0].to_dict()
    assert line(found) == "m · ~$1.00 session · ~$1.00 today"


def test_colour_is_for_what_runs_out():
    """Yellow from 80 percent on, red when there is nothing left, and a budget's own levels instead."""

    def style(share, **fields):
        document = nothing_known("because").to_dict()
        entry = {"percent": share, "unit": "percent", "resetsAt": None, **fields}
        document["usage"]["budgets"] = {"hourly": entry}
        return status_line(document, now_ns=NOW_NS)[-1][1]

    assert [style(share) for share in (0, 79.9, 80, 99.9, 100, 130)] == [
        "", "", "unfinished", "unfinished", "failed", "failed",
    ]  # fmt: skip
    assert [style(50, level=level) for level in ("ok", "warn", "exceeded")] == ["", "unfinished", "failed"]


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (None, "opus-4-5 · ctx 74 % · $4.10 session · $18.10+ today · 5h ▓▓▓▓▓▓░░ 72 % until 14:10 · note"),
        (80, "opus-4-5 · ctx 74 % · $4.10 session · $18.10+ today · 5h ▓▓▓▓▓▓░░ 72 % · note"),
        (70, "opus-4-5 · ctx 74 % · $4.10 session · 5h ▓▓▓▓▓▓░░ 72 % · note"),
        (55, "opus-4-5 · ctx 74 % · $4.10 session · 5h ▓▓▓▓▓▓░░ 72 %"), (40, "opus-4-5 · ctx 74 % · 5h ▓▓▓▓▓▓░░ 72 %"),
        (30, "ctx 74 % · 5h ▓▓▓▓▓▓░░ 72 %"), (3, "5h ▓▓▓▓▓▓░░ 72 %"),
    ],
)  # fmt: skip
def test_a_line_without_room_leaves_out_the_least(width, text):
    """The time at which a budget starts anew first, the budget never."""
    pieces = status_line(busy(), now_ns=NOW_NS, zone=UTC, remark="note", width=width)
    assert "".join(text for text, _ in pieces) == text
    assert width is None or len(text) <= max(width, 16)


def test_a_budgets_level_is_a_word_in_the_line_too():
    """Colour is not enough; `+` says that more may be used."""
    document = busy('[b]\nusd = 20\nperiod = "day"\n')
    document["usage"]["budgets"] = {"b": document["usage"]["budgets"]["b"]}
    assert line(document).endswith("b ▓▓▓▓▓▓▓░ 91 %+ warn until Sat 00:00")


def test_a_budget_of_ones_own_is_not_hidden_by_the_agents_word():
    """Whatever its name is: the tightest is shown."""
    document = busy('[weekly]\ntokens = 1000\nperiod = "day"\n')
    document["usage"]["budgets"]["weekly"] = document["usage"]["budgets"].pop("own:weekly")
    told = with_statusline_input(document, StatuslineInput(TOLD), NOW_NS)
    assert told["usage"]["budgets"]["weekly"]["unit"] == "percent"
    assert "own:weekly" in line(told)


# --- the page


def test_budgets_say_what_is_left_and_how_bad_it_is():
    """At 80 columns the source goes first, the amounts never."""
    text = shown(busy('[b]\ntokens = 700_000\nperiod = "day"\n[c]\nrequests = 8\nperiod = "day"\n'), 80)
    rows = {row.split()[0]: row for row in text.splitlines() if row.startswith(("BUDGET", "b ", "c "))}
    assert rows["BUDGET"].split() == ["BUDGET", "USED", "OF", "LEFT", "%", "RESETS"]
    assert "603.6k tok  700.0k  96.4k   86 %  warn" in rows["b"]
    assert " 8 req       8      0  100 %  exceeded" in rows["c"]
    assert "hidden columns: window, source (in --json)" in text


def test_none_that_fit_is_said_with_the_budget_that_says_so():
    """0 is the most important number of that column."""
    text = shown(busy('[b]\nrequests = 8\nperiod = "day"\n'), 80)
    [row] = [row for row in text.splitlines() if row.startswith("▸ bugfix")]
    assert row.split()[-2:] == ["0", "b"]


def test_all_numbers_of_a_row_are_there_or_hidden_by_name():
    """Else they do not add up."""
    heading = ["USED", "TURNS", "REQUESTS", "INPUT", "CACHED", "WRITTEN", "OUTPUT", "TOKENS", "COST"]
    assert shown(busy(), 80).splitlines()[3].split() == heading
    narrow = shown(busy(), 60)
    assert next(row for row in narrow.splitlines() if row.startswith("USED")).split() == [
        name for name in heading if name not in {"TURNS", "REQUESTS"}
    ]
    assert "hidden columns: turns, requests" in " ".join(narrow.split())


@pytest.mark.parametrize("width", [80, 100])
def test_long_names_lose_their_middle(width):
    """Beginnings and ends tell sessions and folders apart; no heading takes two lines."""
    document = busy()
    document["session"] |= {
        "id": "first-" + "x" * 90 + "-last",
        "project": "/home/you/" + "y/" * 60 + "end",
        "task": "t" * 30,
    }
    first, second = shown(document, width).splitlines()[:2]
    assert first.startswith("Session first-")
    assert "…" in first
    assert "running" in first
    assert second.startswith("~/y/")
    assert max(len(first), len(second)) <= width


def test_marks_are_the_same_everywhere():
    """`~` and `+` at budgets and typical sessions, too, with what they mean."""
    book = book_of(session("s", record(input=10**6)), session("t", record(provider="none", model="none")))
    question = StatusQuestion(zone=UTC, rules=rules('[b]\nusd = 4\nperiod = "day"\n'))
    text = shown(question.answer(book, NOW_NS)[0].to_dict())
    assert "~$1.00+" in next(row for row in text.splitlines() if row.startswith("b ")).split()
    assert "~$1.00" in next(row for row in text.splitlines() if "without a task" in row).split()
    assert "~ estimated from tokens and prices" in text
    assert "+ at least:" in text
    assert "not all is known: there is no price for none/none" in text


def test_budgets_that_are_not_asked_say_why():
    """And not that there are none."""
    for options in ({"config_error": "config.toml: no such"}, {}):
        question = StatusQuestion(zone=UTC, rules=rules(BUDGETS), **options)
        text = shown(question.answer(busy_book(), NOW_NS, alone=not options)[0].to_dict())
        assert "no budget is known" not in text
        assert ("budgets: config.toml: no such" if options else "budgets: they are about this machine") in text


# --- what an agent tells of itself

TOLD = {
    "session_id": "s", "transcript_path": "/none/s.jsonl", "model": {"id": "claude-sonnet-4-5", "display_name": "S"},
    "workspace": {"current_dir": "/src"}, "cost": {"total_cost_usd": 9.876, "total_duration_ms": 5},
    "context_window": {"used_percentage": 26, "context_window_size": 1_000_000}, "exceeds_200k_tokens": True,
    "rate_limits": {
        "five_hour": {"used_percentage": 91.4, "resets_at": NOW_NS // SECOND + 600},
        "seven_day": {"used_percentage": 12, "resets_at": NOW_NS // SECOND + 9000},
    },
}  # fmt: skip


def fed(**changes):
    """The line of the busy session's agent."""
    return line(with_statusline_input(busy(), StatuslineInput(TOLD | changes), NOW_NS))


def test_what_the_agent_tells_comes_first():
    """The ledger fills in the rest."""
    assert fed() == "sonnet-4-5 · ctx 26 % · $9.88 session · $18.10+ today · 5h ▓▓▓▓▓▓▓░ 91 % until 13:10"


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model": {"display_name": "Opus 4.5"}}, "Opus 4.5 · "), ({"model": "x"}, "opus-4-5 · "),
        ({"cost": {}}, "$4.10 session"), ({"cost": {"total_cost_usd": -1}}, "$4.10 session"),
        ({"cost": {"total_cost_usd": True}}, "$4.10 session"), ({"context_window": None}, "ctx 74 %"),
        ({"rate_limits": []}, "5h ▓▓▓▓▓▓░░ 72 %"), ({"rate_limits": {"five_hour": {"used_percentage": "9"}}}, "72 %"),
        ({"rate_limits": {"five_hour": {"used_percentage": 99, "resets_at": 5}}}, "72 %"),
        ({"rate_limits": {"five_hour": {"used_percentage": 99}}}, "5h ▓▓▓▓▓▓▓░ 99 %"),
        ({"rate_limits": {"five_hour": {"used_percentage": 99, "resets_at": 9e11}}}, "99 %"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_expected_kind_is_not_heard(change, part):
    """The ledger has the word then; a window that is over is none."""
    assert part in fed(**change)


LONG = {"input_tokens": 486, "cache_creation_input_tokens": 281, "cache_read_input_tokens": 411_000}


@pytest.mark.parametrize(
    ("window", "model", "part"),
    [
        ({"used_percentage": 100, "current_usage": LONG}, "claude-fable-5", " · ctx 41 % · "),
        ({"used_percentage": 100, "current_usage": LONG}, "claude-sonnet-4-5", "sonnet-4-5 · $9.88"),
        ({"used_percentage": 206}, "claude-sonnet-4-5", "sonnet-4-5 · $9.88"),
        ({"used_percentage": 206}, "claude-fable-5", " · ctx 15 % · "),
        ({"used_percentage": 100, "current_usage": {}}, "claude-fable-5", " · ctx 15 % · "),
        ({"used_percentage": 99, "current_usage": {"input_tokens": 198_000}}, "claude-fable-5", " · ctx 20 % · "),
        ({"used_percentage": 99, "current_usage": {"input_tokens": "x"}}, "claude-opus-4-5", "opus-4-5 · $9.88"),
        ({"used_percentage": 41, "current_usage": LONG, "context_window_size": 1_000_000}, "m", " · ctx 41 % · "),
    ],
)
def test_a_window_that_is_smaller_than_what_was_sent_is_not_believed(window, model, part):
    """Neither the client's nor the table's: another one that is known to hold it, or no share."""
    given = {"context_window": {"context_window_size": 200_000, **window}, "model": {"id": model}}
    assert part in fed(**given)


def test_a_full_window_is_full():
    """200,000 tokens fit in 200,000; and 10,000 do not fill them, whatever the client says."""
    usage = {"input_tokens": 199_990}
    given = {"context_window_size": 200_000, "used_percentage": 100, "current_usage": usage}
    assert "ctx 100 %" in fed(context_window=given, exceeds_200k_tokens=False)
    assert "ctx 5 %" in fed(
        context_window={**given, "current_usage": {"input_tokens": 9_999}}, exceeds_200k_tokens=False
    )


def test_without_a_ledger_the_agent_alone_is_shown():
    """Before the first answer is logged."""
    alone = with_statusline_input(nothing_known("because").to_dict(), StatuslineInput(TOLD), NOW_NS)
    assert line(alone) == "sonnet-4-5 · ctx 26 % · $9.88 session · 5h ▓▓▓▓▓▓▓░ 91 % until 13:10"
    assert with_statusline_input(little(), None, NOW_NS) == little()


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "junk", '{"a":1}x', "[" * 10**6, "{" * 10**6])
def test_junk_tells_nothing(text):
    """And does no harm."""
    assert parse_statusline_input(text) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(EVIL),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from([*TOLD, "id", "five_hour", "used_percentage", "resets_at", "total_cost_usd"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@examples(200)
@given(st.dictionaries(st.sampled_from([*TOLD]), ANYTHING, max_size=6))
def test_whatever_is_told_gives_one_harmless_line(told):
    """No error, no second line, no command to the terminal."""
    text = line(with_statusline_input(nothing_known("because").to_dict(), StatuslineInput(told), NOW_NS))
    assert text
    assert not CONTROLS.search(text)
    assert "\n" not in text


# --- names and numbers


@examples(100)
@given(st.text(max_size=50) | st.just(EVIL), st.sampled_from([40, 80, 160]))
def test_hostile_names_are_harmless_and_fit(name, width):
    """Wherever a name of a log is shown."""
    document = busy()
    document["session"] |= dict.fromkeys(("id", "source", "model", "project", "task", "status"), name)
    document["typical"]["byTask"][0]["task"] = name
    budgets = document["usage"]["budgets"]
    budgets[name] = {**budgets["daily"], "source": name}
    document["unavailable"][f"usage.budgets.{name}.used"] = name
    text = shown(document, width)
    assert not CONTROLS.search(text)
    assert not CONTROLS.search(line(document))
    assert max(map(cell_len, text.splitlines())) <= max(width, 60)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("claude-opus-4-5-20251101", "opus-4-5"), ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "sonnet-4-5"),
        ("anthropic/claude-haiku-4-5", "haiku-4-5"), ("claude-sonnet-4-5@20250929", "sonnet-4-5"),
        ("gpt-5.3-codex", "gpt-5.3-codex"), ("gpt-4o-2024-08-06", "gpt-4o"), ("gemini-3-pro-latest", "gemini-3-pro"),
        ("qwen3.6-27b", "qwen3.6-27b"), ("claude-", "claude-"), ("20251101", "20251101"), ("", ""),
        ("claude-sonnet-4-5[1m]", "sonnet-4-5[1m]"), ("2024-08-06", "2024-08-06"),
    ],
)  # fmt: skip
def test_models_have_short_names(name, short):
    """Without maker, place and date; what is left is never nothing."""
    assert short_model(name) == short


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0, "░░░░░░░░"), (0.1, "▓░░░░░░░"), (50, "▓▓▓▓░░░░"), (99.9, "▓▓▓▓▓▓▓░"), (100, "▓▓▓▓▓▓▓▓"), (250, "▓▓▓▓▓▓▓▓")],
)
def test_a_bar_is_full_only_at_the_end(share, drawn):
    """And empty only at the beginning."""
    assert block_bar(share) == drawn


@pytest.mark.parametrize(
    ("hours", "zone", "words"),
    [
        (1, "UTC", "until 14:00"), (1, "Asia/Kathmandu", "until 19:45"), (11, "UTC", "until Sat 00:00"),
        (120, "UTC", "until Wed 13:00"), (24 * 9, "UTC", "until 29 Nov"), (-30, "UTC", "until 19 Nov"),
    ],
)  # fmt: skip
def test_until_when_is_said_as_people_say_it(hours, zone, words):
    """The clock today, the day's name in a week, else the date."""
    at = (NOW + timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
    assert until_words(at, NOW_NS, ZoneInfo(zone)) == words


def test_until_nothing_is_not_said():
    """Nor what is no time."""
    assert until_words(None, NOW_NS, UTC) == until_words("soon", NOW_NS, UTC) == ""
