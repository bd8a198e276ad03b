"""Usage by time as bars and as a calendar: drawn to scale, whole at any width, without colour and without gaps."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sessionlog.analytics.selection import Selection
from sessionlog.analytics.usage import fold_usage, with_trend
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.render.bar import stacked
from sessionlog.render.line import wrap_lines
from tests.analytics.week import check_golden, fold
from tests.ledger.entries import NOON, book_of, record, session
from tests.profiles import examples
from tests.render.shown import show

DAY = 86_400 * 10**9
NOW = datetime(2026, 11, 20, 18, tzinfo=UTC)
CENT = 10**7


def spent(*days, **fields):
    """A session with a request so many days before noon of the 20th, of so many cents, by a model."""
    return session(
        "s", *(record(time_ns=NOON - ago * DAY, cost_nano=cents * CENT, **{"model": "m"} | more | fields)
               for ago, cents, more in ((*day, {})[:3] for day in days)),
    )  # fmt: skip


FORTNIGHT = spent(
    (13, 40), (12, 100, {"model": "large"}), (12, 20), (9, 70, {"model": "large"}), (9, 35), (9, 5, {"model": "tiny"}),
    (8, 1), (6, 55, {"model": "nova"}), (5, 60, {"model": "large", "cache_read": 900}), (0, 25), (0, 12, {"model": "other"}),
)  # fmt: skip


def by(*keys, of=FORTNIGHT, **fields):
    return fold(of, by=keys, **fields)


def lines(report, width=100, **options):
    return [line.plain for line in show(report, **({"width": width, "now": NOW} | options))]


def shown(report, width, **options):
    """What a terminal of this width gets to see."""
    return "".join(f"{line.plain}\n" for line in wrap_lines(show(report, width=width, now=NOW, **options), width))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_days_at_a_width(width):
    """A bar for each, the present one marked, and what lies between."""
    check_golden(f"by-day-{width}.txt", shown(by("day"), width))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_days_and_models_at_a_width(width):
    """The bar in parts, the day once, its models below with the signs of their parts."""
    check_golden(f"by-day-and-model-{width}.txt", shown(by("day", "model"), width))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_calendar_at_a_width(width):
    """As many weeks as there is room for."""
    report = by("day", of=spent(*((n * n % 331, n % 7 + 1) for n in range(150))))
    check_golden(f"heatmap-{width}.txt", shown(report, width, heatmap=True))


def bars(report, **options):
    """The cells of each bar, by its period."""
    found = {}
    for line in lines(report, **options):
        if match := re.match(r"(?! )(\S.*?)  ([█▓▒░▉-▏]+)  ", line):
            found[match[1]] = match[2]
    return found


def test_bars_are_to_scale():
    """The costliest period is full, half the cost is half the bar, and little is not nothing."""
    drawn = bars(by("day", of=spent((2, 100), (1, 50), (0, 0.01))))
    assert [len(text) for text in drawn.values()] == [20, 10, 1]


def test_without_costs_tokens_are_drawn():
    """A bar of nothing would say that nothing was used."""
    report = by(
        "day", of=session("s", record(provider="x", input=90), record(provider="x", input=40, time_ns=NOON - DAY))
    )
    assert [len(text) for text in bars(report).values()] == [10, 20]


@examples(60)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5), st.integers(1, 40))
def test_parts_fill_their_bar(parts, cells):
    """Whole cells, in all as many as the bar of their sum; a part of nothing has none."""
    taken = stacked(parts, sum(parts), cells)
    assert sum(taken) == (cells if sum(parts) else 0)
    assert all(cell == 0 for part, cell in zip(parts, taken, strict=True) if part == 0)
    assert all(abs(cell - part / sum(parts) * cells) < 1 for part, cell in zip(parts, taken, strict=True) if part)


def test_parts_are_told_apart_without_colours():
    """Each of the three largest groups has a sign of its own, which stands before its name."""
    text = lines(by("day", "model"))
    signs = {line.split()[1]: line.split()[0] for line in text if line.startswith("  ") and line.split()[0] in "█▓▒░"}
    assert signs == {"large": "█", "m": "▓", "nova": "▒", "other": "░", "tiny": "░"}


def test_a_period_is_the_sum_of_its_groups():
    """Cost, requests and tokens of the models below it."""
    report = by("day", "model", of=spent((0, 20, {"input": 7}), (0, 30, {"model": "n", "cache_read": 7}), (1, 4)))
    [text] = [line for line in lines(report) if line.startswith("Fri")]
    assert re.split(r"\s{2,}", text)[2:7] == ["$0.50", "29 %", "$0.000006", "2", "10"]


def test_times_without_usage_are_counted():
    """Between the days that are shown; one is one."""
    text = lines(by("day"))
    assert text.count("  2 days without usage") == 1
    assert text.count("  1 day without usage") == 1
    assert "without usage" not in "\n".join(lines(by("hour")))
    assert "  1 month without usage" in lines(by("month", of=spent((60, 1), (0, 1))))
    assert "  2 weeks without usage" in lines(by("week", of=spent((21, 1), (0, 1))))


def test_only_the_present_period_is_so_far():
    """A window that has ended has none."""
    assert [line[:10] for line in lines(by("day")) if line.endswith("so far")] == ["Fri 20 Nov"]
    late = lines(by("day"), now=datetime(2026, 11, 21, 18, tzinfo=UTC))
    assert not [line for line in late if line.endswith("so far")]


def test_another_order_is_a_plain_table():
    """Bars are of a time that goes on; what is sorted by cost is not."""
    report = by("day").sorted_by("cost_usd")
    assert lines(report)[2].split()[:2] == ["DAY", "SESSIONS"]
    assert "█" not in "\n".join(lines(report))


@pytest.mark.parametrize("width", range(24, 130, 7))
@pytest.mark.parametrize(
    "keys", [("day",), ("day", "model"), ("week", "provider", "model"), ("hour",), ("month", "model")]
)
def test_no_line_is_longer_than_the_terminal(keys, width):
    """From where a period and its cost fit."""
    for line in wrap_lines(show(by(*keys), width=width, now=NOW), width):
        assert cell_len(line.plain) <= width
    for line in wrap_lines(show(by("day"), width=width, now=NOW, heatmap=True), width):
        assert cell_len(line.plain) <= width


# --- the calendar


def calendar(report, width=120, **options):
    """The seven lines of the weeks."""
    text = lines(report, width=width, heatmap=True, **options)
    first = next(n for n, line in enumerate(text) if line.startswith("Mon"))
    return text[first : first + 7]


def test_the_calendar_has_a_sign_for_each_day():
    """From the window's first day to today; weekdays stay in their lines."""
    start = parse_usage_window("2026-11-03..", now=NOW)
    report = by("day", of=spent((13, 4), (9, 3), (2, 2), (0, 1)), start_ns=start.start_ns)
    assert [line[4:].rstrip() for line in calendar(report)] == [
        "  · ·", "· · ·", "· ▓▓▒▒", "· · ·", "· · ░░", "██·", "· ·",
    ]  # fmt: skip


