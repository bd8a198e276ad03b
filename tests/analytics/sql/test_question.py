"""Questions in SQL: they see what reports see, and can change nothing."""

import _thread
import hashlib
import os
import sqlite3
import threading
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.sql.question import LedgerQuery, ask_sql
from sessionlog.analytics.sql.result_stream import ResultStream
from sessionlog.analytics.sql.views import VIEWS
from sessionlog.analytics.tools import aggregate_tools
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import InvalidQuery, LedgerUnusable
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import ToolUse
from tests.ledger.entries import NOON, PRICES, record, session
from tests.sources.homes import all_cases, build_home, environment

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * 10**9
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
def ledger(tmp_path):
    """A ledger with two sessions: one of two responses and a call, and one that does not count."""
    path = str(tmp_path / "ledger.sqlite")
    call = ToolUse(time_ns=NOON, tool="grep", key="c1", finished=True, duration_ms=12.5, output_bytes=99)
    one = session("s-1", record(), record(time_ns=NOON + 1500, cost_nano=2_500_000_000, model="n"), tools=(call,))
    book = open_ledger(path, PRICES)
    book.add_scan(LogScan(sessions=(one,)))
    book.add_scan(LogScan(sessions=(session("s-2", record(), counted=False, status=None),)))
    book.reconcile()
    book.close()
    return path


def values(ledger, sql, **options):
    """The rows of an answer."""
    return list(ask_sql(ledger, sql, now_ns=NOW_NS, **options).rows)


def test_usage_is_a_row_per_response_that_counts(ledger):
    """Times are texts, money is dollars, and a session that does not count is left out."""
    sql = """SELECT time, session, provider, model, status, requests, input_tokens, total_tokens, known_cost_usd,
        estimated_cost_usd, cost_usd FROM usage ORDER BY time"""
    assert values(ledger, sql) == [
        ("2026-11-20T12:00:00.000000Z", "s-1", "acme", "m", "success", 1, 10, 15, None, 3e-05, 3e-05),
        ("2026-11-20T12:00:00.000001Z", "s-1", "acme", "n", "success", 1, 10, 15, 2.5, None, 2.5),
    ]


def test_sessions_and_tools_are_rows_too(ledger):
    """A session has its sums, also one that does not count; a call has its name and its size."""
    sql = "SELECT session, status, models, requests, output_tokens, cost_usd, counted FROM sessions ORDER BY session"
    assert values(ledger, sql) == [
        ("s-1", "success", "m,n", 2, 10, 2.50003, 1),
        ("s-2", "unfinished", "m", 1, 5, 3e-05, 0),
    ]
    assert values(ledger, "SELECT tool, session, finished, duration_ms, output_bytes FROM tools") == [
        ("grep", "s-1", 1, 12.5, 99)
    ]


def test_the_tables_themselves_are_there(ledger):
    """Under the database's name, where a view has taken theirs."""
    assert values(ledger, "SELECT session FROM main.sessions ORDER BY id") == [("s-1",), ("s-2",)]
    assert values(ledger, "SELECT count(*) FROM responses r JOIN labels l ON l.id = r.label_id") == [(3,)]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_column_that_is_listed_can_be_selected(ledger, view):
    """And `*` gives exactly those."""
    assert ask_sql(ledger, f"SELECT * FROM {view.name}").columns == view.column_names


