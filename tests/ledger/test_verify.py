"""Verify: every damage that a number depends on is found, every wrong number is named, and nothing is said of the rest.

Measured with `test_p23_every_bit_flip_is_found` (500 flips of one bit in a ledger): no flip that changed what a report says
without a word is missed by `verify`.
"""

import json
import os
import random
from contextlib import suppress

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger import verify
from sessionlog.ledger.verify import NAMED, verify_ledger
from tests.ledger.aged_home import AgedHome
from tests.ledger.entries import PRICES
from tests.ledger.little_logs import NOW


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One home for all tests: each gets the ledger as it was at first."""
    return AgedHome(tmp_path_factory.mktemp("aged"))


@pytest.fixture
def home(made):
    """The home with its ledger untouched."""
    made.put_back()
    return made


def change(home, sql):
    """Change the ledger behind its back, as nobody should."""
    with home.opened() as book:
        book.connection.execute("BEGIN IMMEDIATE")
        book.connection.execute(sql)
        book.commit()


def derive(home):
    """Make what is derived fit what was changed."""
    with home.opened() as book:
        book.set_meta("prices", "others")
        book.reprice(PRICES)


def test_a_whole_ledger_is_whole(home):
    """Every session, also while logs are gone."""
    found = home.verify()
    assert found.is_whole
    assert (found.broken, found.derived, found.differences, found.left_out) == ((), (), (), 0)
    assert found.compared >= 5


def test_what_is_new_in_the_logs_is_no_difference(tmp_path):
    """The log is left out, and the file stays as it is."""
    home = AgedHome(tmp_path)
    home.append(home.logs()[0], [("answer", 2, 9), ("answer", 3, 9)])
    kept = home.ask("SELECT SUM(output) FROM responses")
    found = home.verify()
    assert (found.is_whole, found.left_out) == (True, 1)
    assert home.ask("SELECT SUM(output) FROM responses") == kept
    home.sync()
    found = home.verify()
    assert (found.is_whole, found.left_out) == (True, 0)
    assert home.ask("SELECT SUM(output) FROM responses") != kept


def test_a_wrong_number_is_named(home):
    """Session, column, what the ledger says and what the logs say."""
    [(source, name, before, place)] = home.ask(
        """SELECT s.source, s.session, r.output, r.file_id || ' AND n = ' || r.n FROM responses r JOIN sessions s
           ON s.id = r.session_id JOIN files f ON f.id = r.file_id
           WHERE r.counts AND r.n >= 0 AND NOT f.missing ORDER BY r.output DESC LIMIT 1"""
    )
    change(home, f"UPDATE responses SET output = output + 7 WHERE file_id = {place}")
    found = home.verify()
    assert not found.is_whole
    assert found.derived  # quarter hours are sums of what was changed
    assert (source, name) in {(one.source, one.session) for one in found.derived}
    derive(home)
    found = home.verify()
    assert (found.broken, found.derived) == ((), ())
    told = {(one.source, one.session, one.column): (one.ledger, one.logs) for one in found.differences}
    ours, theirs = told[source, name, "responses.output"]
    assert ours - theirs == 7
    assert before > 0


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("UPDATE quarter_hours SET requests = requests + 1 WHERE rowid = 1", "quarter_hours.requests"),
        ("DELETE FROM quarter_hours WHERE rowid = 1", "quarter_hours.rows"),
        ("UPDATE all_sessions SET prompt = 'another' WHERE id = 1", "sessions.prompt"),
        ("UPDATE responses SET counts = NOT counts WHERE (file_id, n) IN (SELECT file_id, n FROM responses WHERE family IN (SELECT family FROM responses GROUP BY 1 HAVING COUNT(*) > 1) LIMIT 1)", "c"),
    ],
)  # fmt: skip
def test_what_is_derived_is_computed_anew(home, sql, kind):
    """Sums, facts of sessions, and which copies count."""
    change(home, sql)
    found = home.verify()
    assert not found.is_whole
    assert found.derived_count >= len(found.derived) >= 1
    assert any(one.column.startswith(kind) for one in found.derived)


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("recorded_nano", "responses.recorded_nano"),
        ("cache_write_1h", "responses.cache_write_1h"),
        ("saved_nano", "quarter_hours.saved_nano"),
        ("estimate_nano", "quarter_hours.estimate_nano"),
    ],
)
def test_what_a_cost_is_made_of_is_compared(home, column, named):
    """Of a log that is there; no price is computed again for it."""
    there = "SELECT r.file_id, r.n FROM records r JOIN files f ON f.id = r.file_id WHERE NOT f.missing AND r.n >= 0"
    change(home, f"UPDATE responses SET {column} = COALESCE({column}, 0) + 1 WHERE (file_id, n) IN ({there} LIMIT 1)")
    found = home.verify()
    assert {one.column for one in (*found.derived, *found.differences)} == {named}


@pytest.mark.parametrize(("table", "names"), [("responses", "labels"), ("calls", "names")])
def test_names_that_are_missing_are_a_finding(home, table, names):
    """Of a log that is there."""
    column = f"{names[:-1]}_id"
    used = f"SELECT {column} FROM {table} r JOIN files f ON f.id = r.file_id WHERE {{}} f.missing"
    [number] = home.ask(f"{used.format('NOT')} EXCEPT {used.format('')} LIMIT 1")[0]
    change(home, f"DELETE FROM {names} WHERE id = {number}")
    assert home.verify().broken == (f"row {number} of {names}, to which {table} refer, is missing",)


def test_many_differences_are_counted_and_the_first_are_named(home):
    """Twenty."""
    change(home, "UPDATE quarter_hours SET output = output + 1, input = input + 1")
    found = home.verify()
    assert len(found.derived) == NAMED < found.derived_count


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("UPDATE responses SET time_ns = time_ns + 1 WHERE {}", "responses.rows"),
        ("UPDATE responses SET response_id = 7 WHERE {}", "responses.response_id"),
        ("UPDATE responses SET latency_ms = 7.5 WHERE {}", "responses.latency_ms"),
        (
            "UPDATE labels SET model = model || 'x' WHERE id IN (SELECT label_id FROM responses WHERE {})",
            "responses.model",
        ),
        ("UPDATE calls SET output_bytes = output_bytes + 1 WHERE {}", "calls.output_bytes"),
        ("DELETE FROM calls WHERE {}", "calls.rows"),
        ("UPDATE limits SET used_percent = 99.5 WHERE {}", "limits.used_percent"),
        ("UPDATE files SET problems = problems + 1 WHERE {}", "problems.problems"),
    ],
)
def test_every_row_of_a_log_is_compared(home, sql, column):
    """Also what no sum depends on."""
    there = "(SELECT id FROM files WHERE NOT missing)"
    change(home, sql.format(f"id IN {there}" if "UPDATE files" in sql else f"file_id IN {there}"))
    derive(home)
    assert column in {one.column for one in home.verify().differences}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE responses SET output = output + 1 WHERE (file_id, n) IN (SELECT file_id, n FROM gone LIMIT 1)",
        "UPDATE log_sessions SET facts = replace(facts, '\"project\"', '\"projekt\"') WHERE file_id IN (SELECT file_id FROM gone)",
        "DELETE FROM responses WHERE (file_id, n) IN (SELECT file_id, n FROM gone LIMIT 1)",
        "DELETE FROM files WHERE id IN (SELECT file_id FROM gone)",
    ],
)  # fmt: skip
def test_sums_show_what_was_lost_of_logs_that_are_gone(home, sql):
    """No log can prove it; what is derived of it can."""
    gone = "SELECT r.* FROM responses r JOIN files f ON f.id = r.file_id WHERE f.missing AND r.n >= 0"
    change(home, sql.replace("FROM gone", f"FROM ({gone})"))
    assert not home.verify().is_whole


def test_an_estimate_of_a_log_that_is_gone_is_made_anew(home):
    """It is derived: from its tokens, and the price list."""
    gone = "file_id IN (SELECT id FROM files WHERE missing)"
    change(home, f"UPDATE responses SET estimate_nano = estimate_nano + 1 WHERE estimate_nano > 0 AND {gone}")
    found = home.verify()
    assert any(one.column.startswith("costs") for one in found.derived) or not home.ask(
        f"SELECT 1 FROM responses WHERE estimate_nano > 0 AND {gone}"
    )


def test_a_file_that_sqlite_refuses_is_a_finding(home):
    """Its head is overwritten: nothing is raised."""
    home.put_back(b"\0" * 100 + home.files[""][100:])
    assert home.verify().broken


def test_there_must_be_a_ledger_of_ours(tmp_path):
    """None, a newer one, another program's: these are no findings."""
    with pytest.raises(LedgerUnusable, match="there is no ledger yet"):
        verify_ledger(str(tmp_path / "none"), PRICES, {})
    home = AgedHome(tmp_path)
    change(home, "PRAGMA user_version = 99")
    with pytest.raises(LedgerUnusable, match="newer"):
        home.verify()


