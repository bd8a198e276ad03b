"""A ledger of an older version is brought up to date in its place, with what logs that are gone left in it."""

import os
import sqlite3
from pathlib import Path

import pytest

from sessionlog._version import __version__
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.columns import Label, names_of
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import VERSION
from sessionlog.ledger.verify import compare_derived
from tests.ledger.entries import PRICES
from tests.sources.homes import build_home, environment

DUMPS = Path(__file__).parents[2] / "testdata/ledger"
"""Each of an `AgedHome`: fifteen responses of which fourteen count; two logs are gone, with three of them."""


@pytest.fixture(params=["version-1.sql", "version-4.sql"])
def path(tmp_path, request):
    """A ledger as an older version left it."""
    return ledger_of(tmp_path, request.param)


def ledger_of(folder, dump):
    path = folder / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript((DUMPS / dump).read_text())
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    os.chmod(path, 0o600)
    return str(path)


def test_nothing_is_lost(path):
    """Neither of logs that are there nor of those that are gone; all that is derived is right."""
    book = open_ledger(path, PRICES)
    assert book.query("PRAGMA user_version", {}) == [(VERSION,)]
    assert book.query("SELECT SUM(requests), SUM(input), SUM(output) FROM records", {}) == [(14, 986, 645)]
    assert book.query("SELECT SUM(requests), SUM(input), SUM(output) FROM quarter_hours", {}) == [(14, 986, 645)]
    gone = "SELECT SUM(r.requests), SUM(r.output) FROM records r JOIN files f ON f.id = r.file_id WHERE f.missing"
    assert book.query(gone, {}) == [(3, 191)]
    assert not list(compare_derived(book.copy()))
    cached = "SELECT COUNT(*) FROM responses WHERE cache_read + cache_write > 0 AND saved_nano IS NULL AND n >= 0"
    book.reprice(PRICES)
    assert book.query(cached, {}) == [(0,)]
    book.close()


def test_logs_that_have_not_changed_are_looked_at_again(path):
    """The snapshot of the last sync is of logs as older parsers read them, also where it names this version."""
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('snapshot', ?)", (__version__,))
    connection.close()
    book = open_ledger(path, PRICES)
    assert book.query("SELECT value FROM meta WHERE name = 'snapshot'", {}) == []
    book.close()


def test_it_happens_once(path):
    """The second time it is opened it is of this version."""
    open_ledger(path, PRICES).close()
    before = Path(path).read_bytes()
    open_ledger(path, PRICES).close()
    assert Path(path).read_bytes() == before


def test_until_then_it_cannot_be_asked(path):
    """Questions alone change nothing."""
    with pytest.raises(LedgerUnusable, match="older sessionlog"):
        open_ledger(path, write=False)


def test_a_column_that_is_added_is_read_from_the_logs(tmp_path):
    """Version 8 did not count searches: the logs that have not changed since are read again, others have none."""
    env = environment("claude-code/streamed-rows", build_home("claude-code/streamed-rows", tmp_path))
    [log] = [path for path in Path(env["HOME"]).rglob("*.jsonl") if "output_tokens" in path.read_text()]
    log.write_text(log.read_text().replace('"usage":{', '"usage":{"server_tool_use":{"web_search_requests":2},'))
    path = str(tmp_path / "ledger.sqlite")
    book = open_ledger(path, PRICES)
    refresh(book, env)
    for table in ("responses", "quarter_hours"):
        assert book.query(f"SELECT MAX(searches) FROM {table}", {}) >= [(2,)]
        book.connection.execute(f"ALTER TABLE {table} DROP COLUMN searches")
    book.connection.execute("UPDATE files SET parser = 5")
    book.connection.execute("PRAGMA user_version = 8")
    book.close()
    book = open_ledger(path, PRICES)
    assert book.query("SELECT SUM(searches) FROM quarter_hours", {}) == [(0,)]
    refresh(book, env)
    assert book.query("SELECT SUM(searches) FROM quarter_hours", {}) == book.query("SELECT SUM(2) FROM records", {})
    assert not list(compare_derived(book.copy()))
    book.close()


def test_rows_that_were_made_of_a_log_and_the_wire_are_gone(tmp_path):
    """One request was in both, one in the log alone, which is gone, and one on the wire alone: each counts once."""
    book = open_ledger(ledger_of(tmp_path, "version-8-wire.sql"), PRICES)
    sums = "SELECT SUM(requests), SUM(input + cache_read + output) FROM {}"
    assert book.query(sums.format("records"), {}) == book.query(sums.format("quarter_hours"), {}) == [(3, 171)]
    listed = """SELECT s.source, SUM(r.requests) FROM sessions s JOIN quarter_hours r ON r.session_id = s.id
        GROUP BY 1 ORDER BY 1"""
    assert book.query(listed, {}) == [("claude-code", 3)]
    assert book.query("SELECT COUNT(*) FROM responses", {}) == [(4,)]
    assert not list(compare_derived(book.copy()))
    book.close()


def test_what_responses_are_charged_to_is_read_from_the_logs(tmp_path):
    """Version 6 did not have it: the logs that have not changed since are read again, others are charged to nothing."""
    env = environment("claude-code/charged-to", build_home("claude-code/charged-to", tmp_path))
    path = str(tmp_path / "ledger.sqlite")
    book = open_ledger(path, PRICES)
    refresh(book, env)
    for column in names_of(Label, "charged"):
        book.connection.execute(f"ALTER TABLE labels DROP COLUMN {column}")
    book.connection.execute("UPDATE files SET parser = 4")
    book.connection.execute("PRAGMA user_version = 6")
    book.close()
    book = open_ledger(path, PRICES)
    servers = "SELECT l.mcp, SUM(r.requests) FROM records r JOIN labels l ON l.id = r.label_id GROUP BY 1 ORDER BY 1"
    assert book.query(servers, {}) == [("", 7)]
    refresh(book, env)
    assert book.query(servers, {}) == [("", 4), ("github", 2), ("tracker", 1)]
    assert not list(compare_derived(book.copy()))
    book.close()
