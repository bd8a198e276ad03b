"""`sessionlog blocks`: options reach the list, the forms agree, and what is active is what is now."""

import csv
import io
import json

import pytest

from sessionlog.analytics.block import COLUMNS
from sessionlog.analytics.columns import names_of

NAMES = names_of(COLUMNS)

NOW = ("--now", "2026-11-21T12:00:00Z", "--tz", "UTC")
FORMS = (["--json"], ["--csv"], ["--markdown"])


def starts(ran):
    """Where the blocks of a JSON report begin, without the seconds."""
    return [block["start"][5:16] for block in ran.json["rows"]]


def test_the_present_comes_first(cli, logs):
    """Then one line a block, the newest first."""
    lines = [line for line in cli("blocks", logs, *NOW).out.splitlines() if line]
    assert lines[0] == "Blocks of 5 h · native · all time · 3 blocks"
    assert [line.split("  ")[0] for line in lines[1:8]] == [
        "now", "used", "pace", "by 16:00", "BLOCK", "21 Nov 11:00 – 16:00", "20 Nov 10:00 – 15:00",
    ]  # fmt: skip
    assert lines[8].startswith("19 Nov 23:00 – 04:00")


def test_options_reach_the_list(cli, logs):
    """Each option changes the list as it says."""
    ask = ("blocks", logs, "--json", *NOW)
    assert starts(cli(*ask)) == ["11-21T11:00", "11-20T10:00", "11-19T23:00"]
    assert starts(cli(*ask, "--hours", "12")) == ["11-21T11:00", "11-19T23:00"]
    assert starts(cli(*ask, "--since", "1d")) == starts(cli(*ask, "--active")) == ["11-21T11:00"]
    assert starts(cli(*ask, "--until", "2026-11-19")) == starts(cli(*ask, "--model", "*opus*")) == ["11-19T23:00"]
    assert starts(cli(*ask, "--provider", "openai")) == starts(cli(*ask, "--status", "error")) == ["11-20T10:00"]
    assert starts(cli(*ask, "--project", "/nowhere")) == starts(cli(*ask, "--source", "fizeau")) == []
    assert starts(cli(*ask, "--limit", "1")) == ["11-21T11:00"]
    later = ("blocks", logs, "--json", "--now", "2026-11-23T11:00:00Z", "--tz", "UTC", "--recent")
    assert starts(cli(*later)) == ["11-21T11:00"]


def test_all_forms_tell_the_same_blocks(cli, logs):
    """JSON, CSV and Markdown, with the same costs."""
    report = cli("blocks", logs, "--json", *NOW).json
    assert report["schema"] == "sessionlog.blocks/2"
    assert report["active"]["start"] == report["rows"][0]["start"]
    rows = list(csv.DictReader(io.StringIO(cli("blocks", logs, "--csv", *NOW).out)))
    assert list(rows[0]) == list(NAMES)
    for row, told in zip(rows, report["rows"], strict=True):
        assert row["cost_usd"] == ("" if told["cost_usd"] is None else repr(told["cost_usd"]))
        assert row["start"] == told["start"]
    markdown = cli("blocks", logs, "--markdown", *NOW).out.splitlines()
    assert [line.split(" | ")[0] for line in markdown[2:]] == [
        "| 21 Nov 11:00", "| 20 Nov 10:00", "| 19 Nov 23:00",
    ]  # fmt: skip


@pytest.mark.parametrize("form", [[], *FORMS], ids=" ".join)
def test_no_active_block_is_no_error(cli, logs, form):
    """The title says so, or null; nothing else was asked for."""
    ran = cli("blocks", logs, "--active", "--now", "2026-12-01T00:00:00Z", *form)
    assert (ran.code, ran.err) == (0, "")
    if form == ["--json"]:
        assert (ran.json["active"], ran.json["rows"]) == (None, [])
    if not form:
        assert ran.out == "Blocks of 5 h · native · all time · 3 blocks, none active\n"


def test_pauses_on_demand(cli, logs):
    """Between the blocks of the table."""
    assert "without a request" not in cli("blocks", logs, *NOW).out
    assert cli("blocks", logs, *NOW, "--gaps").out.count("without a request") == 2


