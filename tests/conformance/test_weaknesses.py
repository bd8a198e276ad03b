"""The 35 weaknesses of the original, one test each: here those of its reports.

A test is called by the number of its weakness. Those of writing and of showing stand in the neighbouring files.
"""

import re
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.routing import scan_routing_quality
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.events.tokens import TokenUsage
from sessionlog.pricing import DEFAULT_PRICING, PriceBook
from sessionlog.reader import stream
from tests.conformance.command import run
from tests.conformance.logs import answer, end, line, start, write_log

LEFT_OUT = {
    26: "prices are not asked while an agent runs: a log keeps what was recorded, and a report estimates the rest",
    32: "there is no Result object; a tool's duration is written by the timer, in the unit its name says",
    34: "there is no hub of live events: `follow` reads the file, and the file keeps them",
    35: "a log is one session, so nothing rotates it",
}
"""Parts of a weakness that have no counterpart here, and why; the rest of each has its test."""

GOOD = [line(0, *start(provider="bad")), line(1, *end())]


def only_row(path, **options):
    """The one row of a report."""
    (row,) = aggregate_usage(path, **options).rows
    return row


def test_every_weakness_has_a_test():
    """1 to 35."""
    texts = [path.read_text("utf-8") for path in Path(__file__).parent.glob("test_weaknesses*.py")]
    numbers = {int(number) for text in texts for number in re.findall(r"^def test_(\d\d)_", text, re.MULTILINE)}
    assert numbers == set(range(1, 36))
    assert LEFT_OUT.keys() <= numbers


@pytest.mark.parametrize(
    ("damaged", "named"),
    [
        ([GOOD[0], b"invalid json here\n", GOOD[1]], "s.jsonl:2 not_json"),
        ([*GOOD, b'{"session_id":"s","seq":2,"type":"tool.ca'], "s.jsonl:3 torn_tail"),
        ([b"\xef\xbb\xbf", *GOOD], ""),
        ([*GOOD, bytes(32)], "s.jsonl:3 nul_bytes"),
        ([GOOD[0].replace(b"2026-04-09T10:00:00Z", b"yesterday"), GOOD[1]], ""),
        ([GOOD[0].replace(b'"seq": 0', b'"seq": "0"'), GOOD[1]], ""),
        ([b"[1, 2]\n", *GOOD], "s.jsonl:1 not_object"),
    ],
    ids=["garbage", "torn tail", "byte order mark", "NUL tail", "bad ts", "string seq", "array"],
)
def test_02_a_bad_line_costs_that_line(damaged, named, tmp_path):
    """The report has the file's session and the others, and names the line that was skipped."""
    write_log(tmp_path, *damaged)
    write_log(tmp_path, start(provider="good"), end(), name="t")
    report = aggregate_usage(tmp_path)
    assert {row.provider: row.known_cost_usd for row in report.rows} == {"bad": 0.25, "good": 0.25}
    assert [named in str(problem) for problem in report.problems] == [True] * bool(named)


def test_03_sessions_without_end_are_counted(tmp_path):
    """A killed session has the tokens of its responses and is called unfinished."""
    row = only_row(write_log(tmp_path, start(), answer(cost_usd=0.1)))
    assert (row.sessions, row.unfinished_sessions, row.input_tokens, row.known_cost_usd) == (1, 1, 10, 0.1)
    young = only_row(tmp_path, now=datetime(2026, 4, 9, 10, 5, tzinfo=UTC))
    assert (young.unfinished_sessions, young.running_sessions) == (1, 1)


@pytest.mark.parametrize(
    ("begin", "finish", "input_tokens"),
    [
        ({}, {"tokens": {"input": 10.0, "output": 5}}, 10),
        ({}, {"tokens": {"input": 10.5, "output": 5}}, 0),
        ({"reasoning": "ultra"}, {}, 10),
        ({}, {"cost_usd": "0.25"}, 10),
        ({"metadata": {"branch": ["main", 1]}}, {}, 10),
    ],
    ids=["float tokens", "fraction of a token", "unknown reasoning", "string cost", "metadata of any type"],
)
def test_04_a_field_of_another_type_costs_at_most_that_field(begin, finish, input_tokens, tmp_path):
    """The session stays, and so does everything else it says."""
    row = only_row(write_log(tmp_path, start(**begin), end(**finish)))
    assert (row.sessions, row.input_tokens, row.output_tokens, row.known_cost_usd) == (1, input_tokens, 5, 0.25)