def test_levels_are_quarters_of_the_days_with_usage():
    """However far apart the costs are."""
    report = by("day", of=spent(*((n, 10**n) for n in range(8))))
    signs = [sign for line in calendar(report) for sign in line[4:] if sign in "░▒▓█"]
    assert {sign: signs.count(sign) for sign in "░▒▓█"} == dict.fromkeys("░▒▓█", 4)


def test_records_without_a_time_are_in_no_day():
    """They are in the sum."""
    report = by("day", of=session("s", record(time_ns=None, cost_nano=CENT), record(cost_nano=CENT)))
    text = "\n".join(lines(report, heatmap=True))
    assert "1 of 1 day · total $0.02" in text


def test_an_empty_calendar_is_its_title():
    """Nothing is drawn of nothing."""
    assert len(lines(by("day", of=session("s")), heatmap=True)) <= 2


# --- words below the bars


def trended(window, *sessions):
    """A report as `aggregate_usage` makes it, of a book."""
    book = book_of(*sessions)
    selection = Selection.of(window, until=None, filters=None, tz="UTC", now=NOW, by=("day",))
    return with_trend(book, selection, fold_usage(book, selection))


@pytest.mark.parametrize(
    ("window", "days", "words"),
    [
        ("7d", [(30, 1), (9, 100), (1, 122)], ["▲ cost 22 % above the 7 days before ($1.00)",
                                               "$4.01 by 30 Nov at this pace ($0.17 a day)"]),
        ("1d", [(30, 1), (1, 100), (0, 50)], ["▼ cost 50 % below the day before ($1.00)"]),
        ("1d", [(30, 1), (1, 50), (0, 50)], ["cost as in the day before ($0.50)"]),
        ("last-week", [(30, 1), (14, 10), (8, 45)], ["▲ cost 4.5 times that of 2 Nov – 8 Nov ($0.10)"]),
        ("1w", [(9, 100), (1, 50)], ["$2.23 by 30 Nov at this pace ($0.071 a day)"]),
        ("1d", [(0, 50)], []),
    ],
)  # fmt: skip
def test_words_below(window, days, words):
    """The time before where logs go back so far, and the month where the window reaches until now."""
    text = lines(trended(window, spent(*days)))
    assert [line for line in text if "before" in line or "that of" in line or "at this pace" in line] == words