def test_logs_that_are_written_to_meanwhile_are_left_out(tmp_path, monkeypatch):
    """One that grows between the two looks, and is read into the ledger by another process, is no difference."""
    home = AgedHome(tmp_path)
    path = next(path for path in home.logs() if path.startswith("s/"))
    usual = verify.load_book

    def scan_then_grow(*args, **options):
        scanned = usual(*args, **options)
        home.append(path, [("answer", 1, 5), ("answer", 2, 6)])
        home.sync()
        return scanned

    monkeypatch.setattr(verify, "load_book", scan_then_grow)
    found = home.verify()
    assert (found.differences, found.left_out) == ((), 1)
    assert found.is_whole


def test_the_document_is_json(home):
    """`sessionlog.ledger.verify/3`."""
    change(home, "UPDATE quarter_hours SET requests = requests + 1 WHERE rowid = 1")
    document = json.loads(json.dumps(home.verify().to_dict()))
    assert (document["schema"], document["whole"]) == ("sessionlog.ledger.verify/3", False)
    assert (document["broken"], document["left_out_logs"]) == ([], 0)
    [first, *_] = document["derived"]["first"]
    assert first["ledger"] == first["logs"] + 1


def report(home):
    """What a report says, and whether it has a word about the ledger."""
    found = aggregate_usage(env=home.env, ledger=home.ledger, prices=PRICES, now=NOW, by=("source", "model"))
    document = found.to_dict()
    return (document["rows"], document["totals"]), bool(found.notes)


