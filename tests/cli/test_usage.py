"""`sessionlog usage`: options reach the report, the forms agree, and wrong questions are refused by name."""

import csv
import io

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.conditions import KEYS
from sessionlog.analytics.usage_row import COLUMNS

NAMES = names_of(COLUMNS)


def test_the_table_says_the_answer_first(cli, logs):
    """A title, one row a provider and model, the total, and what the marks mean."""
    lines = cli("usage", logs, "--now", "2026-11-21T12:00:00Z").out.splitlines()
    assert lines[0] == "Usage · all time · 3 sessions, 1 running"
    assert [line.split()[0] for line in lines[2:6]] == ["PROVIDER", "openai", "anthropic", "vllm"]
    assert lines[7].split()[:2] == ["total", "3"]
    assert "~ estimated from" in lines[9]
    assert "vllm/qwen3.6-27b" in lines[10]


def test_groups_filters_order_and_limit_reach_the_report(cli, logs):
    """Each option changes the rows as it says."""
    ask = ("usage", logs, "--json", "--tz", "UTC")
    assert [row["day"] for row in cli(*ask, "--by", "day, model").json["rows"]] == [
        "2026-11-19",
        "2026-11-20",
        "2026-11-21",
    ]
    assert [row["provider"] for row in cli(*ask, "--provider", "OPEN*", "--provider", "vllm").json["rows"]] == [
        "openai",
        "vllm",
    ]
    assert [row["model"] for row in cli(*ask, "--model", "*opus*").json["rows"]] == ["claude-opus-4-5"]
    assert [row["model"] for row in cli(*ask, "--status", "error").json["rows"]] == ["gpt-5.3-codex"]
    assert cli(*ask, "--project", "/src/*", "--source", "native").json["totals"]["sessions"] == 3
    assert cli(*ask, "--project", "/elsewhere").json["rows"] == []
    costs = [row["cost_usd"] for row in cli(*ask, "--sort", "cost_usd", "--limit", "2").json["rows"]]
    assert costs == sorted(costs, reverse=True)
    assert cli(*ask, "--sort", "-model").json["rows"][0]["model"] == "qwen3.6-27b"
    assert cli(*ask, "--since", "2026-11-20", "--until", "2026-11-21").json["totals"]["sessions"] == 2


def test_all_forms_agree(cli, logs):
    """JSON, CSV and Markdown tell the same numbers, and no group at all is the total alone."""
    report = cli("usage", logs, "--json").json
    rows = list(csv.DictReader(io.StringIO(cli("usage", logs, "--csv").out)))
    assert list(rows[0]) == ["provider", "model", *NAMES]
    assert [row["provider"] for row in rows] == ["openai", "anthropic", "vllm", "TOTAL"]
    for row, told in zip(rows, [*report["rows"], report["totals"]], strict=True):
        assert {name: row[name] for name in NAMES} == {
            name: "" if told[name] is None else repr(told[name]) for name in NAMES
        }
    markdown = cli("usage", logs, "--markdown").out.splitlines()
    assert [line.count("|") for line in markdown] == [markdown[0].count("|")] * 6
    assert markdown[-1].startswith("| **total** |")
    assert cli("usage", logs, "--by", "", "--json").json["rows"] == [report["totals"]]


def test_wide_hides_nothing(cli, monkeypatch, logs):
    """Every column, even without a value, on lines as long as they need."""
    monkeypatch.setenv("COLUMNS", "60")
    narrow, wide = cli("usage", logs).out, cli("usage", logs, "--wide").out
    assert "(--wide)" in narrow
    assert "(--wide)" not in wide
    assert "REASONING" in wide.splitlines()[2]


@pytest.mark.parametrize("key", ["nonsense", "meta.", "model,nonsense"])
def test_a_wrong_group_key_exits_2_with_the_keys(cli, logs, key):
    """What there is to group by is in the message."""
    ran = cli("usage", logs, "--by", key)
    assert (ran.code, ran.out) == (2, "")
    assert [name for name in (*KEYS, "meta.KEY") if name not in ran.err] == []


