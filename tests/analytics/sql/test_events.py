"""SQL over events: the same events and sums as the reader's, only reading, and no value that a log can hold breaks it."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from sessionlog.analytics.sql.event_logs import EventSelection, choose_logs
from sessionlog.analytics.sql.event_relations import DESCRIPTIONS, EXAMPLES, RELATIONS
from sessionlog.analytics.sql.events import EventQuery, load_events, used_columns
from sessionlog.analytics.sql.result_stream import ResultStream, read_result
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.window import UsageWindow
from sessionlog.errors import InvalidQuery
from sessionlog.events.envelope import Event
from sessionlog.events.times import parse_time
from sessionlog.ledger.scanning import source_of
from sessionlog.transcript.event_files import Wanted, write_rows
from sessionlog.transcript.event_rows import COLUMNS
from tests.sources.homes import all_cases, build_home, environment

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")


def query(sql, *paths, **selection):
    """The rows of a query of logs, and the database that it asked."""
    chosen = EventSelection(**{"paths": [str(path) for path in paths] or None, "env": {}, "jobs": 1} | selection)
    with load_events(sql, chosen) as database, ResultStream(EventQuery(database.path, sql)) as found:
        return SimpleNamespace(rows=list(read_result(found).rows), columns=found.columns, database=database)


def line(seq, kind, ts="2026-11-20T10:00:00Z", **data):
    """A line of a native log."""
    return json.dumps({"session_id": "s", "seq": seq, "type": kind, "ts": ts, "data": data}) + "\n"


@pytest.fixture
def log(tmp_path):
    """A native log with a prompt, an answer, a call that failed, and a damaged line."""
    path = tmp_path / "logs" / "talk.jsonl"
    path.parent.mkdir()
    usage = {"input": 10, "output": 5, "cache_read": 3}
    asked = [{"role": "user", "content": "find the deadlock"}]
    path.write_text(
        line(0, "session.start", v=1, provider="anthropic", model="claude-opus-4-5", work_dir="/w/api")
        + line(1, "llm.request", messages=asked)
        + line(2, "llm.response", "2026-11-20T10:00:02Z", content="It is in the pool.", usage=usage, latency_ms=1500.5)
        + "not JSON\n"
        + line(3, "tool.call", "2026-11-20T10:00:03Z", tool="bash", id="c1", input={"command": "ls"}, error="exit 1")
        + line(4, "llm.request", "2026-11-20T10:00:04Z", messages=[*asked, {"role": "assistant", "content": "It is"}])
        + line(5, "session.end", "", status="success", tokens={"input": 12, "output": 5, "cache_read": 3})
    )
    return path


def sums_differ(case, folder):
    """The logs of a case whose rows have other sums than `usage` of that log, or other events than its reader."""
    env = environment(case, build_home(case, folder))
    for part in choose_logs(EventSelection(env=env)).parts:
        source = source_of(part.source)
        written = write_rows([part], Wanted(columns=("type", *TOKENS)), str(folder))
        rows = [orjson.loads(row) for file in written.files for row in Path(file.path).read_bytes().splitlines()]
        found = [sum(row.get(name) or 0 for row in rows) for name in TOKENS]
        totals = aggregate_usage([part.path, *source.subagent_logs(part.path)], env=env).totals
        read = (item for session in part.sessions for item in source.read(part.path, session))
        types = Counter(item.type for item in read if isinstance(item, Event))
        if found != [getattr(totals, name) for name in TOKENS] or types != Counter(row["type"] for row in rows):
            yield part.path


@pytest.mark.parametrize("case", [*{case.partition("/")[0]: case for case in all_cases()}.values()])
def test_rows_have_the_events_of_the_reader_and_the_sums_of_usage(case, tmp_path):
    """Of every agent one log without copies of others is counted exactly; the slow tier does that with all cases."""
    assert list(sums_differ(case, tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", all_cases())
def test_rows_of_every_case_have_the_sums_of_usage(case, tmp_path):
    """The same of every case of every agent."""
    assert list(sums_differ(case, tmp_path)) == []


def test_columns_have_what_was_logged(log):
    """Texts are the new ones, tokens of an end what is beyond the responses, and what is missing is NULL."""
    sql = """SELECT type, role, text, input_tokens, latency_ms, tool, failed, error, provider, project, status, time
        FROM events ORDER BY position"""
    start, asked, answer, call, again, end = query(sql, log).rows
    assert start[:3] == ("session.start", None, None)
    assert asked[:4] == ("llm.request", "user", "find the deadlock", None)
    assert answer[1:6] == ("assistant", "It is in the pool.", 10, 1500.5, None)
    assert answer[8:] == ("anthropic", "/w/api", None, "2026-11-20T10:00:02.000000Z")
    assert call[1:8] == ("tool", None, None, None, "bash", True, "exit 1")
    assert again[2] is None
    assert end[2:4] == (None, 2)
    assert end[10:] == ("success", None)


def test_views_and_examples_run(log):
    """`messages` has each text once, `tool_calls` the input as JSON; every example can be asked."""
    assert query("SELECT role, text FROM messages ORDER BY position", log).rows == [
        ("user", "find the deadlock"), ("assistant", "It is in the pool."),
    ]  # fmt: skip
    assert query("SELECT tool, input->>'command', output FROM tool_calls", log).rows == [("bash", "ls", None)]
    for example in EXAMPLES:
        query(example, log)
    for view in RELATIONS:
        assert query(f"SELECT * FROM {view.name}", log).columns == view.column_names
    assert set(DESCRIPTIONS) == set(COLUMNS)


def test_damage_is_counted(log):
    """The rest of the log is there."""
    database = query("SELECT count(*) FROM events", log).database
    assert (database.problem_count, database.problems[0].line, database.logs) == (1, 4, 1)
    missing = query("SELECT count(*) FROM events", log.parent / "none.jsonl")
    assert missing.rows == [(0,)]


def test_only_the_columns_of_a_query_are_read():
    """DuckDB's plan names them, also those of filters, views, joins and subqueries; a query of nothing reads no log."""
    assert used_columns("SELECT count(*) FROM events") == ()
    assert used_columns("SELECT source FROM events WHERE text ILIKE '%x%' ORDER BY time") == (
        "time",
        "time_ns",
        "source",
        "text",
    )
    assert used_columns("SELECT tool FROM tool_calls") == ("type", "tool")
    assert used_columns("WITH a AS (SELECT * FROM events) SELECT (SELECT max(b.seq) FROM events b) FROM a") == ("seq",)
    assert used_columns("SELECT a.log FROM events a JOIN events b USING (session)") == ("session", "log")
    assert used_columns("FROM events") == tuple(COLUMNS)
    assert used_columns("SELECT 1") is None


