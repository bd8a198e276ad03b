"""Without news, `models` and `sources` read what the ledger keeps of prices and agents: the answer is the same."""

import json
import os
import sqlite3
from contextlib import closing
from importlib.metadata import EntryPoint
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from sessionlog.sources.protocol import Retention
from sessionlog.sources.registry import GROUP
from tests.cli.test_cached_path import settle
from tests.sources.plugin import scribe
from tests.sources.plugin.scrolls import POINT, installed, story, write_scroll

NOW = ("--now", "2026-12-01T00:00:00Z")


@pytest.fixture
def sessions(home, record):
    """The folder of our own logs, one model of which has a price."""
    folder = home / ".local/state/sessionlog/sessions"
    record(folder, "s-first")
    record(folder, "s-free", model="qwen3.6-27b", provider="vllm")
    settle(home / ".local/state")
    return folder


@pytest.fixture
def both(cli, monkeypatch):
    """Run a command with what the ledger keeps, and with prices and sources themselves; return both."""

    def run(*words):
        kept = cli(*words, *NOW)
        with monkeypatch.context() as patch:
            patch.setattr("sessionlog.analytics.question.ask_current", lambda *_: None)
            return kept, cli(*words, *NOW)

    return run


def ledger_of(home):
    return closing(sqlite3.connect(home / ".local/share/sessionlog/ledger.sqlite", isolation_level=None))


def rows_of(home, table):
    with ledger_of(home) as ledger:
        return ledger.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize("command", ["models", "sources"])
@pytest.mark.parametrize("words", [[], ["--json"], ["--csv"], ["--source", "native"]], ids=" ".join)
def test_the_answer_is_the_same(warmed, both, command, words):
    """In every form, with and without a filter."""
    kept, asked = both(command, *words)
    assert kept == asked
    assert (kept.code, kept.err) == (0, "")


@pytest.mark.parametrize("command", ["models", "sources"])
def test_neither_sources_nor_prices_are_loaded(warmed, monkeypatch, cli, command):
    """Whoever needs them nevertheless is found out here."""
    monkeypatch.setattr("sessionlog.pricing.book.load_price_list", None)
    monkeypatch.setattr("sessionlog.sources.registry.load_source", None)
    monkeypatch.setattr("sessionlog.sources.registry.registry", None)
    assert cli(command, *NOW).code == 0


# --- prices


def test_a_price_is_kept_until_it_changes(warmed, both, home):
    """After that the list is asked again, also where the ledger has not been written since."""
    with ledger_of(home) as ledger:
        assert ledger.execute("SELECT provider, model, until_ns FROM current_prices").fetchall() == [
            ("anthropic", "claude-opus-4-5", None), ("vllm", "qwen3.6-27b", None),
        ]  # fmt: skip
        ledger.execute("UPDATE current_prices SET input_usd = 7, until_ns = 1")
    kept, asked = both("models", "--json")
    assert kept == asked


def test_a_new_model_gets_its_price_with_its_log(warmed, both, record):
    """And so does one of a log that has grown."""
    with open(warmed / "s-first.jsonl", "ab") as log:
        log.write(
            b'{"session_id":"s-first","seq":90,"type":"llm.response","ts":"2026-11-20T10:00:00Z",'
            b'"data":{"usage":{"input":7},"model":"gpt-5.3-codex"}}\n'
        )
    kept, asked = both("models", "--json")
    assert kept == asked
    record(warmed, "s-new", model="gemini-2.5-pro", provider="google")
    kept, asked = both("models", "--json")
    assert kept == asked
    assert "gemini-2.5-pro" in kept.out


def test_prices_of_ones_own_are_kept_no_longer_than_they_are_used(warmed, cli, config, home):
    """The list's are back when they are gone."""
    listed = cli("models", "--json")
    before = rows_of(home, "current_prices")
    path = config('[prices."vllm/*"]\ninput = 1\noutput = 2\n')
    own = cli("models", "--json")
    assert "your price" in own.out
    assert rows_of(home, "current_prices") != before
    path.unlink()
    assert cli("models", "--json") == listed
    assert rows_of(home, "current_prices") == before


# --- agents


def test_where_logs_are_kept_follows_the_working_folder(warmed, both, cli, monkeypatch, tmp_path):
    """Some agents keep logs in it."""
    kept, asked = both("sources", "--json")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for value in (str(elsewhere), "", "not/absolute"):
        monkeypatch.setenv("PWD", value)
        other, asked = both("sources", "--json")
        assert other == asked != kept
    monkeypatch.delenv("PWD")
    other, asked = both("sources", "--json")
    assert other == asked


@pytest.mark.parametrize("days", [7, None])
def test_how_long_logs_are_kept_follows_the_settings(warmed, both, home, days):
    """Those that exist now, or are written later."""
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    for value in (days, 90):
        settings.write_text(json.dumps({"cleanupPeriodDays": value}))
        settle(home / ".claude")
        os.utime(settings, (value or 1, value or 1))
        for _ in range(2):
            kept, asked = both("sources", "--json", "--source", "claude-code")
            assert kept == asked
            assert kept.json["rows"][0]["kept_days"] == (value or 30)


def test_agents_of_other_packages_are_kept_too(home, sessions, both):
    """One that cannot be used is named each time."""
    write_scroll(home / ".scribe" / "one.scroll", *story(answers=2))
    settle(home / ".scribe")
    with installed(POINT):
        for _ in range(2):
            kept, asked = both("sources")
            assert kept == asked
            assert "~/.scribe" in kept.out
    (home / ".local/share/sessionlog/ledger.sqlite").unlink()
    with installed(POINT, EntryPoint("bad", "no_such_package_at_all:SOURCE", GROUP)):
        for _ in range(2):
            kept, asked = both("sources")
            assert kept == asked
            assert "plug-in bad" in kept.out
    assert rows_of(home, "agents") == []


def test_a_package_that_cannot_say_how_long_it_keeps_logs_breaks_no_other_report(home, sessions, cli):
    """Reports do not need it."""

    def fail(_):
        raise RuntimeError("the inkwell is empty")

    with patch.object(scribe, "SOURCE", replace(scribe.SOURCE, retention=fail)), installed(POINT):
        assert cli("usage", *NOW).err == cli("models", *NOW).err == ""
        with pytest.raises(RuntimeError, match="inkwell"):
            cli("sources", *NOW)
    assert rows_of(home, "agents") == []


@pytest.mark.parametrize("change", [{"retention": lambda _: Retention(days=7.5, setting="x")}, {"caveat": None}])
def test_a_package_that_describes_itself_oddly_breaks_no_other_report(home, sessions, cli, change):
    """What cannot be stored is not: `sources` asks each time."""
    with patch.object(scribe, "SOURCE", replace(scribe.SOURCE, **change)), installed(POINT):
        for command in ("usage", "sources", "models"):
            assert cli(command, *NOW).err == ""
    assert rows_of(home, "agents") == []