def test_05_known_money_is_shown_beside_unknown(tmp_path):
    """A session without a cost is counted and hides nothing."""
    write_log(tmp_path, start(), end(), name="known")
    write_log(tmp_path, start(), end(cost_usd=None), name="unknown")
    report = aggregate_usage(tmp_path)
    for row in (*report.rows, report.totals):
        assert (row.known_cost_usd, row.cost_usd, row.unknown_cost_sessions) == (0.25, 0.25, 1)


def test_06_inclusive_input_does_not_halve_the_hit_rate(tmp_path):
    """OpenAI's usage counts cached tokens as input as well; the rate is of the prompt."""
    usage = {"input": 1000, "output": 5, "cache_read": 972}
    row = only_row(write_log(tmp_path, start(provider="openai", model="gpt-5.4"), end(tokens=usage)))
    assert (row.cache_hit_rate, row.input_tokens) == (0.972, 28)
    exclusive = write_log(tmp_path, start(provider="anthropic"), end(tokens=usage), name="t")
    assert only_row(exclusive).cache_hit_rate == 972 / 1972


def test_07_totals_mean_the_same_for_every_provider(tmp_path):
    """The reported total is not used: it has cached tokens in it or not."""
    usage = {"input": 10, "output": 5, "cache_read": 900, "cache_write": 20, "total": 15}
    assert only_row(write_log(tmp_path, start(provider="anthropic"), end(tokens=usage))).total_tokens == 935
    usage = {"input": 910, "output": 5, "cache_read": 900, "total": 915}
    assert only_row(write_log(tmp_path, start(provider="openai"), end(tokens=usage))).total_tokens == 915


def test_08_a_harness_is_a_provider(tmp_path):
    """Who ran is in the log, and in the report."""
    assert only_row(write_log(tmp_path, start(provider="", resolved_harness="codex"), end())).provider == "codex"


def test_09_each_response_has_its_own_model(tmp_path):
    """A session that failed over to another model has a row for each; the served name can be asked for."""
    events = [start(), answer(attempt={"requested_model": "a"}), answer(attempt={"requested_model": "b"}, model="b-2")]
    path = write_log(tmp_path, *events)
    report = aggregate_usage(path)
    assert [(row.model, row.sessions, row.requests) for row in report.rows] == [("a", 1, 1), ("b", 1, 1)]
    assert report.totals.sessions == 1
    served = aggregate_usage(path, by=("response_model",))
    assert [row.keys["response_model"] for row in served.rows] == ["b-2", "unknown"]


def test_10_a_window_cuts_a_session_at_its_responses(tmp_path):
    """What was answered before midnight belongs to the day before, whenever the session began."""
    times = [f"2026-04-{day}T{clock}:00Z" for day, clock in (("08", "23:58"), ("08", "23:59"), ("09", "00:01"))]
    path = write_log(tmp_path, (*start(), times[0]), (*answer(), times[1]), (*answer(), times[2]))
    days = [aggregate_usage(path, window=f"2026-04-{day}").totals for day in ("07", "08", "09")]
    assert [(day.sessions, day.requests, day.input_tokens) for day in days] == [(0, 0, 0), (1, 1, 10), (1, 1, 10)]


def test_11_generation_speed_leaves_tools_out(tmp_path):
    """Tokens per second of the model are its output by its latency."""
    row = only_row(write_log(tmp_path, start(), answer(latency_ms=100), end(duration_ms=10_000)))
    assert (row.generation_tokens_per_second, row.output_tokens_per_second) == (50.0, 0.5)


def test_12_a_clock_that_was_set_back_takes_no_time_away(tmp_path):
    """No duration is negative."""
    write_log(tmp_path, start(), (*end(duration_ms=None), "2026-04-09T09:59:57Z"))
    write_log(tmp_path, start(), end(), name="t")
    assert only_row(tmp_path).duration_ms == 1000