@pytest.mark.parametrize(
    "sql",
    [
        "", ";", "SELECT 1; SELECT 2", "COPY (SELECT 1) TO '{0}/x'", "COPY events TO '{0}/x'", "ATTACH '{0}/x'", "INSTALL httpfs",
        "LOAD httpfs", "SET enable_external_access = true", "SET lock_configuration = false", "PRAGMA database_list",
        "CREATE TABLE x (i INT)", "DROP TABLE events", "EXPORT DATABASE '{0}/x'", "CALL pragma_version()", "CHECKPOINT",
        "SELECT * FROM read_csv('{0}/secret')", "SELECT * FROM read_text('{0}/secret')", "SELECT * FROM '{0}/secret.csv'",
        "SELECT * FROM read_blob('{0}/secret')", "SELECT * FROM glob('{0}/*')", "SELECT * FROM parquet_metadata('{0}/secret')",
        "SELECT * FROM query('SELECT * FROM read_text(''{0}/secret'')')", "SELECT * FROM duckdb_secrets()",
        "WITH x AS (INSERT INTO events (seq) VALUES (1) RETURNING seq) FROM x", "EXPLAIN ANALYZE DELETE FROM events",
        "EXPLAIN ANALYZE COPY events TO '{0}/x'", "FROM connection", "SELECT getenv('HOME')", "SELECT modle FROM events", "\ud800",
    ],
)  # fmt: skip
def test_only_reading_events_is_allowed(log, tmp_path, sql):
    """No statement changes anything, and no function reads a file, a variable or the environment."""
    (tmp_path / "secret").write_text("secret words")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(InvalidQuery) as refused:
        query(sql.replace("{0}", str(tmp_path)), log)
    assert "secret words" not in str(refused.value)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_query_has_a_time_limit_and_leaves_nothing(log, tmp_path, monkeypatch):
    """The temporary database is private, and removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sql = "SELECT count(*) FROM range(1000000000) a, range(1000000) b"
    with load_events("FROM events", EventSelection(paths=[str(log)], env={}, jobs=1)) as database:
        assert os.stat(os.path.dirname(database.path)).st_mode & 0o077 == 0
        with pytest.raises(InvalidQuery, match=r"longer than 0\.1 seconds"):
            ResultStream(EventQuery(database.path, sql), seconds=0.1)
    assert [name for name in os.listdir(tmp_path) if name.startswith("sessionlog")] == []


def test_values_are_pythons_own(log):
    """Times in UTC, lists and structs as JSON, whole sums as whole numbers, and repeated names are numbered."""
    sql = "SELECT [1, 2] AS a, {'b': 1} AS a, sum(9223372036854775807::BIGINT) AS c, 1.5 AS d, DATE '2026-01-02' AS e, true AS f FROM range(2)"
    assert query(sql).columns == ("a", "a:2", "c", "d", "e", "f")
    assert query(sql).rows == [("[1,2]", '{"b":1}', 2 * (2**63 - 1), 1.5, "2026-01-02", True)]
    assert query("EXPLAIN SELECT 1").columns == ("plan",)


def test_hostile_values_are_rows(tmp_path):
    """NULs, lone surrogates, numbers beyond 64 bits, wrong types and deep nesting."""
    path = tmp_path / "odd.jsonl"
    deep = "[" * 100 + "]" * 100
    path.write_text(
        '{"session_id":"s","seq":99999999999999999999,"type":"tool.call","ts":"nonsense","data":{"tool":"a\\u0000b\\ud800"}}\n'
        '{"session_id":"s","seq":"x","type":"llm.response","ts":"","data":{"content":["a",{"text":"b"}],"usage":[],"latency_ms":true}}\n'
        f'{{"session_id":"s","seq":2,"type":"tool.call","ts":"9999-01-01T00:00:00Z","data":{{"input":{deep},"output":1e400}}}}\n'
        '{"session_id":"s","seq":3,"type":"llm.request","ts":"","data":{"messages":[1,{"role":"user","content":{}},null]}}\n'
        '{"session_id":"s","seq":4,"type":"x","ts":"","data":[1]}\n'
    )
    rows = query("SELECT tool, time, text, latency_ms, data FROM events ORDER BY position", path).rows
    assert len(rows) == 5
    assert rows[0][0].startswith("a\0b")
    assert rows[1][2:4] == ("a\nb", None)
    assert rows[4][4] == "[1]"


def test_windows_sources_projects_and_sessions_narrow(log):
    """Events without a time are in no window; a project is a glob in any case."""
    count = "SELECT count(*) FROM events"
    window = UsageWindow(start_ns=parse_time("2026-11-20T10:00:02Z"), end_ns=parse_time("2026-11-20T10:00:04Z"))
    assert query(count, log, window=window).rows == [(2,)]
    assert query(count, log, projects=["/W/*"]).rows == [(6,)]
    assert query(count, log, projects=["/other"]).rows == [(0,)]
    assert query(count, log, sources=["codex"]).rows == [(0,)]
    assert query(count, log, sessions=["tal"]).rows == [(6,)]
    assert query(count, log, sessions=["none"]).database.logs == 0
    with pytest.raises(InvalidQuery, match="no source"):
        query(count, log, sources=["codx"])


def test_the_ledger_knows_which_logs_are_outside(log, tmp_path):
    """Without paths a window reads only logs with a session in it, a day's margin aside."""
    from sessionlog.pricing.book import PriceBook

    (log.parent / "old.jsonl").write_text(line(0, "llm.response", "2025-01-01T00:00:00Z", usage={"input": 1}))
    given = {
        "env": {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(log.parent)}, "ledger": str(tmp_path / "l.sqlite"), "prices": PriceBook.load(),
    }  # fmt: skip
    window = UsageWindow(start_ns=parse_time("2026-11-01T00:00:00Z"), end_ns=None)
    found = query("SELECT DISTINCT session FROM events", window=window, **given)
    assert (found.rows, found.database.logs, found.database.left_out) == ([("talk",)], 1, 1)
    assert query("SELECT count(DISTINCT session) FROM events", **given).rows == [(2,)]


