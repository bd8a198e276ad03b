"""The index follows the logs: what is appended, changed, deleted or forgotten; it survives kills, damage and rivals."""

import json
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from unittest.mock import patch

import pytest

from sessionlog.archive.keep import archive_logs
from sessionlog.archive.manifest import archive_folder
from sessionlog.errors import LedgerUnusable, LogNotReadable
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.pricing.book import PriceBook
from sessionlog.search import candidates
from sessionlog.search import extract as extracting
from sessionlog.search import update as updating
from sessionlog.search.find import open_up_to_date
from sessionlog.search.segments import numbers_of
from sessionlog.search.store import index_path, open_index
from tests.reliability.children import fork, wait
from tests.search.transcripts import Home, answered, called, returned, said, session_id
from tests.turns import by_turns


@pytest.fixture
def home(tmp_path):
    """A home with two sessions."""
    made = Home(tmp_path)
    made.write(1, said("make the importer resume"), answered("I look at importer.py", 1))
    made.write(2, said("why does the importer crash", 2))
    return made


def counts(home):
    """(next number, dead numbers) of the index."""
    with sqlite3.connect(home.index) as index:
        found = dict(index.execute("SELECT name, value FROM meta"))
    index.close()
    return found["next"], found["dead"]


def test_newest_first(home):
    """All words have to be in one text."""
    assert home.texts("importer") == [
        "why does the importer crash",
        "I look at importer.py",
        "make the importer resume",
    ]
    assert home.texts("importer", "crash") == ["why does the importer crash"]


def test_of_very_many_hits_the_number_is_an_upper_bound(home):
    """Only the newest are read then; when all are asked for, it is exact."""
    with patch.object(candidates, "_MANY", 1):
        some, every = home.find("importer", limit=2), home.find("importer", limit=None)
    assert (len(some.hits), some.total, some.is_exact) == (2, 3, False)
    assert (len(every.hits), every.total, every.is_exact) == (3, 3, True)


@pytest.mark.parametrize("long", [False, True])
def test_what_is_appended_is_found(home, long):
    """Small logs are read again, long ones from where the last reading ended: nothing is indexed twice."""
    if long:
        home.write(1, *(said(f"filler number {n} " + "x y z " * 200, 3) for n in range(80)))
    home.find("importer")
    before, _ = counts(home)
    home.write(1, said("and now the exporter", 5), ago=8)
    assert home.texts("exporter") == ["and now the exporter"]
    assert counts(home) == (before + 1, 0)


def test_an_unfinished_row_is_found_once(home):
    """Also after it is finished."""
    home.write(2, said("the tail of the log", 9), end="")
    assert home.texts("tail") == ["the tail of the log"]
    with home.path(2).open("a") as file:
        file.write("\n")
    home.write(2, said("after the tail", 10), ago=5)
    assert home.texts("tail") == ["after the tail", "the tail of the log"]


def test_a_log_that_is_written_anew(home):
    """What it no longer has is not found; what it still has keeps its number."""
    home.find("importer")
    before, _ = counts(home)
    home.path(1).unlink()
    home.write(1, said("make the importer resume"), answered("Nothing to do", 1), ago=7)
    assert home.texts("py") == []
    assert home.texts("nothing") == ["Nothing to do"]
    assert counts(home) == (before + 1, 1)


def digests_of(index):
    """The rows of `digests`, and what they should be."""
    rows = index.execute("SELECT id, digests FROM segments").fetchall()
    expected = {(digest, segment) for segment, digests in rows for digest in numbers_of(digests)}
    return set(index.execute("SELECT digest, segment FROM digests")), expected


def test_the_segments_of_a_text_are_known(home):
    """Also after logs were written anew, or grew: no digest is left behind, none is missing."""
    home.find("importer")
    home.write(2, said("the tail of the log", 9), end="")
    home.find("importer")
    home.path(1).unlink()
    home.write(1, said("make the importer resume"), answered("Nothing to do", 1), ago=7)
    home.find("importer")
    index = sqlite3.connect(home.index)
    stored, expected = digests_of(index)
    index.close()
    assert stored == expected
    assert len(stored) == 4


def test_many_dead_words_are_removed(home):
    """The index is made anew from its own words: the logs are not needed."""
    home.find("importer")
    with patch.object(updating, "_MANY", 1):
        for number in range(6):
            home.path(2).unlink()
            home.write(2, said(f"attempt {number} to crash", 2), ago=7 - number)
            home.find("importer")
    assert counts(home)[1] < 4
    assert home.texts("importer") == ["I look at importer.py", "make the importer resume"]
    assert home.texts("attempt") == ["attempt 5 to crash"]


