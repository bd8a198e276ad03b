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


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("usage", "--by", "model", "--by", "day"), ["model", "day"]),
        (("usage", "-b", "model,day", "--by", "provider"), ["model", "day", "provider"]),
        (("daily", "--by", "model"), ["day", "model"]),
        (("daily", "--by=model"), ["day", "model"]),
        (("daily", "-bmodel"), ["day", "model"]),
        (("weekly", "-b", "model", "--by=provider"), ["week", "model", "provider"]),
        (("usage",), ["provider", "model"]),
        (("usage", "--by", ""), []),
        (("tools", "--by", "tool", "--by", "day"), ["tool", "day"]),
        (("yield", "--by", "source", "-b", "session"), ["source", "session"]),
    ],
)
def test_keys_may_be_given_one_by_one(cli, logs, words, keys):
    """None is dropped, however an option is spelt."""
    assert cli(*words, logs, "--json", "--tz", "UTC").json["group_by"] == keys


def test_a_limit_of_periods_keeps_the_newest(cli, logs):
    """In their order, the oldest first; sorted by a column or a key, the first ones are kept."""
    ask = ("--json", "--tz", "UTC", "--limit")
    assert [row["day"] for row in cli("daily", logs, *ask, 2).json["rows"]] == ["2026-11-20", "2026-11-21"]
    assert [row["day"] for row in cli("daily", logs, *ask, 1, "--sort", "day").json["rows"]] == ["2026-11-19"]
    assert [row["day"] for row in cli("daily", logs, *ask, 1, "--sort", "-day").json["rows"]] == ["2026-11-21"]
    assert [
        row["provider"] for row in cli("daily", "--sort", "cost", logs, "-b", "provider", *ask, 1).json["rows"]
    ] == ["openai"]
    ran = cli("daily", logs, *ask, 2)
    assert (ran.json["hidden_rows"], ran.json["totals"]["sessions"], ran.err) == (1, 3, "1 more row (--limit)\n")
    lines = cli("daily", logs, "--tz", "UTC", "--now", "2026-11-21T12:00:00Z", "-n", "1").out
    assert "21 Nov" in lines
    assert "19 Nov" not in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sort", "cost"), "--heatmap shows the days in their order: leave out --sort, or take --by day instead"),
        (("--wide",), "--heatmap has no columns: leave out --wide, or take --by day instead"),
        (("--by", "model"), "--heatmap shows days: leave out --by, or --heatmap"),
        (("--by", "day", "--by", "model"), "--heatmap shows days: leave out --by, or --heatmap"),
    ],
)
def test_a_calendar_refuses_what_it_cannot_follow(cli, logs, words, message):
    """Nothing is ignored without a word; as data, its days may be sorted."""
    ran = cli("usage", logs, "--heatmap", *words)
    assert (ran.code, ran.out, ran.err) == (2, "", f"sessionlog: {message}\n")
    assert cli("usage", logs, "--heatmap", "--sort", "cost", "--json", "--since", "2026-11").json["rows"]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(("usage", option) for option in ("--since", "--until", "--tz", "--sort", "--source", "--model", "--ledger")),
        ("daily", "-s"), ("sessions", "--since"), ("tools", "--tool"), ("blocks", "--since"), ("find", "--project"),
        ("status", "--tz"), ("replay", "--only"), ("export", "--signals"), ("sql", "--source"), ("budget", "--ledger"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_value_is_none(cli, logs, command, option, text):
    """A variable that is not set must not stand for all time, for all agents, or for any other default."""
    ran = cli(command, option, text)
    assert (ran.code, ran.out) == (2, "")
    assert "Invalid value for '" in ran.err
    assert "it is empty: give it a value, or leave the option out" in ran.err


def test_notes_name_prices_of_ones_own(cli, config, logs):
    """An estimate may come from them, so that the list alone is the wrong source."""
    note = "~ estimated from own prices, else genai-prices"
    assert "~ estimated from genai-prices" in cli("usage", logs).out
    config('[prices."anthropic/claude-opus-4-5"]\ninput = 1\noutput = 2\n')
    for words in (("usage",), ("sessions",), ("models",), ("blocks", "--source", "*"), ("daily",)):
        assert note in " ".join(cli(*words, logs).out.split()), words
    assert "own prices, else genai-prices" in cli("pricing", "--list", "opus").out
    config("")
    (logs.parent / "prices.toml").write_text('["anthropic/claude-opus-4-5"]\ninput = 1\noutput = 2\n')
    assert note in " ".join(cli("usage", logs, "--prices", logs.parent / "prices.toml").out.split())


@pytest.mark.parametrize("command", ["usage", "models", "sessions", "daily", "blocks"])
def test_a_limit_of_0_hides_rows_and_does_not_deny_them(cli, logs, command):
    """What is there is counted in the title, and the note names what is hidden."""
    ran = cli(command, logs, "-n", "0", *(("--source", "*") if command == "blocks" else ()))
    title, *rest = ran.out.splitlines()
    assert ran.code == 0
    assert "No " not in title
    assert " 0 " not in title
    assert any(line.endswith("(--limit)") for line in rest)
