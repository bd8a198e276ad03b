"""The context command: which session, which request, which form, and how it ends."""

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sessionlog.cli.app import build_app
from sessionlog.cli.output import UNREADABLE, USAGE
from tests.context.reports import xray
from tests.sources.logs import answered, asked, start, write_log

LOGS = Path(__file__).parents[2] / "testdata" / "replay"
STORY = str(LOGS / "story.jsonl")


def run(*arguments, **environment):
    """Run `sessionlog context` on some arguments, at 160 columns."""
    given = {"TERM": "dumb", "COLUMNS": "160", "SESSIONLOG_CONFIG": str(LOGS / "none.toml"), "SESSIONLOG_TZ": "UTC",
             "SESSIONLOG_LEDGER": str(LOGS / "none.sqlite")}  # fmt: skip
    return CliRunner().invoke(build_app(("context", "usage")), ["context", *arguments], env=given | environment)


def test_the_last_request_is_shown():
    """With how full the window was."""
    result = run(STORY)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Context at request 5 of 5 · 10 of 200k tokens (<1 %)\nclaude-opus-4-5 · story · ")


def test_a_request_can_be_named():
    """By its number."""
    assert run(STORY, "--request", "3").stdout.startswith("Context at request 3 of 5 · 18.1k of 200k tokens (9 %)")


def test_a_session_is_found_by_the_beginning_of_its_id():
    """In the folder that is named, or that the settings name."""
    assert run("stor", "--dir", str(LOGS)).stdout == run(STORY).stdout
    assert run("stor", SESSIONLOG_DIR=str(LOGS)).stdout == run(STORY).stdout


def test_json_is_the_document():
    """That of the Python function; `--full` has every item."""
    assert json.loads(run(STORY, "--json", "--request", "1").stdout) == xray(STORY, request=1).to_dict()
    long = str(LOGS / "only-what-is-new.jsonl")
    assert json.loads(run(long, "--json", "--full").stdout) == xray(long).to_dict(full=True)


def test_csv_has_one_row_per_part():
    """Their tokens sum to the total."""
    rows = list(csv.DictReader(io.StringIO(run(STORY, "--csv", "--request", "2").stdout)))
    report = xray(STORY, request=2)
    assert [(row["kind"], row["name"]) for row in rows] == [(part.kind, part.name) for part in report.parts]
    assert sum(int(row["tokens"]) for row in rows) == report.total_tokens


