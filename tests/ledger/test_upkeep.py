"""Upkeep: backups overwrite nothing, rebuilding loses nothing that can be read, forgetting forgets what is gone."""

import os
import random
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger import upkeep
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.summary import summarise_ledger
from sessionlog.ledger.upkeep import back_up, find_forgettable, forget, rebuild
from tests.ledger.aged_home import AgedHome
from tests.ledger.entries import PRICES
from tests.ledger.little_logs import NOW

PAGE = 4096
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAMAGED = "ledger.db.damaged-20261121T120000Z"


@pytest.fixture
def home(tmp_path):
    """A home with a past."""
    return AgedHome(tmp_path)


def report(home):
    found = aggregate_usage(env=home.env, ledger=home.ledger, prices=PRICES, now=NOW, by=("source", "model")).to_dict()
    return found["rows"], found["totals"], found["archived_sessions"]


def rebuilt(home):
    return rebuild(home.ledger, PRICES, home.env, now=NOON)


def kept(home):
    """What is in the ledger's folder."""
    return sorted(path.name for path in Path(home.ledger).parent.iterdir() if not path.name.endswith(("-shm", "-wal")))


# --- backup


def test_a_backup_is_the_ledger(home, tmp_path):
    """One private file, as good as the first; who asks it gets the same numbers."""
    with home.opened() as book:
        size = back_up(book, str(tmp_path / "copy"))
    assert os.path.getsize(tmp_path / "copy") == size
    assert stat.S_IMODE(os.stat(tmp_path / "copy").st_mode) == 0o600
    right = report(home)
    home.put_back((tmp_path / "copy").read_bytes())
    assert report(home) == right
    assert home.verify().is_whole


def test_a_backup_holds_what_is_not_in_the_file_yet(home, tmp_path):
    """What was committed is in it, also while it stands only in the write-ahead log."""
    with home.opened() as book:
        book.connection.execute("PRAGMA wal_autocheckpoint = 0")
        book.connection.execute("BEGIN IMMEDIATE")
        book.set_meta("noted", "just now")
        book.commit()
        back_up(book, str(tmp_path / "copy"))
    with_it = open_ledger(str(tmp_path / "copy"), PRICES)
    assert with_it.meta("noted") == "just now"
    with_it.close()


def test_a_backup_overwrites_nothing(home, tmp_path):
    """A file, the ledger itself, a link that leads nowhere."""
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with home.opened() as book:
        for name in (tmp_path / "there", home.ledger, tmp_path / "link"):
            with pytest.raises(LedgerUnusable, match="there is a file already"):
                back_up(book, str(name))
        with pytest.raises(LedgerUnusable, match="no backup: no such file"):
            back_up(book, str(tmp_path / "no" / "folder"))
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


# --- rebuild


def test_a_rebuild_reads_every_log_that_is_there(home):
    """In the same file; numbers stay, also those of logs that are gone."""
    right, summary = report(home), summarise_ledger(home.ledger)
    found = rebuilt(home)
    assert (found.damaged, found.rescued) == ("", None)
    assert found.synced.read == found.synced.files == len(home.logs())
    assert report(home) == right
    assert summarise_ledger(home.ledger).total == summary.total
    assert kept(home) == ["ledger.db"]
    assert home.verify().is_whole