@pytest.mark.parametrize("case", all_cases()[::7])
def test_the_views_say_what_reports_say(case, tmp_path):
    """The sums of `usage`, the list of `sessions`, the calls of `tools`."""
    env = environment(case, build_home(case, tmp_path))
    path = str(tmp_path / "ledger.sqlite")
    book = open_ledger(path, PRICES)
    refresh(book, env)
    book.close()
    told = aggregate_usage(None, env=env, now=NOW, prices=PRICES).totals
    sums = """SELECT count(DISTINCT source || session), coalesce(sum(requests), 0), coalesce(sum(failed), 0),
        coalesce(sum(total_tokens), 0), sum(known_cost_usd), sum(estimated_cost_usd) FROM usage"""
    [(_, *counts, known, estimated)] = values(path, sums)
    assert counts == [told.requests, told.failed_requests, told.total_tokens]
    assert (known, estimated) == (pytest.approx(told.known_cost_usd), pytest.approx(told.estimated_cost_usd))
    listed = list_sessions(None, env=env, now=NOW, prices=PRICES).rows
    sql = "SELECT source, session, status, requests, total_tokens, duration_ms, archived FROM sessions ORDER BY 1, 2"
    assert values(path, sql) == sorted(
        (one.source, one.session, one.status, one.requests, one.total_tokens, one.duration_ms, 0) for one in listed
    )
    calls = aggregate_tools(None, env=env, now=NOW).totals
    assert values(path, "SELECT count(*), coalesce(sum(failed), 0) FROM tools") == [(calls.calls, calls.errors)]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM main.all_sessions",
        "UPDATE files SET path = 'x'",
        "INSERT INTO meta VALUES ('a', 'b')",
        "DROP TABLE quarter_hours",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t (x)",
        "CREATE TEMP TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = DELETE",
        "SELECT * FROM pragma_table_info('files')",
        "ATTACH '{other}' AS other",
        "DETACH main",
        "VACUUM INTO '{other}'",
        "REINDEX",
        "ANALYZE",
        "BEGIN IMMEDIATE",
        "SAVEPOINT s",
        "SELECT load_extension('{other}')",
        "SELECT fts3_tokenizer('simple')",
        "WITH x AS (SELECT 1) DELETE FROM files",
        "EXPLAIN DELETE FROM files",
    ],
)
def test_nothing_but_reading_is_allowed(ledger, tmp_path, sql):
    """Neither the ledger nor any other file is changed, attached, made or loaded, and the message says why."""
    before = fingerprint(ledger)
    with pytest.raises(InvalidQuery, match=r"only reading is allowed|no such function|not authorized"):
        ask_sql(ledger, sql.format(other=tmp_path / "other"))
    assert fingerprint(ledger) == before
    assert not (tmp_path / "other").exists()


def fingerprint(path):
    """What is in a ledger."""
    connection = sqlite3.connect(path)
    try:
        return hashlib.sha256("".join(connection.iterdump()).encode()).hexdigest()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT modle FROM usage", "no such column: modle"),
        ("SELECT * FROM uses", "no such table: uses"),
        ("SELECT", "incomplete input"),
        ("SELEC 1", "syntax error"),
        ("", "no question"),
        ("-- nothing", "no question"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT ?", "bindings"),
        ("SELECT '\0'", "null character|unrecognized token"),
        ("SELECT '\ud800'", "no text"),
        ("SELECT zeroblob(900000000)", "too big"),
        ("SELECT abs(-9223372036854775808)", "overflow"),
    ],
)
def test_what_sqlite_cannot_do_is_said(ledger, sql, said):
    """As SQLite says it, never as an error of another kind."""
    with pytest.raises(InvalidQuery, match=said):
        ask_sql(ledger, sql)


def test_a_question_that_takes_too_long_is_given_up(ledger):
    """The message says how long it was let."""
    with pytest.raises(InvalidQuery, match=r"longer than 0\.02 seconds"):
        ask_sql(ledger, ENDLESS, seconds=0.02)


ONE_CALL = "SELECT instr(zeroblob(1000000), zeroblob(500000) || x'01')"
"""A call of a function that takes seconds, during which SQLite looks at nothing."""


def test_a_question_that_is_one_long_call_is_given_up(ledger):
    """The caller does not wait for the call's end."""
    started = time.monotonic()
    with pytest.raises(InvalidQuery, match=r"longer than 0\.1 seconds"):
        ask_sql(ledger, ONE_CALL, seconds=0.1)
    assert time.monotonic() - started < 2


