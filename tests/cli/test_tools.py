"""`sessionlog tools`: options reach the report, the forms agree, and wrong questions are refused by name."""

import csv
import io
import os

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.tool_row import COLUMNS
from sessionlog.analytics.tools import KEYS
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.testing import FixedClock

NAMES = names_of(COLUMNS)

NOW = ("--now", "2026-11-21T12:00:00Z", "--tz", "UTC")
FORMS = (["--json"], ["--csv"], ["--markdown"])


@pytest.fixture
def calls(tmp_path):
    """Two sessions of two days: four calls of bash, one of an MCP server, one that failed."""
    folder = tmp_path / "calls"
    for day, status in ((19, "success"), (20, "error")):
        log = SessionLogger(folder, f"s-{day}", clock=FixedClock(f"2026-11-{day}T10:00:00Z"), work_dir=f"/src/{status}")
        for _ in range(2):
            log.emit("tool.call", {"tool": "bash", "output": "12 passed", "duration_ms": 500})
        if status == "error":
            log.emit("tool.call", {"tool": "mcp__github__search", "output": "x" * 50, "error": "no network"})
        log.end(status)
        log.close()
    return folder


def test_the_table_says_the_answer_first(cli, calls):
    """A title, one row a tool with the most calls first, and the total."""
    lines = cli("tools", calls, *NOW).out.splitlines()
    assert lines[0] == "Tools · all time · 5 calls · 1 error"
    assert [line.split()[:3] for line in lines[2:5]] == [
        ["SERVER", "TOOL", "CALLS"], ["built-in", "bash", "4"], ["github", "search", "1"],
    ]  # fmt: skip
    assert lines[6].split()[:2] == ["total", "5"]


def test_options_reach_the_report(cli, calls):
    """Each option changes the rows as it says."""
    ask = ("tools", calls, "--json", *NOW)

    def tools(*options):
        return [(row["tool"], row["calls"]) for row in cli(*ask, *options).json["rows"]]

    assert tools() == [("bash", 4), ("search", 1)]
    assert tools("--tool", "SEARCH") == tools("--server", "git*") == [("search", 1)]
    assert tools("--server", "built-in", "--server", "github") == tools()
    assert tools("--status", "error") == tools("--project", "*/error") == [("bash", 2), ("search", 1)]
    assert tools("--since", "2026-11-19", "--until", "2026-11-19") == [("bash", 2)]
    assert tools("--source", "native", "--sort", "output_bytes") == [("search", 1), ("bash", 4)]
    assert tools("--sort", "-tool", "--limit", "1") == [("search", 1)]
    days = cli(*ask, "--by", "day, agent").json["rows"]
    assert [(row["day"], row["agent"], row["calls"]) for row in days] == [
        ("2026-11-19", "main", 2), ("2026-11-20", "main", 3),
    ]  # fmt: skip


def test_all_forms_agree(cli, calls):
    """JSON, CSV and Markdown tell the same numbers; CSV ends with the total."""
    report = cli("tools", calls, "--json").json
    assert (report["schema"], report["group_by"]) == ("sessionlog.tools/1", ["server", "tool"])
    rows = list(csv.DictReader(io.StringIO(cli("tools", calls, "--csv").out)))
    assert [row["server"] for row in rows] == ["built-in", "github", "TOTAL"]
    for row, told in zip(rows, [*report["rows"], report["totals"]], strict=True):
        assert {name: row[name] for name in NAMES} == {
            name: "" if told[name] is None else repr(told[name]) for name in NAMES
        }
    markdown = cli("tools", calls, "--markdown").out.splitlines()
    assert [line.split(" | ")[0] for line in markdown[2:]] == ["| built-in", "| github", "| **total**"]


def test_the_help_lists_every_group_key(cli):
    """Nobody has to look for them."""
    text = cli("tools", "--help").out
    assert [name for name in KEYS if name not in text] == []


@pytest.mark.parametrize(
    ("options", "says"), [(["--by", "model"], "server, tool"), (["--sort", "cost_usd"], "output_bytes"), (["--since", "x"], "7d")]
)  # fmt: skip
def test_a_wrong_word_exits_2_with_the_right_ones(cli, calls, options, says):
    """What there is, is in the message."""
    ran = cli("tools", calls, *options)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_one_form_at_a_time(cli, calls):
    """As everywhere."""
    assert cli("tools", calls, "--json", "--csv").err == "sessionlog: choose only one of --json and --csv\n"


@pytest.mark.parametrize("form", [[], *FORMS], ids=" ".join)
def test_sessions_without_tools_are_no_error(cli, logs, form):
    """Every form has an empty shape; the note says that there are logs, and who lists them."""
    ran = cli("tools", logs, *form)
    assert (ran.code, ran.err) == (0, f"no tool calls in {logs}; `sessionlog sessions PATH` lists what is there\n")
    assert ran.out


@pytest.mark.parametrize("form", [[], *FORMS], ids=" ".join)
def test_nothing_there_says_where(cli, tmp_path, form):
    """An empty folder is named again."""
    ran = cli("tools", tmp_path, *form)
    assert ran.code == 0
    assert f"no sessions in {tmp_path}" in ran.err


def test_nothing_fits_is_said_apart(cli, calls):
    """There are calls, only none that was asked for."""
    assert f"in {calls} fits the time and the filters" in cli("tools", calls, "--tool", "none").err


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_what_a_limit_leaves_out_is_noted_beside_data(cli, calls, form):
    """How many, on stderr."""
    assert cli("tools", calls, *form, "--limit", "1").err == "1 more row (--limit)\n"
    assert cli("tools", calls, *form, "--limit", "2").err == ""


def test_damage_never_fails_a_report_but_strict_does(cli, calls):
    """The report is the same; only the exit code says 3."""
    path = calls / "s-20.jsonl"
    path.write_bytes(b"garbage\n" + path.read_bytes())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    relaxed, strict = cli("tools", calls), cli("tools", calls, "--strict")
    assert (relaxed.code, strict.code) == (0, 3)
    assert relaxed.out == strict.out
    assert "1 damaged piece skipped (s-20.jsonl:1)" in relaxed.out
    assert "1 damaged piece skipped (s-20.jsonl:1)" in cli("tools", calls, "--csv").err


def test_wide_hides_nothing(cli, monkeypatch, calls):
    """Every column, on lines as long as they need."""
    monkeypatch.setenv("COLUMNS", "50")
    narrow, wide = cli("tools", calls).out, cli("tools", calls, "--wide").out
    assert max(map(len, narrow.splitlines())) <= 50
    assert "(--wide)" in narrow
    assert "(--wide)" not in wide
    assert "MEAN" in wide