def test_the_help_lists_every_group_key(cli):
    """Nobody has to look for them."""
    text = cli("usage", "--help").out
    assert [name for name in (*KEYS, "meta.KEY") if name not in text] == []


def test_a_group_key_twice_exits_2(cli, logs):
    """The same column twice is a slip."""
    ran = cli("usage", logs, "--by", "model,model")
    assert (ran.code, ran.out) == (2, "")
    assert "--by names a key twice" in ran.err


def test_a_wrong_column_to_sort_by_exits_2_with_the_columns(cli, logs):
    """Also with the sign that turns the order round."""
    for name in ("nonsense", "-nonsense"):
        ran = cli("usage", logs, "--sort", name)
        assert (ran.code, ran.out) == (2, "")
        assert "cost_usd" in ran.err


def test_an_empty_window_exits_2(cli, logs):
    """An end before its start is a slip, not an empty report."""
    ran = cli("usage", logs, "--since", "2026-11-21", "--until", "2026-11-19")
    assert (ran.code, ran.out) == (2, "")
    assert "is empty" in ran.err


def test_a_range_has_its_own_end(cli, logs):
    """`--since A..B` and `--until` contradict each other."""
    ran = cli("usage", logs, "--since", "2026-11-01..", "--until", "2026-11-19")
    assert (ran.code, ran.out) == (2, "")
    assert "2026-11-19" in ran.err


@pytest.mark.parametrize("command", ["usage", "sessions"])
def test_damage_never_fails_a_report_but_strict_does(cli, damaged, command):
    """The report is the same; only the exit code says 3."""
    relaxed, strict = cli(command, damaged), cli(command, damaged, "--strict")
    assert (relaxed.code, strict.code) == (0, 3)
    assert relaxed.out == strict.out
    assert "1 damaged piece skipped (s-failed.jsonl:2): `sessionlog check`" in relaxed.out


@pytest.mark.parametrize("command", ["usage", "sessions"])
def test_strict_is_content_with_whole_logs(cli, logs, command):
    """Exit code 0."""
    assert cli(command, logs, "--strict").code == 0


@pytest.mark.parametrize("command", ["usage", "sessions"])
@pytest.mark.parametrize("form", ["--json", "--csv", "--markdown"])
def test_damage_is_noted_beside_data(cli, damaged, command, form):
    """The table's line, on stderr."""
    ran = cli(command, damaged, form)
    assert ran.code == 0
    assert ran.err == "1 damaged piece skipped (s-failed.jsonl:2): `sessionlog check` shows it\n"


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("--model", "opus"), "no model is 'opus'; there is claude-opus-4-5: --model '*opus*' matches all of them"),
        (
            ("--provider", "antropic"),
            "no provider is 'antropic'; there is anthropic",
        ),
        (("--status", "eror"), "no status is 'eror'; there is error"),
    ],
    ids=str,
)
def test_a_filter_that_fits_nothing_names_the_nearest_values(cli, logs, words, note):
    """Behind the note that there is nothing; a pattern with a wildcard knows what it does."""
    assert cli("usage", logs, *words).err.splitlines()[-1] == note
    assert "there is" not in cli("usage", logs, words[0], f"*{words[1]}x*").err


def test_short_options(cli, logs):
    """The common ones have a letter."""
    long = cli("usage", logs, "--since", "2026-11", "--by", "day", "--limit", "2", "--json")
    assert cli("usage", logs, "-s", "2026-11", "-b", "days", "-n", "2", "-j") == long
    assert long.code == 0


@pytest.mark.parametrize("words", [["--by", "model"], ["--limit", "5"]])
def test_a_calendar_is_of_all_days(cli, logs, words):
    """Other groups, and a part of the days, are refused by name; days are days however they are called."""
    ran = cli("usage", logs, "--heatmap", *words)
    assert (ran.code, ran.out) == (2, "")
    assert words[0] in ran.err
    assert cli("usage", logs, "--heatmap", "--by", "days").code == 0
