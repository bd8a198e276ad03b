"""Blocks: full hours, every record with a time exactly once, a pace that is honest."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.block import BlockReport
from sessionlog.analytics.blocks import block_starts, list_blocks
from sessionlog.analytics.sums import PROVENANCE
from sessionlog.errors import InvalidQuery, InvalidWindow
from sessionlog.sources.record import Limit
from tests.analytics.test_usage import SESSIONS as UNTIMELY
from tests.analytics.week import NOW, check_golden, fold
from tests.analytics.workday import HOUR, MINUTE, PRESENT_NS, day_of_blocks, day_of_limits, fold_hours
from tests.ledger.entries import NOON, PRICES, SECOND, record, session
from tests.profiles import examples
from tests.sources.logs import answered, start, write_log

LAW = examples(60)
SUMMED = (
    "requests", "failed_requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "total_tokens",
)  # fmt: skip


def listed(paths, **options):
    return list_blocks(paths, **({"prices": PRICES, "now": NOW} | options))


def at(*moments, **fields):
    """A session with a record at each of these times after noon."""
    return session("s", *[record(time_ns=NOON + moment) for moment in moments], **fields)


def hours_of(report):
    """Start and end of each block in hours after noon, oldest first."""
    spans = [((block.start_ns - NOON) / HOUR, (block.end_ns - NOON) / HOUR) for block in report.rows]
    return spans[::-1]


# --- where blocks begin and end


def test_the_days_document():
    """`sessionlog.rows/1`; floats to nine digits, which every machine agrees on."""
    text = json.dumps(fold_hours(*day_of_blocks(), limits=day_of_limits()).to_dict(), allow_nan=False)
    document = json.loads(text, parse_float=lambda number: float(f"{float(number):.9g}"))
    check_golden("blocks.json", json.dumps(document, indent=2) + "\n")


@pytest.mark.parametrize(
    ("moments", "spans"),
    [
        ([], []),
        ([0], [(0, 5)]),
        ([59 * MINUTE], [(0, 5)]),
        ([-1], [(-1, 4)]),
        ([30 * MINUTE, 5 * HOUR - 1], [(0, 5)]),
        ([30 * MINUTE, 5 * HOUR], [(0, 5), (5, 10)]),
        ([0, 5 * HOUR + 59 * MINUTE, 10 * HOUR + MINUTE], [(0, 5), (5, 10), (10, 15)]),
        ([0, 4 * HOUR, 11 * HOUR + MINUTE], [(0, 5), (11, 16)]),
        ([0, 30 * HOUR], [(0, 5), (30, 35)]),
    ],
)
def test_a_block_begins_at_the_full_hour_of_its_first_record(moments, spans):
    """The next one begins with the first record at or after its end."""
    assert hours_of(fold_hours(at(*moments))) == spans


def test_blocks_may_be_longer_or_shorter():
    """In whole hours, so that an hour is never divided."""
    one = at(0, 90 * MINUTE, 8 * HOUR)
    assert hours_of(fold_hours(one, hours=1)) == [(0, 1), (1, 2), (8, 9)]
    assert hours_of(fold_hours(one, hours=24)) == [(0, 24)]


def test_before_1970_hours_are_floored_too():
    """Towards the past, not towards zero."""
    report = fold_hours(session("s", record(time_ns=-1)))
    assert (report.rows[0].start_ns, report.rows[0].end_ns) == (-HOUR, 4 * HOUR)


def test_first_and_last_are_those_of_records():
    """The end of a block is planned, its last record is real."""
    [block] = fold_hours(at(7 * MINUTE, 61 * MINUTE)).rows
    assert (block.first_ns, block.last_ns) == (NOON + 7 * MINUTE, NOON + 61 * MINUTE)


def test_a_block_says_what_was_used():
    """Distinct sessions, models with the most output first, known and estimated cost apart."""
    one = session("a", record(model="small", output=1), record(model="large", output=9, cost_nano=5, failed=True))
    two = session("b", record(provider="stranger", model="nova", output=2))
    [block] = fold_hours(one, two).rows
    assert (block.sessions, block.requests, block.failed_requests) == (2, 3, 1)
    assert block.models == ("large", "nova", "small")
    assert (block.known_nano, block.estimated_nano, block.cost_is_partial) == (5, 14_000, True)
    assert block.total_tokens == 30 + 12


def test_newest_blocks_come_first(tmp_path):
    """And are the ones that a limit keeps."""
    write_log(tmp_path / "s.jsonl", start("01:00:00"), *[answered(f"{hour:02}:30:00") for hour in (1, 8, 15)])
    report = listed(tmp_path, limit=2)
    assert [block.start_ns // HOUR % 24 for block in report.rows] == [15, 8]
    assert (report.found_blocks, report.hidden_rows) == (3, 1)
    assert listed(tmp_path, limit=-1).hidden_rows == 3


def test_requests_without_a_time_are_told():
    """They are in no block."""
    report = fold_hours(session("s", record(time_ns=None), record(time_ns=None, requests=0), record()))
    assert (report.untimed_requests, [block.requests for block in report.rows]) == (1, [1])


# --- which blocks, of whom


def test_a_window_chooses_whole_blocks():
    """A block is in it when one of its records is; where blocks begin does not depend on it."""
    one = at(0, 4 * HOUR, 5 * HOUR, 20 * HOUR)
    report = fold_hours(one, start_ns=NOON + 3 * HOUR, end_ns=NOON + 6 * HOUR)
    assert (hours_of(report), [block.requests for block in report.rows]) == ([(0, 5), (5, 10)], [1, 2])
    assert hours_of(fold_hours(one, start_ns=NOON + HOUR, end_ns=NOON + 3 * HOUR)) == []


def test_a_filter_does_not_move_blocks():
    """A subscription's window begins with the first request of all, also when one project is looked at."""
    mine = session("m", record(time_ns=NOON + 3 * HOUR), record(time_ns=NOON + 6 * HOUR), project="/mine")
    report = fold_hours(at(0, project="/other"), mine, filters={"project": ("/mine",)})
    assert (hours_of(report), [block.requests for block in report.rows]) == ([(0, 5), (6, 11)], [1, 1])