def test_a_deleted_log(home):
    """Its words are remembered; its texts come from the archive, if that has them."""
    home.find("importer")
    archive_logs(archive_folder(home.env), home.env, closed_ns=0)
    home.path(1).unlink()
    [hit] = home.find("resume").hits
    assert (hit.where, hit.item.text) == ("archive", "make the importer resume")
    os.rename(archive_folder(home.env), home.folder / "away")
    [hit] = home.find("resume").hits
    assert (hit.where, hit.item, hit.session.project) == ("index", None, "/src/api")
    assert home.find("importer resume").hits == ()  # a phrase cannot be checked


def test_a_log_that_the_ledger_forgets(home):
    """Is forgotten by the index, too."""
    home.find("importer")
    home.path(1).unlink()
    home.find("importer")
    book = open_ledger(home.place.ledger, PriceBook.load())
    book.forget(book.missing(1))
    book.close()
    assert home.texts("resume") == []
    assert counts(home)[1] == 2


@pytest.mark.parametrize("damage", ["bytes", "pages", "segments", "trigger"])
def test_a_damaged_index_is_made_anew(home, damage):
    """One sentence says so, and everything is found."""
    home.find("importer")
    start = {"bytes": 100, "pages": 8192}.get(damage)
    if start is not None:
        size = home.index.stat().st_size
        with home.index.open("r+b") as file:
            file.seek(start)
            file.write(b"\xa5" * (size - start))
    elif damage == "segments":
        index = sqlite3.connect(home.index)
        index.execute("UPDATE segments SET times = x'00'")
        index.commit()
        index.close()
    else:
        index = sqlite3.connect(home.index)
        index.execute("CREATE TRIGGER t AFTER INSERT ON logs BEGIN SELECT 1; END")
        index.commit()
        index.close()
    found = home.find("importer")
    assert len(found.hits) == 3
    [note] = found.notes
    assert note.startswith("the search index was damaged (")
    assert str(home.index) in note


def answers(home):
    """The hits of some searches with their texts and places, and the notes."""
    found = [home.find(*words, limit=None) for words in (("importer",), ("word7",), ("word3", "word5"))]
    hits = [(hit.session, hit.kind, hit.time_ns, hit.turn, hit.path, hit.text) for one in found for hit in one.hits]
    return hits, [one.total for one in found], [note for one in found for note in one.notes]


HEADER, BITS = 100, 200