def test_a_rebuild_puts_right_what_was_wrong(home):
    """Numbers of logs that are there, and all that is derived."""
    right = report(home)
    with home.opened() as book:
        book.connection.execute("BEGIN IMMEDIATE")
        there = "file_id IN (SELECT id FROM files WHERE NOT missing)"
        book.connection.execute(f"UPDATE responses SET output = output * 3, counts = 1 WHERE {there}")
        book.connection.execute("DELETE FROM quarter_hours WHERE rowid % 2")
        book.connection.execute("UPDATE all_sessions SET end_status = 'error'")
        book.commit()
    assert not home.verify().is_whole
    rebuilt(home)
    assert report(home) == right
    assert home.verify().is_whole


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM labels",
        "DELETE FROM names",
        "DELETE FROM all_sessions",
        "DELETE FROM files",
        "DELETE FROM files WHERE missing; UPDATE log_sessions SET facts = '{'",
        "UPDATE log_sessions SET facts = '{}' WHERE file_id IN (SELECT id FROM files WHERE missing)",
    ],
)
def test_a_rebuild_leaves_no_row_that_refers_to_a_lost_one(home, sql):
    """Whatever is missing in a file that SQLite finds whole: then it verifies, and reports are made from it."""
    right = report(home)[1]["requests"]
    with home.opened() as book:
        book.connection.executescript(sql)
    assert not home.verify().is_whole
    found = rebuilt(home)
    assert (found.damaged, found.synced.read) == ("", len(home.logs()))
    assert home.verify().is_whole
    remembered = "DELETE FROM files WHERE missing" not in sql
    assert (report(home)[1]["requests"] == right) == remembered