def test_full_shows_every_item():
    """And names none as left out."""
    long = str(LOGS / "story.jsonl")
    assert "(--full)" in run(long, "--request", "3").stdout
    assert "(--full)" not in run(long, "--request", "3", "--full").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nowhere"], UNREADABLE, "nowhere: no such file"),
        ([str(LOGS)], UNREADABLE, "is a folder"),
        ([str(LOGS / "harness.jsonl")], UNREADABLE, "no request to a model in it"),
        (["h"], USAGE, "harness, hostile"),
        ([STORY, "--request", "6"], USAGE, "no request 6: story has 5, numbered from 1"),
        ([STORY, "--request", "0"], USAGE, "no request 0"),
        ([STORY, "--request", "x"], USAGE, ""),
        ([STORY, "--json", "--csv"], USAGE, "choose only one of --json and --csv"),
    ],
)
def test_wrong_calls_are_refused_in_one_sentence(arguments, code, says):
    """The message names the thing; nothing goes to stdout."""
    result = run("--dir", str(LOGS), *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr


def test_damage_is_told_beside_data_and_in_the_table():
    """On stderr only where stdout is for a program."""
    log = str(LOGS / "unknown-and-damaged.jsonl")
    assert "damaged piece" in run(log).stdout
    for form in ("--json", "--csv"):
        assert "damaged piece" in run(log, form).stderr


def test_a_hostile_log_is_harmless():
    """In every form; JSON is ASCII."""
    log = str(LOGS / "hostile.jsonl")
    for form in ([], ["--full"], ["--csv"], ["--json"]):
        text = run(log, *form).stdout
        assert not set(text) & set("\x1b\x07\x9b\u202e\u200b")
    assert run(log, "--json").stdout.isascii()


def test_a_deleted_session_is_seen_in_the_archive(cli, home, monkeypatch):
    """Under its old path; stderr says where it comes from."""
    folder = home / "ours"
    folder.mkdir()
    shutil.copy(STORY, folder)
    os.utime(folder / "story.jsonl", (1_795_000_000, 1_795_000_000))
    monkeypatch.setenv("SESSIONLOG_DIR", str(folder))
    assert cli("archive", "--now", "2026-12-31T12:00:00Z").code == 0
    before = cli("context", "story", "--json")
    shutil.rmtree(folder)
    ran = cli("context", "story", "--json")
    assert (ran.code, ran.out) == (0, before.out)
    assert ran.err == f"{folder / 'story.jsonl'} is gone: this is from the archive, of 2026-12-31\n"


def test_requests_in_other_logs_of_the_session_are_told_where_there_is_a_ledger(cli, home, monkeypatch):
    """It knows them all; without one nothing is scanned."""
    folder = home / "ours"
    folder.mkdir()
    shutil.copy(STORY, folder)
    monkeypatch.setenv("SESSIONLOG_DIR", str(folder))
    assert json.loads(cli("context", "story", "--json").out)["session_requests"] is None
    counted = json.loads(cli("status", "story", "--json").out)["usage"]["session"]["requests"]
    assert json.loads(cli("context", "story", "--json").out)["session_requests"] == counted == 5


def test_cache_misses_are_shown_as_a_table_json_and_csv(tmp_path):
    """With the reason of each."""
    used = {"input": 10, "output": 5, "cache_read": 0, "cache_write": 9_000}
    items = [start(provider="anthropic", model="claude-opus-4-5")]
    for minute, (system, cached) in enumerate([("one", 0), ("one", 9_000), ("two", 0)], start=1):
        usage = {**used, "cache_read": cached, "cache_write": 9_000 - cached}
        messages = [{"role": "user", "content": "go"}]
        items.append(asked(f"10:0{minute}:00", system=system, messages=messages, model="claude-opus-4-5"))
        items.append(answered(f"10:0{minute}:05", content="ok", usage=usage, model="claude-opus-4-5"))
    path = write_log(tmp_path / "s.jsonl", *items)
    table = run(path, "--cache")
    assert "1 miss of 9.0k tokens, $" in table.stdout
    assert "system prompt changed" in table.stdout
    document = json.loads(run(path, "--cache", "--json").stdout)
    assert document["schema"] == "sessionlog.cache/1"
    assert [miss["reason"] for miss in document["misses"]] == ["system"]
    assert document["cost_usd"] == document["misses"][0]["cost_usd"] > 0
    rows = run(path, "--cache", "--csv").stdout.splitlines()
    assert rows[0].startswith("request,time,reason,detail")
    assert len(rows) == 2


def test_damage_and_wrong_options_are_told_beside_cache_misses(tmp_path):
    """As beside any report; what --cache does not take is refused."""
    used = {"input": 10, "output": 5, "cache_read": 0, "cache_write": 9_000}
    items = [start(), asked(messages=[]), answered(content="ok", usage=used), b"{torn\n"]
    path = write_log(tmp_path / "s.jsonl", *items)
    assert "1 damaged piece" in run(path, "--cache").stdout
    result = run(path, "--cache", "--json")
    assert json.loads(result.stdout)["problems"]["count"] == 1
    assert "1 damaged piece" in result.stderr
    for more in (["--request", "1"], ["--full"]):
        result = run(path, "--cache", *more)
        assert (result.exit_code, result.stdout) == (USAGE, "")
        assert "--cache shows all requests" in result.stderr