def test_the_time_that_a_caller_takes_does_not_count(ledger, monkeypatch):
    """A pager may stand still for hours."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, thread_time=lambda: 0.0, time_ns=time.time_ns)
    monkeypatch.setattr("sessionlog.analytics.sql.result_stream.time", clock)
    with ResultStream(LedgerQuery(ledger, ROWS), seconds=0.3) as found:
        for _, row in zip(range(20_000), found, strict=False):
            if row[0] in (5, 9_000):
                clock.now += 3600
        assert row == (20_000,)


def test_an_answer_that_is_returned_whole_has_a_limit(ledger):
    """The message names the forms that have none."""
    with pytest.raises(
        InvalidQuery, match=r"larger than 32 MiB after [\d,]+ rows; add a LIMIT, or let --csv or --json"
    ):
        ask_sql(ledger, ROWS, seconds=50)


def test_a_closed_answer_ends_its_thread(ledger):
    """Nothing works on for nobody."""
    with ResultStream(LedgerQuery(ledger, ROWS)) as found:
        assert next(iter(found)) == (1,)
    deadline = time.monotonic() + 5
    while found._thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not found._thread.is_alive()


def test_an_interrupt_ends_a_question(ledger):
    """Also one that comes while SQLite works."""
    timer = threading.Timer(0.05, _thread.interrupt_main)
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ask_sql(ledger, ENDLESS, seconds=20)
    timer.join()
    assert time.monotonic() - started < 10


def test_a_limit_says_that_there_is_more(ledger):
    """Exactly as many rows as asked for are no more."""
    sql = "SELECT value FROM json_each('[1, 2, 3]')"
    assert ask_sql(ledger, sql, limit=2).rows == ((1,), (2,))
    assert [ask_sql(ledger, sql, limit=limit).more for limit in (2, 3, None)] == [True, False, False]


def test_columns_of_one_name_are_told_apart(ledger):
    """So that every row is an object, too."""
    assert ask_sql(ledger, "SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS a").columns == ("a", "b", "a:2", "a:3")


def test_text_that_is_none_is_mended(ledger):
    """A cast may make anything a text."""
    assert values(ledger, "SELECT CAST(X'61FF' AS TEXT), X'61FF'") == [("a\ufffd", b"a\xff")]


def test_times_before_1970_and_none_at_all(tmp_path):
    """Rounded down, as everywhere; what has no time has NULL."""
    path = str(tmp_path / "ledger.sqlite")
    book = open_ledger(path, PRICES)
    book.add_scan(LogScan(sessions=(session("s", record(time_ns=-1_500), record(time_ns=None)),)))
    book.reconcile()
    book.close()
    assert values(path, "SELECT time FROM usage ORDER BY time") == [(None,), ("1969-12-31T23:59:59.999998Z",)]


def test_hostile_sums_do_not_fail(tmp_path):
    """The list of sessions stays a list, whatever a log counts."""
    path = str(tmp_path / "ledger.sqlite")
    book = open_ledger(path, PRICES)
    most = 2**63 - 1
    book.add_scan(LogScan(sessions=(session("s", *[record(cost_nano=most, requests=most, output=10**15)] * 3),)))
    book.reconcile()
    book.close()
    [(requests, cost)] = values(path, "SELECT requests, cost_usd FROM sessions")
    assert requests == most
    assert cost == pytest.approx(most / 1e9)


def test_without_a_ledger_there_is_no_answer(tmp_path):
    """Nothing is made, and what is there and is none is left alone."""
    path = tmp_path / "ledger.sqlite"
    with pytest.raises(LedgerUnusable, match="there is no ledger yet"):
        ask_sql(str(path), "SELECT 1")
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"")
    with pytest.raises(LedgerUnusable, match="nothing in it"):
        ask_sql(str(path), "SELECT 1")
    path.write_bytes(b"no database at all, " * 100)
    with pytest.raises(LedgerUnusable, match="not a database"):
        ask_sql(str(path), "SELECT 1")


def test_another_programs_database_is_not_asked(tmp_path):
    """Its tables are not ours to show."""
    path = str(tmp_path / "other.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(LedgerUnusable, match="another program's"):
        ask_sql(path, "SELECT 1")


def test_a_question_sees_the_ledger_while_another_process_writes(ledger):
    """Readers do not wait for writers."""
    writer = sqlite3.connect(ledger, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM main.all_sessions")
    assert values(ledger, "SELECT count(*) FROM sessions") == [(2,)]
    writer.execute("ROLLBACK")
    writer.close()
