"""Cells and the records at the edges of a window are the records of the window, wherever it is cut."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.ledger.book import Book
from sessionlog.ledger.histogram import counts_of
from sessionlog.ledger.quarter_hours import parts
from sessionlog.ledger.rows import bucket_of
from sessionlog.ledger.schema import QUARTER_NS
from sessionlog.ledger.verify import compare_derived
from sessionlog.sources.protocol import LogScan
from tests.ledger.entries import PRICES, book_of, record, session
from tests.ledger.little_home import LittleHome
from tests.profiles import examples

QUARTER = 1_795_176_000 * 10**9 // QUARTER_NS * QUARTER_NS
FARTHEST = 2**63 - 1

near = st.integers(-3, 3).map(lambda quarters: QUARTER + quarters * QUARTER_NS)
moments = st.builds(int.__add__, near, st.sampled_from((-1, 0, 1, 7, QUARTER_NS // 2)))
bounds = st.one_of(st.none(), moments, st.sampled_from((-FARTHEST, 0, FARTHEST, 10**20, -(10**20))))
told = st.builds(
    record,
    time_ns=st.one_of(st.none(), moments, st.sampled_from((-1, 0, -QUARTER_NS, 4 * 10**18))),
    model=st.sampled_from("ab"),
    output=st.integers(0, 9),
    input=st.integers(0, 9),
    cost_nano=st.one_of(st.none(), st.integers(1, 9)),
    latency_ms=st.one_of(st.none(), st.integers(1, 900)),
    failed=st.booleans(),
    key=st.sampled_from(("", "", "k", "l")),
)
SUMS = "SUM(requests), SUM(failed), SUM(input), SUM(output), SUM(cost_nano), SUM(unpriced), SUM(generated)"


def summed(rows):
    """(session, label) → its sums, its first and last moment, and its latencies."""
    found = {}
    for session_id, label, *sums, first, last, latencies in rows:
        found[session_id, label] = (*sums, first, last, dict(counts_of(latencies)))
    return found


def of_parts(book, start, end):
    """What the table expression gives."""
    table, parameters = parts(start, end)
    sql = f"""SELECT session_id, label_id, {SUMS}, MIN(first_ns), MAX(last_ns), group_concat(latencies, '')
              FROM {table} r GROUP BY 1, 2"""
    return summed(book.query(sql, parameters))


def of_records(book, start, end):
    """The same, of single records and in Python."""
    found = {}
    rows = book.query(
        """SELECT session_id, label_id, time_ns, requests, failed, input, output, cost_nano,
               (priced AND cost_nano IS NULL AND estimate_nano IS NULL) * requests, latency_bucket FROM records""",
        {},
    )
    for session_id, label, time_ns, requests, failed, input_, output, cost, unpriced, bucket in rows:
        if time_ns is None:
            if (start, end) != (None, None):
                continue
        elif (start is not None and time_ns < start) or (end is not None and time_ns >= end):
            continue
        known = found.setdefault((session_id, label), [0, 0, 0, 0, None, 0, 0, None, None, {}])
        generated = output if bucket is not None else 0
        for index, value in enumerate((requests, failed, input_, output, cost, unpriced, generated)):
            if value is not None:
                known[index] = (known[index] or 0) + value
        if time_ns is not None:
            known[7] = time_ns if known[7] is None else min(known[7], time_ns)
            known[8] = time_ns if known[8] is None else max(known[8], time_ns)
        if bucket is not None:
            known[9][bucket] = known[9].get(bucket, 0) + 1
    return {name: tuple(values) for name, values in found.items()}


@examples(200)
@given(st.lists(st.lists(told, max_size=4), min_size=1, max_size=3), bounds, bounds)
def test_any_window_is_the_sum_of_its_records(sessions, start, end):
    """Half open, at any nanosecond, with either end open, turned round, or beyond what a database can hold."""
    book = book_of(*(session(f"s{number}", *records) for number, records in enumerate(sessions)))
    assert of_parts(book, start, end) == of_records(book, start, end)
    book.close()


@examples(200)
@given(st.lists(st.tuples(st.lists(told, max_size=3), st.integers(0, 2), st.booleans()), min_size=1, max_size=5))
def test_totals_of_a_log_that_grows_are_those_of_all_its_records(steps):
    """Each time only what is new is summed: also where it replaces the last records, repeats earlier ones, or is old."""
    book = Book(PRICES)
    for records, replaced, is_asked in steps:
        book.add_scan(LogScan(sessions=(session("s", *records),), replaced_count=replaced))
        if is_asked:
            book.reconcile()
    book.reconcile()
    assert of_parts(book, None, None) == of_records(book, None, None)
    assert not list(compare_derived(book))
    book.close()


def test_of_a_log_that_grows_earlier_totals_are_not_summed_again():
    """They stay as they are, even if they are wrong."""
    book = book_of(session("s", record(time_ns=QUARTER), record(time_ns=QUARTER + QUARTER_NS)))
    book.reconcile()
    book.connection.execute("UPDATE quarter_hours SET input = -1")
    book.add_scan(LogScan(sessions=(session("s", record(time_ns=QUARTER + QUARTER_NS + 5)),)))
    assert book.query("SELECT input FROM quarter_hours ORDER BY time_ns", {}) == [(-1,), (20,)]
    book.close()


def test_a_window_of_whole_quarters_asks_cells_alone():
    """No record is looked at."""
    table, parameters = parts(QUARTER, QUARTER + QUARTER_NS)
    assert ("responses" in table, sorted(parameters)) == (False, ["inner_end", "inner_start"])
    assert parts(None, None) == ("quarter_hours", {})


def test_a_window_inside_one_quarter_asks_records_alone():
    """There is no whole cell in it."""
    book = book_of(session("s", record(time_ns=QUARTER + 5), record(time_ns=QUARTER + 6)))
    assert [row[0] for row in of_parts(book, QUARTER + 5, QUARTER + 6).values()] == [1]
    book.close()


def test_a_window_that_is_turned_round_is_empty():
    """Also where only its end cuts a quarter hour."""
    book = book_of(session("s", record(time_ns=QUARTER)))
    assert [of_parts(book, start, QUARTER + 1) for start in (QUARTER + QUARTER_NS, FARTHEST)] == [{}, {}]
    book.close()


def test_copies_that_do_not_count_are_at_no_edge_of_a_window():
    """Neither at its beginning nor at its end."""
    early, late = QUARTER + 5, QUARTER + QUARTER_NS + 5
    book = book_of(session("s", record(time_ns=early, key="k", output=9), record(time_ns=late, key="k", output=1)))
    assert [row[0] for row in of_parts(book, early, late + 1).values()] == [1]
    assert of_parts(book, early + 1, late + 1) == {}
    book.close()


def test_reports_of_windows_add_up(tmp_path):
    """Two windows that meet are the whole, at any nanosecond where they meet."""
    home = LittleHome(tmp_path)
    home.append("s/n1.jsonl", [("answer", number, number + 1) for number in range(8)])
    whole = aggregate_usage(env=home.env, jobs=1).totals.output_tokens
    for second in range(0, 180, 7):
        cut = datetime(2026, 11, 10, 10, second // 60, second % 60, 123_457, tzinfo=UTC).isoformat()
        halves = [aggregate_usage(env=home.env, jobs=1, window=window) for window in (f"..{cut}", f"{cut}..")]
        assert sum(report.totals.output_tokens for report in halves) == whole


def test_a_latency_is_a_letter_of_its_cell():
    """Joined texts are sums of histograms."""
    book = book_of(session("s", *(record(time_ns=QUARTER, latency_ms=ms) for ms in (1, 50, 50, 0, None))))
    [(latencies,)] = book.query("SELECT latencies FROM quarter_hours", {})
    assert counts_of(latencies) == {bucket_of(1): 1, bucket_of(50): 2, bucket_of(0): 1}
    book.close()