def test_a_ledger_that_is_not_there_is_made(home):
    """As a first sync would make it."""
    os.unlink(home.ledger)
    assert rebuilt(home).synced.read == len(home.logs())
    assert home.verify().is_whole


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_ledger_is_kept_and_all_that_can_be_read_is_in_the_new_one(home, seed):
    """Any page may be overwritten: logs that are there are read anew, of those that are gone what is left is kept."""
    right = report(home)
    draw = random.Random(seed)
    content = bytearray(home.files[""])
    page = draw.randrange(len(content) // PAGE)
    content[page * PAGE : (page + 1) * PAGE] = draw.randbytes(PAGE)
    home.put_back(bytes(content))
    found = rebuilt(home)
    assert Path(found.damaged).name == DAMAGED
    assert Path(found.damaged).read_bytes() == bytes(content)
    assert stat.S_IMODE(os.stat(found.damaged).st_mode) == 0o600
    assert found.synced.read == len(home.logs())
    assert home.verify().is_whole
    now = report(home)
    # The page may have held what was remembered alone: its requests are lost, and their copies count for them.
    assert abs(now[1]["requests"] - right[1]["requests"]) <= 4


def test_what_only_the_ledger_remembers_survives_damage_elsewhere(home):
    """A page of cells is lost: nothing else is."""
    right = report(home)
    [(page,)] = home.ask("SELECT rootpage FROM sqlite_schema WHERE name = 'quarter_hours'")
    content = bytearray(home.files[""])
    content[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    home.put_back(bytes(content))
    found = rebuilt(home)
    assert found.rescued.lost == 0
    assert report(home) == right


@pytest.mark.parametrize("table", ["labels", "names", "all_sessions"])
def test_records_stay_where_the_rows_that_name_them_are_lost(home, table):
    """A label that is lost is unknown; a session is known by what its logs say."""
    right = report(home)
    pages = [page for (page,) in home.ask(f"SELECT rootpage FROM sqlite_schema WHERE tbl_name = '{table}'")]
    content = bytearray(home.files[""])
    for page in pages:
        content[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    home.put_back(bytes(content))
    found = rebuilt(home)
    assert found.rescued.records > 0
    assert home.verify().is_whole
    assert report(home)[1]["requests"] == right[1]["requests"]


def test_a_log_whose_own_row_is_lost_is_known_by_its_session(home):
    """By its path, of which the facts of the session know."""
    right = report(home)
    [(page,)] = home.ask("SELECT rootpage FROM sqlite_schema WHERE name = 'files'")
    content = bytearray(home.files[""])
    content[(page - 1) * PAGE : page * PAGE] = bytes(PAGE)
    home.put_back(bytes(content))
    rebuilt(home)
    assert report(home)[1]["requests"] == right[1]["requests"]


def test_without_the_beginning_of_the_file_there_are_the_logs_and_the_damaged_file(home):
    """Where SQLite cannot open it nothing comes from it: for what deleted logs left there are backups."""
    damaged = b"\xff" * PAGE + home.files[""][PAGE:]
    home.put_back(damaged)
    found = rebuilt(home)
    assert found.rescued.records == 0
    assert Path(found.damaged).read_bytes() == damaged
    live = aggregate_usage(env=home.env, prices=PRICES, now=NOW, by=("source", "model")).to_dict()
    assert report(home) == (live["rows"], live["totals"], 0)


def test_a_second_damaged_file_gets_a_name_of_its_own(home):
    """No damaged file is overwritten by the next one."""
    damaged = bytes(8192) + home.files[""][8192:]
    for _ in range(2):
        home.put_back(damaged)
        rebuilt(home)
    assert [name for name in kept(home) if "damaged" in name] == [DAMAGED, f"{DAMAGED}.1"]


def test_a_rebuild_that_fails_leaves_the_damaged_file(home, monkeypatch):
    """It is as it was, and nothing half made is left."""
    damaged = bytes(8192) + home.files[""][8192:]
    home.put_back(damaged)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(upkeep, "_take_place", refuse)
    with pytest.raises(LedgerUnusable, match="not rebuilt: no space left on device; it is as it was"):
        rebuilt(home)
    assert Path(home.ledger).read_bytes() == damaged
    assert not any(name.endswith(".new") for name in kept(home))


def test_what_is_not_ours_is_not_rebuilt(home):
    """A newer ledger is whole, only not for us."""
    with home.opened() as book:
        book.connection.execute("BEGIN IMMEDIATE")
        book.connection.execute("PRAGMA user_version = 99")
        book.commit()
    with pytest.raises(LedgerUnusable, match="newer"):
        rebuilt(home)
    assert kept(home) == ["ledger.db"]


# --- forget


def found(home, **what):
    with home.opened() as book:
        return find_forgettable(book, **what)


def test_only_logs_that_are_gone_can_be_forgotten(home):
    """Those that are there would come back, and are counted."""
    everything = found(home)
    assert (len(everything.gone), everything.there) == (2, len(home.logs()))
    assert everything.records == summarise_ledger(home.ledger).total.archived_records > 0


@pytest.mark.parametrize(("pattern", "gone"), [("codex", 1), (" Claude* ", 1), ("native", 0), ("nobody", 0)])
def test_logs_are_chosen_by_their_source(home, pattern, gone):
    """By patterns, as everywhere."""
    assert len(found(home, sources=[pattern]).gone) == gone


def test_logs_are_chosen_by_their_last_record(home):
    """A log that told something at that time or later stays whole."""
    last = dict(home.ask("SELECT file_id, MAX(time_ns) FROM responses GROUP BY 1"))
    for file_id in found(home).gone:
        assert file_id in found(home, before_ns=last[file_id] + 1).gone
        assert file_id not in found(home, before_ns=last[file_id]).gone


def test_a_log_without_times_is_as_old_as_its_file(home):
    """When it was last written."""
    [log, *_] = found(home).gone
    with home.opened() as book:
        book.connection.execute("BEGIN IMMEDIATE")
        for table in ("responses", "calls"):
            book.connection.execute(f"UPDATE {table} SET time_ns = NULL WHERE file_id = {log}")
        book.commit()
    [(written,)] = home.ask(f"SELECT mtime_ns FROM files WHERE id = {log}")
    assert log not in found(home, before_ns=written).gone
    assert log in found(home, before_ns=written + 1).gone


def test_what_is_forgotten_is_gone_from_reports_and_from_the_file(home):
    """Its records, its sessions, and the bytes of its names; the rest is as if it had never been."""
    [(path,)] = home.ask("SELECT path FROM files WHERE missing AND source = 'codex'")
    with home.opened() as book:
        assert forget(book, find_forgettable(book)) == 2
    content = Path(home.ledger).read_bytes()
    assert path.encode() not in content
    assert summarise_ledger(home.ledger).total.archived_files == 0
    live = aggregate_usage(env=home.env, prices=PRICES, now=NOW, by=("source", "model")).to_dict()
    assert report(home) == (live["rows"], live["totals"], 0)
    assert home.verify().is_whole