def test_blocks_are_of_claude_code_where_it_was_used():
    """Else of all sources; asked for others they are those of the others."""
    claude, codex = at(0, source="claude-code"), at(2 * HOUR, 7 * HOUR, source="codex")
    both = fold_hours(claude, codex)
    assert (both.sources, hours_of(both)) == (("claude-code",), [(0, 5)])
    assert fold_hours(codex, session("n", record())).sources == ("codex", "native")
    assert hours_of(fold_hours(claude, codex, filters={"source": ("codex",)})) == [(2, 7), (7, 12)]
    everyone = fold_hours(claude, codex, filters={"source": ("*",)})
    assert (everyone.sources, hours_of(everyone)) == (("claude-code", "codex"), [(0, 5), (7, 12)])


def test_where_only_others_have_blocks_they_are_of_all():
    """Usage is never hidden behind a default; a wish for one source stays as it is."""
    claude, codex = at(0, source="claude-code"), at(9 * HOUR, source="codex")
    report = fold_hours(claude, codex, start_ns=NOON + 8 * HOUR)
    assert (report.sources, hours_of(report)) == (("codex",), [(9, 14)])
    active = fold_hours(claude, codex, only_active=True)
    assert (active.sources, hours_of(active)) == (("claude-code", "codex"), [(9, 14)])
    project = fold_hours(claude, at(9 * HOUR, source="codex", project="/p"), filters={"project": ("/p",)})
    assert (project.sources, hours_of(project)) == (("codex",), [(9, 14)])
    wish = fold_hours(claude, codex, start_ns=NOON + 8 * HOUR, filters={"source": ("claude-code",)})
    assert (wish.sources, wish.rows) == (("claude-code",), ())


def test_where_nobody_has_blocks_the_usual_source_is_named():
    """The title says of whom there are none."""
    claude, codex = at(0, source="claude-code"), at(HOUR, source="codex")
    for options in ({"start_ns": NOON + 8 * HOUR}, {"only_active": True, "now_ns": NOON + 20 * HOUR}):
        report = fold_hours(claude, codex, **options)
        assert (report.sources, report.rows, report.active) == (("claude-code",), (), None)
    assert fold_hours(codex, start_ns=NOON + 8 * HOUR).sources == ("codex",)


def test_sources_are_those_of_whole_blocks():
    """A record before the window is in a block that the window touches, and so is its source."""
    report = fold_hours(at(0, source="codex"), at(2 * HOUR, source="pi"), start_ns=NOON + HOUR)
    assert (report.sources, [block.requests for block in report.rows]) == (("codex", "pi"), [2])


