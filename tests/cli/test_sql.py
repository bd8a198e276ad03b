"""`sessionlog sql`: the ledger is brought up to date, asked, and shown in every form."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from queue import Empty
from types import SimpleNamespace

import pytest

from sessionlog.analytics.sql import result_stream
from sessionlog.analytics.sql.question import LedgerQuery
from sessionlog.analytics.sql.views import VIEWS
from sessionlog.cli import main
from sessionlog.errors import InvalidQuery
from sessionlog.settings import load_settings

MODELS = "SELECT model, count(*) AS calls, sum(total_tokens) AS tokens FROM usage GROUP BY model ORDER BY model"


@pytest.fixture
def ours(home, logs, monkeypatch):
    """The three sessions, in our own place."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    return logs


def test_the_ledger_is_read_first(cli, ours, record):
    """What was written since the last question is in the answer."""
    assert cli("sql", "SELECT count(*) AS n FROM sessions", "--json").json["rows"] == [{"n": 3}]
    record(ours, "s-more")
    assert cli("sql", "SELECT count(*) AS n FROM sessions", "--json", "--no-sync").json["rows"] == [{"n": 3}]
    assert cli("sql", "SELECT count(*) AS n FROM sessions", "--json").json["rows"] == [{"n": 4}]


def test_every_form_says_the_same(cli, ours):
    """Exact numbers in all of them."""
    document = cli("sql", MODELS, "--json").json
    assert document == {
        "schema": "sessionlog.sql/2",
        "columns": ["model", "calls", "tokens"],
        "rows": [{"model": name, "calls": 1, "tokens": 1000} for name in ("claude-opus-4-5", "gpt-5.3-codex", "qwen3.6-27b")],
    }  # fmt: skip
    rows = [list(map(str, row.values())) for row in document["rows"]]
    assert list(csv.reader(io.StringIO(cli("sql", MODELS, "--csv").out)))[1:] == rows
    assert [line.split() for line in cli("sql", MODELS).out.splitlines()[1:]] == rows
    lines = cli("sql", MODELS, "--markdown").out.splitlines()
    assert lines[:2] == ["| model | calls | tokens |", "|---|---:|---:|"]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]] == rows


def test_values_of_every_type(cli, ours):
    """NULL is nothing, a BLOB is written as SQL writes it, and what JSON has no number for is null."""
    question = "SELECT NULL AS n, X'00ff' AS b, 1e999 AS i, 0.1 AS f, 9007199254740993 AS w"
    [row] = cli("sql", question, "--json").json["rows"]
    assert row == {"n": None, "b": "X'00FF'", "i": None, "f": 0.1, "w": 9007199254740993}
    assert cli("sql", question, "--csv").out.splitlines()[1] == ",X'00FF',inf,0.1,9007199254740993"
    assert cli("sql", question).out.split() == [*"nbifw", "–", "X'00FF'", "inf", "0.1", "9007199254740993"]
    assert cli("sql", question, "--markdown").out.splitlines()[2] == "| – | X'00FF' | inf | 0.1 | 9007199254740993 |"


@pytest.mark.parametrize("form", [[], ["--csv"], ["--markdown"], ["--json"]])
def test_what_comes_from_logs_is_harmless(cli, ours, form):
    """Values and the names of columns."""
    ran = cli("sql", "SELECT char(27, 91, 50, 74) || '=1' AS \"\x1b]0;x\x07\", '<b>|`' AS b", *form)
    assert ran.code == 0
    assert all(char.isprintable() or char == "\n" for char in ran.out)


def test_formulas_are_no_formulas(cli, ours):
    """In CSV, as everywhere."""
    assert cli("sql", "SELECT '=1+1' AS a, -5 AS b", "--csv").out.splitlines()[1] == "'=1+1,-5"


def test_a_table_leaves_out_columns_and_says_so(cli, ours, monkeypatch):
    """The last ones; `--wide` shows all, and other forms have them anyway."""
    monkeypatch.setenv("COLUMNS", "60")
    ran = cli("sql", "SELECT * FROM usage")
    assert "hidden columns: " in ran.out
    assert max(map(len, ran.out.splitlines())) <= 60
    assert "hidden columns" not in cli("sql", "SELECT * FROM usage", "--wide").out
    assert set(cli("sql", "SELECT * FROM usage", "--json").json["columns"]) == set(VIEWS[0].column_names)


def test_a_column_of_zeros_is_shown(cli, ours):
    """What was asked for is in the answer."""
    assert cli("sql", "SELECT 'a' AS a, 0 AS zero, NULL AS none").out.split() == ["a", "zero", "none", "a", "0", "–"]


def test_a_long_table_is_cut_and_says_so(cli, ours):
    """CSV and JSON have all rows."""
    question = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1001) SELECT i FROM n"
    lines = cli("sql", question).out.splitlines()
    assert len(lines) == 1002
    assert lines[-1].startswith("only the first 1,000 rows")
    assert len(cli("sql", question, "--csv").out.splitlines()) == 1002