def test_tokens_are_compared_where_a_cost_is_not_known_whole():
    """A sum without a part is no witness."""
    unpriced = {"provider": "nobody", "cost_nano": None}
    book = session("s", record(time_ns=NOON - 30 * DAY), record(time_ns=NOON - 9 * DAY, input=95),
                   record(time_ns=NOON - DAY, input=45, **unpriced))  # fmt: skip
    assert "▼ tokens 50 % below the 7 days before (100)" in lines(trended("7d", book))


def test_days_without_a_price_are_days_with_usage():
    """In the calendar as in the table: what is not known to cost anything was still used."""
    days = (
        spent(*((n, 5) for n in range(3))),
        session("t", *(record(provider="x", time_ns=NOON - n * DAY) for n in range(3, 9))),
    )
    report = fold(*days, by=("day",))
    text = "\n".join(lines(report, heatmap=True))
    assert "9 of 9 days" in text
    assert "longest run 9 days" in text


def test_a_run_that_is_over_is_not_current():
    """Of a window that ended weeks ago, and of records of the future."""
    past = parse_usage_window("2026-10", now=NOW)
    report = by("day", of=spent((21, 1), (20, 1), (30, 2)), start_ns=past.start_ns, end_ns=past.end_ns)
    assert "current run" not in "\n".join(lines(report, heatmap=True))
    assert "current run" not in "\n".join(lines(by("day", of=spent((-400, 1))), heatmap=True))
    assert "current run 2 days" in "\n".join(lines(by("day", of=spent((2, 1), (1, 1))), heatmap=True))


def test_free_days_are_drawn_and_named_by_tokens():
    """A cost of nothing does not make a day the busiest."""
    text = "\n".join(
        lines(by("day", of=spent((1, 0, {"input": 995, "model": "gift"}), (0, 0, {"model": "gift"}))), heatmap=True)
    )
    assert "busiest Thu 19 Nov (1.0k tokens)" in text


def test_days_that_are_alike_are_all_the_busiest():
    """One day alone is not less than any other."""
    text = lines(by("day", of=spent((0, 5), (1, 5))), heatmap=True)
    assert "██" in "\n".join(text)
    assert not any("░" in line for line in text if not line.startswith("    less"))


def test_weeks_without_room_are_counted():
    """What the facts are about is not all in the picture."""
    report = by("day", of=spent(*((n, 1) for n in range(0, 300, 3))))
    assert "    the first 7 weeks have no room here" in lines(report, width=40, heatmap=True)
    assert "no room" not in "\n".join(lines(report, width=60, heatmap=True))


def test_a_limit_that_cuts_a_period_makes_no_bar():
    """Its sum would be too small."""
    assert "█" not in "\n".join(lines(by("day", "model").limited(5)))
    assert "█" in "\n".join(lines(by("day").limited(2)))


def test_models_that_differ_in_their_date_keep_it():
    """Two rows of one name would be a riddle."""
    models = [(0, 1, {"model": f"gpt-4o-{date}"}) for date in ("2024-05-13", "2024-11-20")]
    text = "\n".join(lines(by("day", "model", of=spent(*models, (0, 1, {"model": "claude-opus-4-5-20251101"})))))
    assert all(name in text for name in ("gpt-4o-2024-05-13", "gpt-4o-2024-11-20", " opus-4-5 "))


def test_a_window_that_ends_before_now_is_not_so_far():
    """The month goes on behind it."""
    window = parse_usage_window("2026-11-01..2026-11-18", now=NOW)
    report = by("month", start_ns=window.start_ns, end_ns=window.end_ns)
    assert "so far" not in "\n".join(lines(report))
    assert "so far" in "\n".join(lines(by("month")))


def test_an_hour_that_comes_twice_comes_in_its_order():
    """East of Greenwich the text of its first offset is the greater one."""
    zone = ZoneInfo("Europe/Berlin")
    repeated = int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()) * 10**9  # 02:30 in summer time
    of = session("s", *(record(time_ns=repeated + n * 3600 * 10**9, cost_nano=CENT) for n in range(3)))
    text = lines(by("hour", of=of, zone=zone), tz="Europe/Berlin")
    assert [line[:22].split()[-1] for line in text if line.startswith("Sun")] == ["02:00+02:00", "02:00+01:00", "03:00"]


def test_the_year_is_the_zones():
    """On New Year's Eve in London it is another year in Berlin."""
    eve = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    of = session("s", *(record(time_ns=int(eve.timestamp()) * 10**9 - n * DAY, cost_nano=CENT) for n in range(3)))
    text = "\n".join(lines(by("day", of=of, zone=ZoneInfo("Europe/Berlin")), tz="Europe/Berlin", now=eve))
    assert "Fri  1 Jan  " in text
    assert "Thu 31 Dec 2026" in text
