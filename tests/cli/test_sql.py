"""`sessionlog sql`: the ledger is brought up to date, asked, and shown in every form."""

import csv
import io
import json
import os
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
        def get(self, timeout):
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