def test_no_rows_are_no_error(cli, ours):
    """The names of the columns are there."""
    ran = cli("sql", "SELECT model, session FROM usage WHERE 0")
    assert (ran.code, ran.out.split(), ran.err) == (0, ["model", "session"], "")


def test_what_sqlite_says_is_wrong_usage(cli, ours):
    """With the columns that there are."""
    ran = cli("sql", "SELECT modle FROM usage")
    assert (ran.code, ran.out) == (2, "")
    assert "no such column: modle" in ran.err
    assert all(f"{view.name}: {', '.join(view.column_names)}" in ran.err for view in VIEWS)
    ran = cli("sql", "DELETE FROM main.all_sessions")
    assert (ran.code, ran.out) == (2, "")
    assert "only reading is allowed" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give a query"),
        (["SELECT 1", "--json", "--csv"], "choose only one of --json and --csv"),
        (["--schema", "--csv"], "--schema is text or --json"),
        (["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n", "--timeout", "0.01"], "longer"),
    ],
)  # fmt: skip
def test_wrong_usage_is_said(cli, ours, arguments, said):
    """Exit code 2."""
    ran = cli("sql", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_the_schema_names_every_column(cli, home):
    """As text and as JSON, without a ledger."""
    text = cli("sql", "--schema").out
    document = cli("sql", "--schema", "--json").json
    assert [view["name"] for view in document["views"]] == ["usage", "sessions", "tools"]
    for view in document["views"]:
        assert all(f"  {name}" in text for name in view["columns"])
    assert list(home.iterdir()) == []


def test_a_ledger_that_cannot_be_used_is_said(cli, ours, tmp_path):
    """Exit code 3, and the file stays as it is."""
    odd = tmp_path / "odd.sqlite"
    odd.write_bytes(b"no database at all " * 100)
    for more in ([], ["--no-sync"]):
        ran = cli("sql", "SELECT 1", "--ledger", odd, *more)
        assert (ran.code, ran.out) == (3, "")
        assert str(odd) in ran.err
    assert odd.read_bytes() == b"no database at all " * 100
    ran = cli("sql", "SELECT 1", "--ledger", tmp_path / "none", "--no-sync")
    assert (ran.code, "there is no ledger yet" in ran.err) == (3, True)


def test_help_has_an_example(home, capsys):
    """That works."""
    assert main(["sql", "--help"]) == 0
    assert 'sessionlog sql "SELECT model' in capsys.readouterr().out


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
TRAPS = (
    "SELECT instr(zeroblob(60000000), zeroblob(30000000) || x'01')",
    "SELECT instr(zeroblob(4000000), zeroblob(2000000) || x'01')",
    f"{ENDLESS} SELECT count(*) FROM n",
    f"{ENDLESS} SELECT i, hex(zeroblob(100)) FROM n",
    f"{ENDLESS} SELECT i, zeroblob(2000000) FROM n",
    f"{ENDLESS} SELECT i, hex(zeroblob(500)) AS h FROM n ORDER BY h",
    f"SELECT {', '.join(['zeroblob(4000000)'] * 1000)}",
)
_RUN = """
import sys
from sessionlog.cli import main

code = main(sys.argv[1:])
sys.stdout.flush()
sys.stderr.write("peak " + open("/proc/self/status").read().partition("VmHWM:")[2])
sys.exit(code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process used")
@pytest.mark.parametrize(
    ("trap", "form"),
    [*((trap, ["--csv"]) for trap in TRAPS), *((TRAPS[4], form) for form in ([], ["--json"], ["--markdown"]))],
)
def test_no_question_takes_more_memory_than_it_may_or_goes_on(cli, ours, trap, form):
    """Whatever it is: the process ends, where SQLite alone would compute for hours."""
    cli("usage")
    command = [sys.executable, "-c", _RUN, "sql", "--no-sync", "--timeout", "0.5", *form, trap]
    with open(os.devnull, "wb") as nowhere:
        ended = subprocess.run(command, stdout=nowhere, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 2 or (not form and ended.returncode == 0)  # a table shows the first rows
    assert int(ended.stderr.rpartition("peak ")[2].split()[0]) < 200 << 10
    assert "Traceback" not in ended.stderr


def test_a_question_is_given_up_after_its_time(cli, ours, monkeypatch, home):
    """The looks for a result are as long together as the time that it was given, whatever the machine is doing."""
    cli("usage")
    looks = []

    class Looks(result_stream.SimpleQueue):
        def get(self, timeout=None):
            if timeout is None:  # the thread's
                return super().get()
            try:
                found = super().get(timeout=0.02)
            except Empty:
                looks.append(timeout)
                clock.now += timeout
                raise
            looks.clear()  # the file is open: from now on it counts
            return found

    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now, thread_time=lambda: 0.0, time_ns=time.time_ns)
    monkeypatch.setattr(result_stream, "SimpleQueue", Looks)
    monkeypatch.setattr(result_stream, "time", clock)
    query = LedgerQuery(load_settings().ledger_path, f"{ENDLESS} SELECT count(*) FROM n")
    with pytest.raises(InvalidQuery, match=r"longer than 2\.5 seconds"):
        result_stream.ResultStream(query, seconds=2.5)
    assert sum(looks) == pytest.approx(2.5)


def test_rows_are_written_as_they_come(cli, ours):
    """A JSON document that is written in pieces is the one that would be written whole."""
    for sql in ("SELECT 1 AS a WHERE 0", "SELECT 1 AS a", "SELECT value AS a, 'x' AS b FROM json_each('[1, 2]')"):
        text = cli("sql", sql, "--json").out
        assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_events_are_asked_in_every_form(cli, ours):
    """What was said and done, in the forms of any query."""
    sql = "SELECT session, count(*) FILTER (type = 'llm.response') AS answers, false AS f FROM events GROUP BY 1 ORDER BY 1"
    rows = cli("sql", "--events", sql, "--json").json["rows"]
    assert [row["answers"] for row in rows] == [1, 1, 1]
    [first, *_] = csv.DictReader(io.StringIO(cli("sql", "--events", sql, "--csv").out))
    assert first == {"session": rows[0]["session"], "answers": "1", "f": "false"}
    assert cli("sql", "--events", sql).out.splitlines()[0].split() == ["session", "answers", "f"]
    assert cli("sql", "--events", sql, ours / f"{rows[0]['session']}.jsonl", "--json").json["rows"] == rows[:1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM events, range(100000) a, range(100000) b, range(1000) c WHERE a.range + b.range + c.range = 7",
        "SELECT levenshtein(repeat('ab', 200000), repeat('ba', 200000)), count(*) FROM events",
    ],
)
def test_ctrl_c_ends_a_query_of_events(ours, tmp_path, sql):
    """At once, also in a call of a function that DuckDB cannot interrupt; nothing is left of the temporary database."""
    env = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "sessionlog", "sql", "--events", sql]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    finally:
        signal.signal(signal.SIGINT, before)
    with running:
        until = time.monotonic() + 30
        while not list((tmp_path / "temporary").rglob("events.duckdb")) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        shown = running.communicate(timeout=30)
    assert (running.returncode, shown) == (130, (b"", b""))
    assert time.monotonic() - began < 5
    assert list((tmp_path / "temporary").iterdir()) == []


def test_events_without_a_query_show_the_relations(cli, home):
    """With examples, and without reading a log."""
    for arguments in (["sql", "--events"], ["sql", "--events", "--schema"]):
        out = cli(*arguments).out
        assert all(
            name in out for name in ("events  one row", "messages  one", "tool_calls  one", "Examples:", "response_key")
        )
    assert [view["name"] for view in cli("sql", "--events", "--schema", "--json").json["views"]] == [
        "events", "messages", "tool_calls",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SELECT 1", "--since", "7d"], "--since is for --events"),
        (["SELECT 1", "folder"], "folder: a PATH is for --events"),
        (["--events", "SELECT 1", "--no-sync"], "--no-sync is for the ledger"),
        (["--events", "SELECT modle FROM events"], "tool_calls: time, source"),
        (["--events", "COPY (SELECT 1) TO 'x'"], "only reading is allowed"),
        (["--events", "SELECT * FROM read_text('/etc/hostname')"], "disabled by configuration"),
        (["--events", "SELECT count(*) FROM range(1000000000) a, range(1000000) b", "--timeout", "0.05"], "longer than 0.05"),
    ],
)  # fmt: skip
def test_wrong_queries_of_events_name_the_next_step(cli, ours, arguments, said):
    """Exit code 2, nothing on stdout."""
    ran = cli("sql", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_events_name_what_is_damaged_or_missing(cli, ours):
    """As other commands do; an empty answer has the places that were searched."""
    (ours / "odd.jsonl").write_text('{"session_id":"s","seq":0,"type":"progress","ts":"","data":{}}\nnot JSON\n{}\n')
    assert "odd.jsonl:2" in cli("sql", "--events", "SELECT count(*) FROM events").err
    assert "no sessions" in cli("sql", "--events", "SELECT count(*) FROM events", "--session", "nowhere").err.replace(
        "no session in", "no sessions in"
    )


def test_events_without_their_extra_are_one_sentence(cli, ours, monkeypatch):
    """Nothing but DuckDB is missing."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "sessionlog.analytics.sql.events", raising=False)
    ran = cli("sql", "--events", "SELECT 1")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("\n") == 1
    assert "pip install 'sessionlog[parquet]'" in ran.err


@pytest.mark.parametrize("form", [[], ["--csv"], ["--markdown"], ["--json"]])
def test_texts_of_events_are_harmless(cli, ours, form):
    """Control characters, formulas and markup of a log are escaped at the last step."""
    said = json.dumps("\x1b]0;x\x07=cmd|' <b>")
    (ours / "evil.jsonl").write_text(
        f'{{"session_id":"s","seq":0,"type":"llm.response","ts":"","data":{{"content":{said}}}}}\n'
    )
    ran = cli("sql", "--events", "SELECT text, text AS \"\x1b[2J\" FROM messages WHERE session = 'evil'", *form)
    assert ran.code == 0
    assert all(char.isprintable() or char == "\n" for char in ran.out)