# --- the present


@pytest.mark.parametrize(("now", "active"), [(0, True), (5 * HOUR - 1, True), (5 * HOUR, False)])
def test_a_block_is_active_while_the_present_is_in_it(now, active):
    """From its start to its end, which is outside."""
    report = fold_hours(at(0), now_ns=NOON + now)
    assert [block.is_active for block in report.rows] == [active]
    assert (report.active is not None) is active


def test_what_is_later_than_the_present_has_not_happened():
    """A present in the past sees no later record, model, source or word on a limit."""
    early = session("e", record(time_ns=NOON + MINUTE), source="codex")
    late = session("l", record(time_ns=NOON + 2 * HOUR, model="large"), record(time_ns=NOON + 9 * HOUR), source="pi")
    limits = [("codex", Limit(time_ns=NOON + at * HOUR, name=f"at {at}", used_percent=1)) for at in (1, 2)]
    then, known = fold_hours(early, late, limits=limits, now_ns=NOON + HOUR), fold_hours(early, now_ns=NOON + HOUR)
    assert (then.rows, then.active, then.sources) == (known.rows, known.active, ("codex",))
    assert [one.name for one in then.limits] == ["at 1"]
    assert fold_hours(late, now_ns=NOON).sources == ()


def test_the_pace_is_measured_from_the_blocks_start():
    """Half of the block has gone: twice as much at its end."""
    one = session("s", record(time_ns=NOON + MINUTE, input=30, output=120, cache_read=600, cost_nano=5 * 10**8))
    active = fold_hours(one, now_ns=NOON + 150 * MINUTE).active
    assert active.left_ms == 150 * 60_000
    assert (active.tokens_per_minute, active.uncached_tokens_per_minute) == (5.0, 1.0)
    assert active.cost_usd_per_hour == pytest.approx(0.2)
    assert active.projected_tokens == 1500
    assert active.projected_cost_usd == pytest.approx(1.0)


@pytest.mark.parametrize(("age", "known"), [(0, False), (MINUTE - 1, False), (MINUTE, True)])
def test_there_is_no_pace_before_a_minute_has_gone(age, known):
    """The first request alone would promise billions."""
    active = fold_hours(at(30 * MINUTE), now_ns=NOON + 30 * MINUTE + age).active
    assert (active.tokens_per_minute is not None) is known
    assert (active.projected_tokens is not None) is known
    assert (active.cost_usd_per_hour is not None) is known
    assert active.left_ms == (5 * HOUR - 30 * MINUTE - age) // 1_000_000


def test_an_unknown_cost_has_no_pace():
    """It is not 0."""
    active = fold_hours(session("s", record(provider="stranger")), now_ns=NOON + HOUR).active
    assert (active.cost_usd_per_hour, active.projected_cost_usd) == (None, None)


def test_only_the_active_block(tmp_path):
    """The others are counted, not listed; none at all is no error."""
    write_log(tmp_path / "s.jsonl", start("01:00:00"), answered("01:30:00"), answered("15:30:00"))
    evening = datetime(2026, 11, 20, 18, tzinfo=UTC)
    report = listed(tmp_path, only_active=True, now=evening)
    assert ([block.is_active for block in report.rows], report.found_blocks, report.hidden_rows) == ([True], 2, 0)
    later = listed(tmp_path, only_active=True, now=evening + timedelta(days=1))
    assert (later.rows, later.active, later.found_blocks) == ((), None, 2)


def test_a_limit_does_not_stop_the_present(tmp_path):
    """No row is shown, but there is an active block."""
    write_log(tmp_path / "s.jsonl", start("11:00:00"), answered("11:30:00"))
    report = listed(tmp_path, limit=0, now=datetime(2026, 11, 20, 12, tzinfo=UTC))
    assert (report.rows, report.active.block.requests) == ((), 1)


# --- wrong questions, damage, nothing


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"hours": 0}, InvalidQuery),
        ({"hours": 745}, InvalidQuery),
        ({"window": "sometime"}, InvalidWindow),
        ({"tz": "Mars/Olympus"}, InvalidWindow),
        ({"filters": {"tool": ["x"]}}, InvalidQuery),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_read(tmp_path, options, error):
    """Hours of scanning must not end in a typing error."""
    write_log(tmp_path / "s.jsonl", start(), answered())
    steps = []
    with pytest.raises(error):
        listed(tmp_path, progress=lambda *step: steps.append(step), **options)
    assert steps == []