def test_a_table_stops_at_thirty(cli, tmp_path, record):
    """Programs get every block unless they ask for fewer."""
    folder = tmp_path / "many"
    for day in range(1, 30):
        record(folder, f"s-{day}", start=f"2026-11-{day:02}T10:00:00Z")
        if day < 4:
            record(folder, f"t-{day}", start=f"2026-11-{day:02}T20:00:00Z")
    ask = ("blocks", folder, "--tz", "UTC", "--now", "2027-01-01T00:00:00Z")
    assert "2 more blocks (--limit)" in cli(*ask).out
    assert len(cli(*ask, "--json").json["rows"]) == 32
    ran = cli(*ask, "--csv", "--limit", "31")
    assert (len(ran.out.splitlines()), ran.err) == (32, "1 more block (--limit)\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--recent", "--since", "7d"], "choose only one of --recent and --since"),
        (["--hours", "0"], "--hours"),
        (["--since", "x"], "7d"),
        (["--source", "no-such-agent"], "native"),
    ],
)
def test_a_wrong_word_exits_2(cli, logs, options, says):
    """With what was wrong, or what there is."""
    ran = cli("blocks", logs, *options)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


@pytest.mark.parametrize("form", [[], *FORMS], ids=" ".join)
def test_nothing_there_says_where(cli, tmp_path, form):
    """An empty folder is named again, and every form has an empty shape."""
    ran = cli("blocks", tmp_path, *form)
    assert ran.code == 0
    assert f"no sessions in {tmp_path}" in ran.err
    assert ran.out


def test_nothing_fits_is_said_apart(cli, logs):
    """There are blocks, only none that was asked for."""
    assert f"no session in {logs} fits the time and the filters" in cli("blocks", logs, "--model", "none").err


def test_own_prices_reach_the_blocks(cli, logs, config):
    """As for usage."""
    config('[prices."vllm/qwen3.6-27b"]\ninput = 1\noutput = 0\n')
    assert cli("blocks", logs, "--json", *NOW).json["active"]["cost_usd"] == pytest.approx(0.0008)


def test_damage_never_fails_a_list_but_strict_does(cli, damaged):
    """The list is the same; only the exit code says 3."""
    relaxed, strict = cli("blocks", damaged, *NOW), cli("blocks", damaged, *NOW, "--strict")
    assert (relaxed.code, strict.code) == (0, 3)
    assert relaxed.out == strict.out
    assert "1 damaged piece skipped (s-failed.jsonl:2)" in relaxed.out
    assert "1 damaged piece skipped (s-failed.jsonl:2)" in cli("blocks", damaged, "--json").err


def test_the_table_fits_the_terminal(cli, monkeypatch, logs):
    """Columns are hidden and named; `--wide` shows all."""
    monkeypatch.setenv("COLUMNS", "60")
    narrow, wide = cli("blocks", logs, *NOW).out, cli("blocks", logs, *NOW, "--wide").out
    assert max(map(len, narrow.splitlines())) <= 60
    assert "(--wide)" in narrow
    assert "REASONING" in wide
    assert "(--wide)" not in wide


def rollout(folder, *rows):
    """A rollout of Codex with these payloads, a second apart."""
    path = folder / "rollout-2026-11-20T10-00-00-019a0000-0000-7000-8000-000000000001.jsonl"
    folder.mkdir()
    lines = [
        json.dumps({"timestamp": f"2026-11-20T10:00:{second:02}.000Z", "type": kind, "payload": payload})
        for second, (kind, payload) in enumerate(rows)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def test_limits_are_those_of_the_logs(cli, tmp_path):
    """Said by Codex, shown until they start anew, also beside nothing that fits."""
    folder = tmp_path / "codex"
    counts = {"input_tokens": 100, "cached_input_tokens": 20, "output_tokens": 30, "total_tokens": 130}
    limits = {"primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1_795_190_400}}
    rollout(
        folder,
        ("session_meta", {"id": "019a0000-0000-7000-8000-000000000001", "cwd": "/src", "model_provider": "openai"}),
        ("turn_context", {"model": "gpt-5.3-codex", "cwd": "/src"}),
        ("event_msg", {"type": "token_count", "rate_limits": limits,
                       "info": {"total_token_usage": counts, "last_token_usage": counts}}),
    )  # fmt: skip
    ask = ("blocks", folder, "--tz", "UTC", "--json", "--now")
    [limit] = cli(*ask, "2026-11-20T13:00:00Z").json["limits"]
    told = [limit[name] for name in ("source", "name", "used_percent", "window_minutes", "resets", "has_reset")]
    assert told == ["codex", "primary", 12.0, 300.0, "2026-11-20T16:00:00.000000Z", False]
    [limit] = cli(*ask, "2026-11-20T16:00:00Z").json["limits"]
    assert (limit["used_percent"], limit["said_percent"], limit["has_reset"]) == (None, 12.0, True)
    ran = cli("blocks", folder, "--model", "none", "--now", "2026-11-20T13:00:00Z", "--tz", "UTC")
    assert "codex primary" in ran.out
    assert ran.err == ""