def test_processes_give_the_same_rows(log):
    """Two of them read what one reads."""
    for number in range(5):
        (log.parent / f"copy-{number}.jsonl").write_bytes(log.read_bytes())
    sql = "SELECT session, position, text FROM events ORDER BY ALL"
    assert query(sql, log.parent, jobs=2).rows == query(sql, log.parent).rows


def test_a_query_of_another_thread_can_be_cancelled(log):
    """Closing a result interrupts DuckDB."""
    sql = "SELECT a.range FROM range(1000000) a, range(1000000) b"
    with load_events("FROM events", EventSelection(paths=[str(log)], env={}, jobs=1)) as database:
        found = ResultStream(EventQuery(database.path, sql))
        assert next(iter(found)) is not None
        found.close()
        found._thread.join(5)
    assert not found._thread.is_alive()


def test_the_queries_of_the_page_run(log):
    """Each block of docs/ledger.md that asks for events."""
    page = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text("utf-8")
    queries = re.findall(r'^    sessionlog sql --events "(.*)"', page, re.MULTILINE)
    assert len(queries) == 4
    assert [len(query(sql, log).rows) for sql in queries] == [0, 1, 1, 1]


@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_a_log_without_room_for_its_steps_is_read_again(source, tmp_path, monkeypatch):
    """A reading keeps the steps of its scan; without room it decodes the rows again, with the same events."""
    logs = []
    for number, name in enumerate(one for one in all_cases()[::3] if one.startswith(f"{source}/")):
        home = build_home(name, tmp_path / str(number))
        logs += choose_logs(EventSelection(env=environment(name, home), sources=[source])).parts

    def events():
        return [str(item) for log in logs for one in log.sessions for item in source_of(source).read(log.path, one)]

    kept = events()
    monkeypatch.setattr("sessionlog.sources.kit._ROOM", -1)
    assert events() == kept
    assert len(kept) > 20


def test_a_row_has_only_the_wanted_columns(log, tmp_path):
    """And in these the same values as a row of all columns."""
    [part] = choose_logs(EventSelection(paths=[str(log)], env={})).parts

    def rows(columns):
        [file] = write_rows([part], Wanted(columns=columns), str(tmp_path)).files
        return [orjson.loads(line) for line in Path(file.path).read_bytes().splitlines()]

    whole = rows(tuple(COLUMNS))
    for columns in (("seq",), ("model",), ("error", "text"), ("input_tokens", "project"), ("time_ns", "status")):
        wanted = [{name: row[name] for name in columns if row.get(name) is not None} for row in whole]
        assert [{name: value for name, value in row.items() if value is not None} for row in rows(columns)] == wanted