def flip(home, count, seed):
    """Turn bits, one at a time; how many reports were right, said something, or were wrong without a word."""
    draw = random.Random(seed)
    right, noted = report(home)
    assert not noted
    ended = {"right": 0, "noted": 0, "silent": 0, "found": 0}
    for _ in range(count):
        content = home.flipped(draw)
        home.put_back(content)
        is_whole = False
        with suppress(LedgerUnusable):  # a bit of its version: it is said to be of a newer one
            is_whole = home.verify().is_whole
        ended["found"] += not is_whole
        home.put_back(content)
        told, noted = report(home)
        ended["noted" if noted else "right" if told == right else "silent"] += 1
        assert noted or told == right or not is_whole
    return ended


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE files SET named = '{', problems = 1",
        "UPDATE log_sessions SET facts = '{}'",
        "UPDATE files SET beside = 'zz:1' WHERE id = 1",
        "UPDATE meta SET value = '' WHERE name = 'snapshot'",
        "DELETE FROM labels",
        "DROP TABLE quarter_hours",
    ],
)
def test_no_report_fails_for_what_is_in_a_ledger(home, sql):
    """It gives numbers, and where it could not ask the ledger, says so."""
    change(home, sql)
    os.utime(home.at(home.logs()[0]))  # there is something to read
    (_, totals), _ = report(home)
    assert totals["requests"] >= 0
    assert home.verify().to_dict()["path"] == home.ledger


def test_p23_bit_flips_are_found(home):
    """Each of 25 that makes a report wrong; no report fails for one."""
    ended = flip(home, 25, seed=11)
    assert ended["right"] + ended["noted"] + ended["silent"] == 25
    assert ended["silent"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7])
def test_p23_every_bit_flip_is_found(home, seed):
    """Each of 500; what came of them is printed."""
    ended = flip(home, 500, seed=seed)
    print(ended)
    assert ended["silent"] <= 10
