"""Without news a report needs the ledger's file alone: it is that of a scan, and imports little."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import EntryPoint
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from sessionlog.sources.names import OURS
from sessionlog.sources.protocol import Retention
from sessionlog.sources.registry import GROUP
from tests.sources.plugin import scribe
from tests.sources.plugin.scrolls import POINT, installed, story, write_scroll

LONG_AGO = 1_700_000_000
NOW = ("--now", "2026-12-01T00:00:00Z")
HEAVY = {
    "typer", "pydantic", "rich", "dateutil", "orjson", "asyncio", "concurrent", "multiprocessing", "importlib.metadata",
    "msgspec",
}  # fmt: skip
_ANSWER = b'{"session_id":"s-first","seq":90,"type":"llm.response","ts":"2026-11-20T10:00:00Z","data":{"usage":{"input":7}}}\n'


def settle(folder):
    """Nothing in a folder was changed a moment ago."""
    for place, _, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in names)):
            os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def sessions(home, record):
    """The folder of our own logs, with four sessions of which nothing is new."""
    folder = home / ".local/state/sessionlog/sessions"
    record(folder, "s-first", start="2026-11-19T23:30:00Z")
    record(folder, "s-failed", status="error", model="gpt-5.3-codex", provider="openai", cost=0.25)
    record(folder, "s-free", status=None, model="qwen3.6-27b", provider="vllm", start="2026-11-21T11:55:00Z")
    record(folder, "s-odd", model='m"é\x7f', provider="p\\\n", work_dir="/src/café")
    settle(home / ".local/state")
    return folder


def loaded_by(*words, **env):
    """The modules that a command has loaded at its end, in a fresh interpreter; and what it wrote."""
    code = (
        "import sys; bare = set(sys.modules); from sessionlog.cli import main; "
        "code = main(sys.argv[1:]); print(*set(sys.modules) - bare, file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC", **env})
    assert ran.stdout
    return set(ran.stderr.split()), ran.stdout


def sources_among(loaded):
    """The sources among modules."""
    return {source_id for source_id in OURS if f"sessionlog.sources.{source_id.replace('-', '_')}" in loaded}


# --- the same


@pytest.mark.parametrize("command", ["usage", "sessions", "models", "tools", "blocks"])
@pytest.mark.parametrize("words", [[], ["--json"], ["--csv"], ["--source", "native"]], ids=" ".join)
def test_the_report_is_that_of_a_scan(warmed, cli, command, words):
    """In every form: a book that is only read says what a book in memory says."""
    assert cli(command, *words, *NOW) == cli(command, *words, *NOW, "--no-ledger")


@pytest.mark.parametrize(
    "words", [[], ["--since", "2026-11-01..", "--json"], ["--since", "2027-01-01.."]], ids=" ".join
)
def test_so_is_that_of_a_window(warmed, cli, words):
    """Also of one in which nothing is."""
    assert cli("usage", *words, *NOW) == cli("usage", *words, *NOW, "--no-ledger")


def test_another_ledger_is_asked(warmed, cli, monkeypatch, tmp_path):
    """`--ledger` and `$SESSIONLOG_LEDGER` name it."""
    path = tmp_path / "book.sqlite"
    first = cli("usage", "--json", "--ledger", path)
    assert cli("usage", "--json", "--ledger", path) == first
    monkeypatch.setenv("SESSIONLOG_LEDGER", str(path))
    assert cli("usage", "--json") == first


def test_a_session_of_the_archive_is_said(warmed, cli, home):
    """In a note on stderr, each time."""
    (warmed / "s-first.jsonl").unlink()
    settle(home / ".local/state")
    ran = cli("usage", "--json")
    assert cli("usage", "--json") == ran
    assert "1 session here is only remembered: its log is gone" in ran.err


def test_damage_is_named(sessions, home, cli):
    """Each time."""
    with open(sessions / "s-first.jsonl", "ab") as log:
        log.write(b'{"no json\n')
    settle(home / ".local/state")
    ran = cli("usage", "--json")
    assert cli("usage", "--json") == ran
    assert "s-first.jsonl" in ran.err


# --- news


def _new_log(sessions, record):
    record(sessions, "s-new")


def _grown_log(sessions, record):
    with open(sessions / "s-first.jsonl", "ab") as log:
        log.write(_ANSWER)


def _lost_log(sessions, record):
    (sessions / "s-free.jsonl").unlink()


@pytest.mark.parametrize("change", [_new_log, _grown_log, _lost_log], ids=lambda change: change.__name__)
@pytest.mark.parametrize("command", ["usage", "models"])
def test_news_is_seen(warmed, cli, record, change, command):
    """Nothing that is older than the logs is shown."""
    before = cli(command, "--json", *NOW)
    change(warmed, record)
    after = cli(command, "--json", "--live", *NOW)
    assert after == cli(command, "--json", *NOW, "--no-ledger") != before


def test_prices_of_ones_own_are_kept_no_longer_than_they_are_used(warmed, cli, config):
    """What they estimated is estimated anew when they are gone."""
    before = [cli(command, "--json") for command in ("usage", "models")]
    path = config('[prices."vllm/*"]\ninput = 1\noutput = 2\n')
    own = [cli(command, "--json") for command in ("usage", "models")]
    path.unlink()
    again = [cli(command, "--json") for command in ("usage", "models")]
    assert own[0] != before[0]
    assert "your price" in own[1].out
    assert again == before


@pytest.mark.parametrize(
    "change", [None, _new_log, _grown_log, _lost_log], ids=lambda change: getattr(change, "__name__", "none")
)
def test_budgets_follow_the_logs_and_the_prices(warmed, cli, config, record, change):
    """What is used is what the report on usage says."""
    budget = '[budgets.daily]\nusd = 2\nwindow = "900d"\n[budgets.calls]\nrequests = 3\nwindow = "900d"\n'
    for own in ("", '[prices."vllm/*"]\ninput = 1000\noutput = 2000\n'):
        config(budget + own)
        if change is not None and not own:
            change(warmed, record)
        rows = {row["name"]: row for row in cli("budget", "--json", *NOW).json["rows"]}
        totals = cli("usage", "--json", *NOW).json["totals"]
        assert rows["calls"]["used"] == totals["requests"]
        assert rows["daily"]["used"] == pytest.approx(totals["cost_usd"])


# --- little is loaded


@pytest.mark.parametrize(
    "words",
    [
        ["sessions"], ["blocks"], ["usage", "--by", "day"], ["usage", "--since", "7d"], ["budget"], ["ledger"], ["calendar"],
        ["models"], ["pricing", "claude-opus-4-5"], ["tools"], ["sql", "SELECT 1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_json_without_news_needs_little(warmed, cli, config, home, words):
    """Neither what reads logs nor what draws tables."""
    if words == ["budget"]:
        config('[budgets.daily]\nusd = 20\nperiod = "day"\n[budgets.weekly]\ntokens = 1_000\nwindow = "7d"\n')
    with closing(sqlite3.connect(home / ".local/share/sessionlog/ledger.sqlite")) as ledger, ledger:
        ledger.execute("INSERT INTO limits SELECT id, 'native', 'primary', 1, 5, 300, NULL, '' FROM files LIMIT 1")
    cli(*words)  # the first query of a budget writes its seal
    loaded, _ = loaded_by(*words, "--json")
    assert (HEAVY | {"zoneinfo"}) & loaded == set()


@pytest.mark.parametrize(
    "words",
    [
        [], ["--wide"], ["--csv"], ["--markdown"], ["--json", "--since", "2026-11-01.."], ["--csv", "--by", "hour,model"],
        ["--since", "1mo", "--now", "2026-12-01T00:00:00Z"], ["--source", "native", "--model", "*"], ["--source", "nat*"],
        ["--limit", "1", "--sort", "cost_usd"], ["--merge-worktrees", "--by", "project,meta.x"], ["--tz", "Asia/Tokyo"],
        ["--since", "2027-01-01.."],
    ],
    ids=" ".join,
)  # fmt: skip
def test_without_news_no_report_needs_sources_prices_or_parsers(warmed, words):
    """Whatever is asked and in whatever form, to a pipe."""
    loaded, _ = loaded_by("usage", *words)
    assert HEAVY.isdisjoint({*loaded, *(name.split(".")[0] for name in loaded)})
    rooms = {name.split(".")[1] for name in loaded if name.startswith("sessionlog.")}
    assert rooms.isdisjoint({"pricing", "reader"})
    assert sources_among(loaded) == set()
    assert {"sessionlog.ledger.sync", "sessionlog.ledger.new_logs", "sessionlog.engine.scanner"}.isdisjoint(loaded)


def test_a_log_that_has_grown_is_read_with_what_a_scan_needs(warmed):
    """One source, and nothing that lists logs, replays sessions or starts processes."""
    _grown_log(warmed, None)
    loaded, _ = loaded_by("usage", "--json")
    assert sources_among(loaded) == {"native"}
    assert loaded & (HEAVY - {"orjson", "msgspec"}) == set()


@pytest.mark.parametrize("words", [["context"], ["context", "s-first"], ["diff", "s-first", "s-odd"]], ids=" ".join)
def test_a_session_is_read_with_its_own_source(warmed, words):
    """Its figures come from the ledger, which stays up to date for the next command: no log is listed."""
    loaded, out = loaded_by(*words, "--json")
    assert "sessionlog.ledger.writer" not in loaded
    assert sources_among(loaded) == {"native"}
    if words[0] == "context":
        assert '"session_requests": 1,' in out


# --- agents


@pytest.mark.parametrize("days", [7, None])
def test_how_long_logs_are_kept_follows_the_settings(warmed, cli, home, days):
    """Those that exist now, or are written later."""
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    for value in (days, 90):
        settings.write_text(json.dumps({"cleanupPeriodDays": value}))
        ran = cli("sources", "--json", "--source", "claude-code")
        assert ran.json["rows"][0]["kept_days"] == (value or 30)


def test_agents_of_other_packages_are_found(home, sessions, cli):
    """Each time, and so is what is new in their logs; one that cannot be used is named."""
    write_scroll(home / ".scribe" / "one.scroll", *story(answers=2))
    settle(home / ".scribe")
    with installed(POINT):
        for answers in (2, 4):
            write_scroll(home / ".scribe" / "two.scroll", *story(answers=answers, name="x"))
            for _ in range(2):
                assert "~/.scribe" in cli("sources").out
                rows = cli("usage", "--by", "source", "--json", *NOW).json["rows"]
                assert {row["source"]: row["requests"] for row in rows}["scribe"] == 2 + answers
    with installed(POINT, EntryPoint("bad", "no_such_package_at_all:SOURCE", GROUP)):
        for _ in range(2):
            assert "plug-in bad" in cli("sources").out


def test_a_package_that_cannot_say_how_long_it_keeps_logs_breaks_no_other_report(home, sessions, cli):
    """Reports do not need it."""

    def fail(_):
        raise RuntimeError("the inkwell is empty")

    with patch.object(scribe, "SOURCE", replace(scribe.SOURCE, retention=fail)), installed(POINT):
        assert cli("usage", *NOW).err == cli("models", *NOW).err == ""
        with pytest.raises(RuntimeError, match="inkwell"):
            cli("sources", *NOW)


@pytest.mark.parametrize("change", [{"retention": lambda _: Retention(days=7.5, setting="x")}, {"caveat": None}])
def test_a_package_that_describes_itself_oddly_breaks_no_report(home, sessions, cli, change):
    """Of its own numbers and of others'."""
    with patch.object(scribe, "SOURCE", replace(scribe.SOURCE, **change)), installed(POINT):
        for command in ("usage", "sources", "models"):
            assert cli(command, *NOW).err == ""