@pytest.mark.parametrize("part", by_turns(range(20), 10))
def test_every_flipped_bit_leaves_right_hits(home, part):
    """Also after a log has grown; where the index was made anew a note has its path."""
    chance = random.Random(part)
    for log in range(3, 9):
        home.write(log, *(said(" ".join(f"word{chance.randrange(30)}" for _ in range(9)), n) for n in range(12)))
    hits, totals, _ = answers(home)
    with closing(sqlite3.connect(home.index)) as index:
        index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = home.index.read_bytes()
    bits = [chance.randrange(8 * HEADER), *(chance.randrange(8 * len(whole)) for _ in range(BITS // 20))]
    for bit in bits:
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        home.index.write_bytes(flipped)
        found, counted, notes = answers(home)
        assert (found, counted) == (hits, totals), bit
        assert len(notes) <= 1
        assert all(note.endswith(f"and is made anew: {home.index}") for note in notes)
    home.write(2, said("the importer again", 9), ago=5)
    assert len(home.texts("importer")) == 4


def test_damaged_digests_are_noticed_by_the_searches_that_need_them(home):
    """Which are those of very many hits with copies."""
    first = [said("set the budget", 1), answered("done", 2)]
    home.write(3, *first)
    begun = {"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-11-20T10:02:00.000Z"}
    home.write(4, begun, *({**row, "timestamp": "2026-11-20T10:00:30.000Z"} for row in first))
    with patch.object(candidates, "_MANY", 0):
        [hit] = home.find("budget").hits
        with closing(sqlite3.connect(home.index)) as index, index:
            index.execute("DELETE FROM digests WHERE segment = (SELECT min(segment) FROM digests)")
        found = home.find("budget")
    assert found.hits == (hit,)
    assert len(found.notes) == 1


def test_an_index_whose_update_was_killed_before_its_checksum_is_used(home):
    """It is whole; the next update gives it one."""
    with patch.object(updating, "store_checksums"):
        home.find("importer")
    assert len(home.find("importer").hits) == 3
    home.write(2, said("the importer again", 9), ago=5)
    found = home.find("importer")
    assert (len(found.hits), found.notes) == (4, ())
    with closing(sqlite3.connect(home.index)) as index:
        assert index.execute("SELECT count(*) FROM meta WHERE name = 'checksum'").fetchone() == (1,)


@pytest.mark.parametrize(("version", "word"), [(1, "an older"), (99, "another")])
def test_an_index_of_another_version_is_made_anew(home, version, word):
    """It is not damaged."""
    home.find("importer")
    index = sqlite3.connect(home.index)
    index.execute(f"PRAGMA user_version = {version}")
    index.close()
    found = home.find("importer")
    assert len(found.hits) == 3
    assert found.notes == (f"the search index was of {word} version and is made anew: {home.index}",)


def test_another_program_s_database_is_left_alone(home):
    """It is named, and keeps its rows."""
    other = sqlite3.connect(home.index)
    other.execute("CREATE TABLE important (x)")
    other.close()
    with pytest.raises(LedgerUnusable, match="another program's database"):
        home.find("importer")
    with closing(sqlite3.connect(home.index)) as other:
        assert other.execute("SELECT count(*) FROM important").fetchone() == (0,)


def test_a_link_is_refused(home):
    """Nothing is written through it."""
    home.index.symlink_to(home.folder / "elsewhere")
    with pytest.raises(LedgerUnusable, match="is a link"):
        home.find("importer")
    assert not (home.folder / "elsewhere").exists()


def test_the_index_is_private(home):
    """Nobody else may read what was said."""
    home.find("importer")
    assert home.index.stat().st_mode & 0o777 == 0o600


def test_two_at_once(home):
    """While another process writes, the search has what was there before, and says so."""
    home.find("importer")
    rival, _ = open_index(index_path(home.place.ledger))
    home.write(2, said("the importer again", 9), ago=5)
    rival.execute("BEGIN IMMEDIATE")
    found = home.find("importer")
    assert len(found.hits) == 3
    assert "another sessionlog" in found.notes[0]
    rival.execute("ROLLBACK")
    rival.close()
    assert len(home.find("importer").hits) == 4


def test_a_rival_has_read_the_same_log(home):
    """What another process has inserted meanwhile is not inserted twice."""

    def read_twice(jobs):
        found = list(updating.run_here(jobs))
        yield from found
        yield from found

    book = open_ledger(home.place.ledger, PriceBook.load())
    refresh(book, home.env)
    book.close()
    index, _ = open_index(index_path(home.place.ledger))
    updating.update(index, home.place.ledger, runner=read_twice)
    index.close()
    assert counts(home) == (4, 0)
    assert len(home.texts("importer")) == 3


@pytest.mark.parametrize("long", [False, True])
def test_a_rival_has_read_more_of_the_same_log(home, long):
    """What it has appended meanwhile is not appended twice, nor replaced by less."""
    if long:
        home.write(1, *(said(f"filler number {n} " + "x y z " * 200, 3) for n in range(80)))
    home.find("importer")
    before, _ = counts(home)
    home.write(1, said("and now the exporter", 5), ago=8)
    book = open_ledger(home.place.ledger, PriceBook.load())
    refresh(book, home.env)
    book.close()

    def read_before_a_rival(jobs):
        [job] = jobs
        assert (job.resume is not None) == long
        late = [*updating.run_here(jobs), *updating.run_here(jobs)]
        home.write(1, said("the exporter again", 6), ago=7)
        yield from (*updating.run_here(jobs), *late)

    with closing(open_index(index_path(home.place.ledger))[0]) as index:
        updating.update(index, home.place.ledger, runner=read_before_a_rival)
        items = index.execute("SELECT sum(count) FROM segments").fetchone()
    assert counts(home) == (before + 2, 0)
    assert items == (before + 1,)
    assert home.texts("exporter") == ["the exporter again", "and now the exporter"]


def test_an_unchanged_ledger_is_not_compared_again(home):
    """One that was written to a moment ago is, and so is every change."""
    home.find("importer")
    index, _ = open_index(index_path(home.place.ledger))

    def is_compared():
        with patch.object(updating, "read_only", wraps=updating.read_only) as compared:
            updating.update(index, home.place.ledger)
        return compared.called

    assert [is_compared(), is_compared()] == [True, True]
    Home.age(home.place.ledger, 60)
    rival, _ = open_index(index_path(home.place.ledger))
    rival.execute("BEGIN IMMEDIATE")
    started = time.perf_counter()
    assert [is_compared(), is_compared()] == [True, True]  # while another process writes, nothing is stored
    assert time.perf_counter() - started < 4
    rival.close()
    assert [is_compared(), is_compared()] == [True, False]
    ledger = sqlite3.connect(home.place.ledger, isolation_level=None)
    ledger.execute("DELETE FROM files WHERE path LIKE ?", (f"%{session_id(2)}%",))
    assert is_compared()  # before a checkpoint: the change is not in the file yet
    ledger.close()
    Home.age(home.place.ledger, 60)
    assert is_compared()
    assert index.execute("SELECT count(*) FROM logs").fetchone() == (1,)
    index.close()
    index.close()


def test_files_and_their_changes_are_items(home):
    """Paths are searched alone; otherwise a call is found once."""
    home.write(1, called("c1", "Edit", {"file_path": "/src/api/window.py", "old_string": "a", "new_string": "b"}, 3),
               returned("c1", "window.py was edited", 3))  # fmt: skip
    assert [hit.kind.name for hit in home.find("window", part="paths").hits] == ["PATHS"]
    assert sorted(hit.kind.name for hit in home.find("window").hits) == ["CALL", "RESULT"]


def index_until_killed(home):
    """What the child does."""
    with patch.object(updating, "BATCH", 1), open_up_to_date(home.place):
        time.sleep(60)


def kill_updates(home, count, seed):
    """Kill so many processes while they index; afterwards every text is found, once."""
    chance = random.Random(seed)
    sizes = {}
    for number in range(count):
        for log in range(10, 22):
            rows = [said(f"word{log}x{number}x{n} common", n) for n in range(20)]
            home.write(log, *rows, ago=5000 - number)
            sizes[log] = sizes.get(log, 0) + 20
        child = fork(lambda: index_until_killed(home))
        time.sleep(chance.random() * 0.12)
        os.kill(child, signal.SIGKILL)
        wait(child)
        if number % 5 == 1 or number == count - 1:
            found = home.find("common", limit=None)
            assert found.total == len(found.hits) == sum(sizes.values())
            index = sqlite3.connect(home.index)
            assert index.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            pairs, expected = digests_of(index)
            assert pairs == expected
            index.close()
            log = chance.choice(list(sizes))
            assert home.texts(f"word{log}x{number}x7") == [f"word{log}x{number}x7 common"]


def test_a_killed_search_leaves_a_right_index(home):
    """Two kills."""
    kill_updates(home, 2, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_killed_searches_leave_a_right_index(home):
    """Fifty kills."""
    kill_updates(home, 50, seed=2)


def test_texts_with_anything_in_them(home):
    """Lone surrogates, NULs and noncharacters: found by the words beside them."""
    for number, odd in enumerate(["\ud83d", "\x00", "\ufdd0", "\x1b[31m", "\u202e", "𝔘"]):
        home.write(30 + number, said(f"odd {odd} neighbour{number}", number))
    for number in range(6):
        assert len(home.find(f"neighbour{number}").hits) == 1
    assert json.dumps(home.texts("odd"))


def test_a_log_that_cannot_be_read_now(home):
    """What is known of it stays, and it is read again by the next search."""
    home.find("importer")
    home.write(1, said("the importer again", 9), ago=5)
    with patch.object(extracting, "_collect", side_effect=LogNotReadable("locked")):
        assert len(home.find("importer").hits) == 3
    assert len(home.find("importer").hits) == 4


def test_a_damaged_state_is_left(home):
    """A log whose reading cannot continue is read from its start."""
    home.write(1, *(said(f"filler number {n} " + "x y z " * 200, 3) for n in range(80)))
    home.find("importer")
    index = sqlite3.connect(home.index)
    index.execute("UPDATE logs SET state = x'c1'")
    index.commit()
    index.close()
    home.write(1, said("the importer again", 9), ago=5)
    assert len(home.find("importer").hits) == 4


def test_a_ledger_that_cannot_be_used(home):
    """Is named; the index is left alone."""
    home.find("importer")
    before = home.index.read_bytes()
    (home.folder / "ledger.sqlite3").write_bytes(b"SQLite format 3\0" + b"\xa5" * 5000)
    with pytest.raises(LedgerUnusable, match=r"ledger\.sqlite3"):
        home.find("importer")
    assert home.index.read_bytes() == before


def test_the_turn_of_a_fork_counts_what_it_copied(home):
    """As the page of the session and `diff` number its turns."""
    first = [said("set the budget configurable"), answered("done", 1)]
    home.write(3, *first)
    begun = {"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-11-20T10:02:00.000Z"}
    home.write(4, begun, *first, said("and document the zebra", 3), answered("zebra done", 4))
    assert [(hit.session.id, hit.turn) for hit in home.find("zebra").hits] == [(session_id(4), 2)] * 2
    assert [(hit.session.id, hit.turn) for hit in home.find("configurable").hits] == [(session_id(3), 1)]