def test_13_a_log_is_read_once_in_bounded_memory(tmp_path, monkeypatch, outside, capsys):
    """A report opens each file once, makes no event of a line, and does not hold the file."""
    path = write_log(tmp_path, start(), *[("progress", {"message": "x" * 4000})] * 2000, end())
    path.write_bytes(path.read_bytes().replace(b'": ', b'":').replace(b', "', b',"'))  # the original has no blanks
    opened, decoded = [], []
    monkeypatch.setattr(
        stream.files, "open_log", lambda p, real=stream.files.open_log, **how: opened.append(p) or real(p, **how)
    )
    monkeypatch.setattr(stream, "decode_line", lambda raw, real=stream.decode_line: decoded.append(raw) or real(raw))
    tracemalloc.start()
    row = only_row(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (row.sessions, len(opened), len(decoded)) == (1, 2, 0)  # opened once to see whose it is, once to read it
    assert peak < path.stat().st_size / 4
    assert run(capsys, "usage", str(tmp_path), "--json").code == 0
    assert len(opened) == 4


def pinned(**more) -> tuple[str, dict]:
    """An override of the model, against the router's choice."""
    return "override", {"axes_overridden": ["model"], "match_per_axis": {"model": False}, **more}


def test_19_overrides_have_the_outcome_of_their_session(tmp_path):
    """The outcome that never reached the disk is that of the session's end."""
    (cell,) = scan_routing_quality(str(write_log(tmp_path, start(), pinned(), end()))).override_class_breakdown
    assert (cell.success_outcomes, cell.unknown_outcomes) == (1, 0)


def test_20_acceptance_counts_sessions(tmp_path):
    """Two overrides are one session; a rejected pin is no override; one that cannot be read accepts nothing."""
    write_log(tmp_path, start(), pinned(), pinned(), end(), name="twice")
    write_log(tmp_path, start(), ("rejected_override", {"rejection_error": "unknown model"}), name="rejected")
    write_log(tmp_path, start(), ("override", {"axes_overridden": "model"}), end(), name="unreadable")
    write_log(tmp_path, start(), end(), name="accepted")
    scan = scan_routing_quality(str(tmp_path))
    assert (scan.total_requests, scan.accepted_requests, scan.auto_acceptance_rate) == (4, 1, 0.25)
    assert (scan.total_overrides, scan.rejected_overrides, scan.undecodable_overrides) == (2, 1, 1)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [("error", "failed"), ("iteration_limit", "stalled"), ("budget_halted", "stalled"), ("cancelled", "cancelled")],
)
def test_21_outcomes_know_the_words_of_session_end(status, outcome, tmp_path):
    """No status of session.end becomes unknown."""
    path = write_log(tmp_path, start(), pinned(), end(status=status))
    (cell,) = scan_routing_quality(str(path)).override_class_breakdown
    assert getattr(cell, f"{outcome}_outcomes") == 1


def test_25_estimates_know_caches_and_spellings(tmp_path):
    """Cached tokens have their own price, ids any case and prefix, and a report uses it all."""
    usage = {"input": 0, "output": 0, "cache_read": 1_000_000}
    events = [
        start(provider="anthropic", model="claude-sonnet-4-20250514"),
        answer(usage=usage),
        end(cost_usd=None, tokens=usage),
    ]
    row = only_row(write_log(tmp_path, *events))
    assert row.estimated_cost_usd == pytest.approx(0.30)  # a tenth of the price of input
    plain = DEFAULT_PRICING.estimate_cost("claude-sonnet-4-20250514", 0, 0, 1_000_000)
    assert plain == pytest.approx(3.0)  # the small table names no cache price: as input, never as nothing
    spent, book = TokenUsage(input=1000, output=500), PriceBook.load()
    prices = {
        name: book.price("openai", name, spent, None) for name in ("gpt-4o", "GPT-4o", "openai/gpt-4o", "nonsense")
    }
    assert prices.pop("nonsense") is None
    assert prices.pop("gpt-4o") == prices.pop("GPT-4o") == prices.pop("openai/gpt-4o") > 0


def test_26_configured_prices_charge_cached_tokens_once(tmp_path):
    """Input that includes the cache is normalised before it is priced, and a planning turn is a request like others."""
    prices = PriceBook.load({"openai/mine": {"input": 10, "output": 0, "cache_read": 1}})
    usage = {"input": 1_000_000, "output": 0, "cache_read": 900_000}
    events = [start(provider="openai", model="mine"), answer(usage=usage), answer(usage=usage, planning=True)]
    row = only_row(write_log(tmp_path, *events), prices=prices)
    assert row.estimated_cost_usd == pytest.approx(2 * (0.1 * 10 + 0.9 * 1))
    assert row.requests == 2