def test_where_nothing_is_the_report_is_empty(tmp_path):
    """No blocks, and a document all the same."""
    report = listed(tmp_path / "nothing")
    assert report == BlockReport(hours=5, priced_from=report.priced_from, provenance=dict.fromkeys(PROVENANCE, 0))
    assert json.loads(json.dumps(report.to_dict()))["active"] is None


def test_a_report_says_what_it_skipped(tmp_path):
    """As for usage."""
    write_log(tmp_path / "s.jsonl", start(), b"garbage\n", answered())
    report = listed(tmp_path)
    assert (report.problem_count, report.to_dict()["problems"]["count"], len(report.rows)) == (1, 1, 1)


def test_sums_beyond_64_bits_saturate():
    """A hostile log cannot end a report."""
    one = session("s", *[record(input=2**53, output=2**53, provider="p")] * 1100)
    report = fold_hours(one, now_ns=NOON + HOUR)
    assert report.rows[0].input_tokens == 2**63 - 1
    json.dumps(report.to_dict(), allow_nan=False)


# --- laws


MOMENTS = st.integers(NOON - 30 * HOUR, NOON + 30 * HOUR) | st.sampled_from([NOON + n * HOUR for n in range(-12, 12)])
TIMED = st.lists(
    st.lists(st.builds(record, time_ns=MOMENTS, input=st.integers(0, 9), cost_nano=st.none() | st.integers(0, 5)), max_size=5),
    max_size=4,
)  # fmt: skip


def sessions_of(lists):
    return [session(f"s{number}", *records) for number, records in enumerate(lists)]


def naive(moments, length):
    """Start → times, walking from record to record."""
    blocks = {}
    start_ns = None
    for moment in sorted(moments):
        if start_ns is None or moment >= start_ns + length * HOUR:
            start_ns = moment - moment % HOUR
        blocks.setdefault(start_ns, []).append(moment)
    return blocks


@LAW
@given(TIMED, st.integers(1, 30))
def test_blocks_equal_a_naive_walk_over_the_records(lists, hours):
    """SQL over hours and a loop over records agree on every block."""
    moments = [one.time_ns for records in lists for one in records]
    report = fold_hours(*sessions_of(lists), hours=hours)
    found = {block.start_ns: (block.requests, block.first_ns, block.last_ns) for block in report.rows}
    assert found == {begin: (len(times), times[0], times[-1]) for begin, times in naive(moments, hours).items()}


@LAW
@given(TIMED | UNTIMELY.map(lambda some: [one.records for one in some]), st.randoms(use_true_random=False))
def test_blocks_hold_every_record_once(lists, random):
    """The sums of all blocks, and what has no time, are those of usage, whatever the order of logs."""
    sessions = sessions_of(lists)
    report = fold_hours(*random.sample(sessions, len(sessions)))
    assert report.to_dict() == fold_hours(*sessions).to_dict()
    timed = [session(one.session_id, *[r for r in one.records if r.time_ns is not None]) for one in sessions]
    totals, whole = fold(*timed).totals, fold(*sessions).totals
    for name in SUMMED:
        assert sum(getattr(block, name) for block in report.rows) == getattr(totals, name)
    for name in ("known_nano", "estimated_nano"):
        assert sum(getattr(block, name) or 0 for block in report.rows) == (getattr(totals, name) or 0)
    assert sum(block.requests for block in report.rows) + report.untimed_requests == whole.requests


@LAW
@given(st.lists(st.integers(-500, 500)), st.integers(1, 48))
def test_blocks_do_not_overlap_and_leave_no_hour_out(hours, length):
    """Every hour is in exactly one block, and every block begins with one."""
    starts = block_starts(hours, length)
    assert all(later - earlier >= length for earlier, later in pairwise(starts))
    assert set(starts) <= set(hours)
    assert all(sum(begin <= hour < begin + length for begin in starts) == 1 for hour in hours)


def test_the_present_of_the_day_is_in_a_block():
    """The made-up day has an active block, else its texts would show none."""
    report = fold_hours(*day_of_blocks())
    assert report.active.block.start_ns <= PRESENT_NS < report.active.block.end_ns
    assert PRESENT_NS - report.active.block.last_ns > SECOND
    assert report.found_blocks == 5
