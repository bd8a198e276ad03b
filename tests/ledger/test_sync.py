"""What a sync does with each log: nothing, its new rows, all of it, or it lets go of it."""

import os
import re
import sqlite3
from contextlib import ExitStack, closing, suppress
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable
from sessionlog.ledger import scanning
from sessionlog.ledger import sync as syncing
from sessionlog.ledger.book import Book
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import changed_logs, refresh
from sessionlog.ledger.sync import scan_here, sync
from sessionlog.ledger.upkeep import rebuild
from sessionlog.pricing.book import PriceBook
from sessionlog.sources import discover as discovery
from sessionlog.sources import registry
from sessionlog.sources.discover import discover
from sessionlog.sources.registry import all_sources
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import OTHER, PARENT, PATHS
from tests.ledger.little_reports import counted, of_ledger, of_scan
from tests.ledger.test_ledger_machine import DEARER

NATIVE, SECOND = "s/n1.jsonl", "s/deep/n2.jsonl"
LATE = PATHS["codex"][0]
CLAUDE, FORK = f"c/projects/-w-a/{PARENT}.jsonl", f"c/projects/-w-a/{OTHER}.jsonl"


class Stopped(BaseException):
    """What ends a process."""


@pytest.fixture
def home(tmp_path):
    """A home with one log of sessionlog's own and one of Claude Code's."""
    home = LittleHome(tmp_path)
    home.append(NATIVE, [("answer", 1, 3)])
    home.append(CLAUDE, [("answer", 1, 3)])
    return home


def jobs_of(home, **how):
    """Path inside the home → its job, of a report's sync."""
    found = {}

    def scanner(jobs, sources, prices):
        found.update({job.path.removeprefix(f"{home.folder}/"): job for job in jobs})
        return scan_here(jobs, sources, prices)

    of_ledger(home, PRICES, scanner=scanner, **how)
    return found


def requests(home):
    """How many requests the ledger counts, those of logs that are gone included."""
    return of_ledger(home, PRICES)["reports"][0]["totals"]["requests"]


def archived(home):
    """How many sessions the ledger alone remembers."""
    return of_ledger(home, PRICES)["reports"][0]["archived_sessions"]


def failing(path, *, times=1):
    """Sources of which one log cannot be read so many times."""
    left = [times]

    def broken(source):
        def scan(asked, resume):
            if asked == str(path) and left[0]:
                left[0] -= 1
                raise LogNotReadable(f"{asked}: a broken disk")
            return source.scan(asked, resume)

        return replace(source, scan=scan)

    sources = tuple(map(broken, all_sources()))
    known = {source.id: source for source in sources}
    stack = ExitStack()
    stack.enter_context(patch.object(registry, "sources_there", lambda _: sources))
    stack.enter_context(patch.object(registry, "source_of", known.__getitem__))
    return stack


def test_what_is_settled_and_unchanged_is_not_read(home):
    """A second report asks only how the logs look; also when everything has to be listed anew."""
    assert set(jobs_of(home)) == {NATIVE, CLAUDE}
    assert jobs_of(home) == {}
    book = open_ledger(home.ledger, PRICES)
    assert refresh(book, home.env, list_all=True).read == 0
    book.close()


def test_what_was_written_a_moment_ago_is_read_again(home):
    """It may have changed without looking so."""
    home.stamp(CLAUDE, fresh=True)
    jobs_of(home)
    assert set(jobs_of(home)) == {CLAUDE}


def test_what_was_touched_is_read_again(home):
    """Nothing is believed for looking nearly the same."""
    jobs_of(home)
    home.stamp(CLAUDE)
    assert jobs_of(home)[CLAUDE].resume is None


def test_what_has_grown_is_read_on(home):
    """From where the last scan ended."""
    jobs_of(home)
    size = home.at(CLAUDE).stat().st_size
    home.append(CLAUDE, [("answer", 2, 3)])
    assert jobs_of(home)[CLAUDE].resume.offset == size
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_native_session_that_runs_is_read_on(home):
    """Until its end says what all of it used; and again when it goes on after that."""
    jobs_of(home)
    for rows, is_read_on in (
        ([("asked", 1, 1), ("answer", 1, 3)], True),
        ([("cheap", 1, 2), ("tool", 1, 5), ("noise", 0, 3)], True),
        ([("end", 1, 9)], True),
        ([("answer", 1, 3), ("answer", 1, 2)], False),
        ([("answer", 1, 2)], True),
        ([("paid", 1, 9)], True),
        ([("answer", 1, 2)], False),
        ([("answer", 1, 2), ("noise", 0, 1)], True),
    ):
        home.append(NATIVE, rows)
        resume = jobs_of(home)[NATIVE].resume
        assert (resume is not None) == is_read_on, rows
        assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_what_has_grown_as_another_file_is_read_anew(home):
    """Other bytes under the same name: a restored or rewritten log."""
    jobs_of(home)
    home.change_digit(CLAUDE, 3)
    home.append(CLAUDE, [("answer", 2, 3)])
    assert jobs_of(home)[CLAUDE].resume is not None
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_log_that_is_gone_is_remembered(home):
    """And left out of what is live."""
    jobs_of(home)
    assert archived(home) == 0
    home.delete(NATIVE)
    assert (requests(home), archived(home)) == (2, 1)
    assert of_ledger(home, PRICES, live=True) == of_scan(home, PRICES)


def test_a_log_that_moved_is_let_go_of(home):
    """Its new name tells all that the old one told."""
    jobs_of(home)
    home.move(NATIVE, SECOND)
    assert requests(home) == 2
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_log_that_was_packed_is_let_go_of(home):
    """Packed or not, it is the same log."""
    jobs_of(home)
    home.pack(NATIVE)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_log_that_moved_over_another_is_let_go_of(home):
    """It counts under the name that it has now, not under both; what was there before was overwritten."""
    home.append(SECOND, [("answer", 1, 5), ("answer", 1, 5)])
    assert requests(home) == 4
    home.move(SECOND, NATIVE)
    assert requests(home) == 3
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_log_that_moved_is_let_go_of_although_a_sync_ended_early(home):
    """Whatever was committed when."""
    jobs_of(home)
    home.move(NATIVE, SECOND)
    home.append(CLAUDE, [("answer", 2, 3)])

    def scanner(jobs, sources, prices):
        yield from scan_here([job for job in jobs if job.path.endswith("n2.jsonl")], sources, prices)
        raise Stopped

    with patch.object(syncing, "BATCH", 0), pytest.raises(Stopped):
        of_ledger(home, PRICES, scanner=scanner)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_fork_does_not_take_the_place_of_what_it_was_forked_from(home):
    """It begins like the other for longer than what a log is known by, and has not all of it."""
    home.append(CLAUDE, [("answer", number, 3) for number in range(2, 20)])
    jobs_of(home)
    assert home.at(CLAUDE).stat().st_size > 8192
    home.copy(CLAUDE, FORK, 15)
    home.append(FORK, [("prompt", number, 1) for number in range(30)])
    home.delete(CLAUDE)
    assert requests(home) == 20


def test_a_fork_of_a_log_without_a_place_to_go_on_does_not_take_its_place(home):
    """The same for logs that are always read whole."""
    home.append(NATIVE, [("answer", number, 3) for number in range(2, 50)])
    jobs_of(home)
    assert home.at(NATIVE).stat().st_size > 4096
    home.copy(NATIVE, SECOND, 45)
    home.append(SECOND, [("noise", number, 1) for number in range(30)])
    home.delete(NATIVE)
    assert requests(home) == 1 + 49 + 44


@pytest.mark.parametrize("log", [NATIVE, CLAUDE])
def test_a_packed_log_that_is_gone_is_remembered_where_a_new_one_begins_like_it(home, log):
    """For longer than what a log is known by at its beginning: a long prompt, or a part of what was there."""
    new = {NATIVE: SECOND, CLAUDE: FORK}[log]
    home.append(log, [("answer", number, 3) for number in range(2, 60)])
    home.pack(log)
    before = requests(home)
    home.copy(f"{log}.gz", f"{new}.gz", 40)
    assert len(home.content(f"{new}.gz")) > 4096
    home.delete(f"{log}.gz")
    assert requests(home) == before + (39 if log == NATIVE else 0)
    assert of_ledger(home, PRICES, live=True) == of_scan(home, PRICES)


@pytest.mark.parametrize("log", [NATIVE, CLAUDE])
@pytest.mark.parametrize("rows", [1, 3, 60])
def test_a_packed_log_that_moved_or_was_unpacked_is_let_go_of(home, log, rows):
    """Whatever its length, also after all logs were read again."""
    new = {NATIVE: SECOND, CLAUDE: FORK}[log]
    home.append(log, [("answer", number, 3) for number in range(2, 2 + rows)])
    home.pack(log)
    jobs_of(home)
    home.move(f"{log}.gz", f"{new}.gz")
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    rebuild(home.ledger, PRICES, home.env)
    content, status = home.content(f"{new}.gz"), home.at(f"{new}.gz").stat()
    home.at(f"{new}.gz").unlink()
    home.put(new, content, status.st_mtime_ns)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


@pytest.mark.parametrize("row", [("answer", 2, 2), ("paid", 1, 9)])
@pytest.mark.parametrize("late", [False, True])
def test_a_fork_that_is_gone_is_remembered_when_its_origin_grows(home, row, late):
    """Also where all of the origin is read again: it was there, so the fork has not become it."""
    home.append(NATIVE, [("answer", 1, 3), ("answer", 1, 3)])
    home.copy(NATIVE, SECOND, 3)
    jobs_of(home)
    home.delete(SECOND)
    if late:
        home.append(CLAUDE, [("answer", 2, 3)])
        jobs_of(home)
    home.append(NATIVE, [row])
    assert archived(home) == 1


def test_a_log_that_comes_back_counts_as_there(home):
    """A backup was restored, or a disk is there again."""
    jobs_of(home)
    home.delete(NATIVE)
    jobs_of(home)
    home.restore(NATIVE)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_what_is_known_of_a_log_that_cannot_be_read_stays(home):
    """The report says that it could not be read, and the next one tries again."""
    jobs_of(home)
    home.append(CLAUDE, [("answer", 2, 3)])
    with failing(home.at(CLAUDE)):
        answer = of_ledger(home, PRICES)
        assert answer["reports"][0]["totals"]["requests"] == 2
        assert answer["reports"][0]["problems"]["count"] == 1
        assert set(jobs_of(home)) == {CLAUDE}
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_log_that_was_never_readable_is_tried_again(home):
    """Nothing is known of it, not even that it is there."""
    with failing(home.at(CLAUDE)):
        assert of_ledger(home, PRICES)["reports"][0]["problems"]["count"] == 1
        assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_scan_is_discarded_if_somebody_else_has_read_the_log_meanwhile(home):
    """Whose scan is entered second saw the log earlier: compare and swap."""
    jobs_of(home)
    home.append(CLAUDE, [("answer", 2, 3)])
    home.append(NATIVE, [("answer", 2, 3)])

    def scanner(jobs, sources, prices):
        scans = list(scan_here(jobs, sources, prices))
        yield scans[0]  # committed, so that another process can write now
        home.append(CLAUDE, [("answer", 3, 3)])
        home.append(NATIVE, [("answer", 3, 3)])
        assert of_ledger(home, PRICES) == of_scan(home, PRICES)
        yield from scans[1:]

    with patch.object(syncing, "BATCH", 0):
        answer = of_ledger(home, PRICES, scanner=scanner)
    assert answer == of_scan(home, PRICES)


def test_a_first_run_keeps_what_it_has_read_so_far(home):
    """It is committed in batches: one that is broken off need not begin again."""
    seen = []

    def scanner(jobs, sources, prices):
        for scan in scan_here(jobs, sources, prices):
            yield scan
            with closing(sqlite3.connect(home.ledger)) as connection:
                seen.append(connection.execute("SELECT COUNT(*) FROM files").fetchone()[0])

    with patch.object(syncing, "BATCH", 0):
        answer = of_ledger(home, PRICES, scanner=scanner)
    assert seen == list(range(1, len(seen) + 1))
    assert answer == of_scan(home, PRICES)


def test_only_a_whole_sync_says_when_it_was(home):
    """Reports ask for that: what was committed on the way is not all."""

    def said():
        with closing(sqlite3.connect(home.ledger)) as connection:
            return connection.execute("SELECT value FROM meta WHERE name = 'synced'").fetchall()

    seen = []

    def scanner(jobs, sources, prices):
        for scan in scan_here(jobs, sources, prices):
            yield scan
            seen.append(said())

    with patch.object(syncing, "BATCH", 0):
        of_ledger(home, PRICES, scanner=scanner)
    assert seen
    assert not any(seen)
    [(when,)] = said()
    assert int(when) > 0


def test_an_interrupted_sync_leaves_what_was_there(home):
    """Half of it never shows."""
    before = of_ledger(home, PRICES)
    home.append(CLAUDE, [("answer", 2, 3)])

    def scanner(jobs, sources, prices):
        yield from scan_here(jobs, sources, prices)
        raise Stopped

    with pytest.raises(Stopped):
        of_ledger(home, PRICES, scanner=scanner)
    connection = sqlite3.connect(home.ledger)
    assert connection.execute("SELECT SUM(requests) FROM quarter_hours").fetchone() == (2,)
    connection.close()
    home.at(CLAUDE).unlink()
    home.age_folders()
    assert counted(of_ledger(home, PRICES)) == counted(before)


def test_prices_that_changed_in_a_sync_that_ended_early_are_not_mixed_with_others(home):
    """All of a book is priced by one list, whoever looks next."""
    of_ledger(home, PRICES)
    home.append(NATIVE, [("answer", 2, 3)])
    real = Book.reprice

    def reprice(book, prices):
        if book.meta("synced") != before:
            raise Stopped
        real(book, prices)

    connection = sqlite3.connect(home.ledger)
    [(before,)] = connection.execute("SELECT value FROM meta WHERE name = 'synced'")
    connection.close()
    with patch.object(Book, "reprice", reprice), suppress(Stopped):
        of_ledger(home, DEARER)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_progress_counts_every_log(home):
    """All of them, or those that have changed where no other can be new."""
    steps = []
    of_ledger(home, PRICES)
    home.append(CLAUDE, [("answer", 2, 3)])
    of_ledger(home, PRICES, progress=lambda *step: steps.append(step))
    assert steps == [(1, 1)]
    steps.clear()
    home.append(SECOND, [("answer", 1, 3)])
    of_ledger(home, PRICES, progress=lambda *step: steps.append(step))
    assert steps[-1] == (3, 3)


def test_a_sync_says_what_it_did(home):
    """How many logs there are, were read, are gone, and could not be read."""
    book = Book(PRICES)
    sources = all_sources()

    def told():
        done = sync(book, list(discover(home.env, sources)))
        return done.files, done.read, done.missing, done.failed

    assert told() == (2, 2, 0, 0)
    assert told() == (2, 0, 0, 0)
    home.delete(NATIVE)
    assert told() == (1, 0, 1, 0)
    book.close()


def test_what_another_process_enters_meanwhile_is_not_judged(home, monkeypatch):
    """It was not listed, for it was not there: that does not make it a log of another place."""
    of_ledger(home, PRICES)
    home.append(SECOND, [("answer", 2, 1)])

    def listing(env, sources):
        yield from [item for item in discover(env, sources) if not item.path.endswith(LATE)]
        if not home.at(LATE).exists():
            home.append(LATE, [("count", 3, 1)])
            with monkeypatch.context() as patched:
                patched.setattr(discovery, "discover", discover)
                assert of_ledger(home, PRICES) == of_scan(home, PRICES)

    monkeypatch.setattr(discovery, "discover", listing)
    of_ledger(home, PRICES)
    monkeypatch.undo()
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_what_is_left_to_read_is_a_jobs_size(home):
    """By it a scan decides whether processes pay: a log that has grown by a line is not worth one."""
    first = jobs_of(home)[CLAUDE]
    before = home.at(CLAUDE).stat().st_size
    home.append(CLAUDE, [("answer", 2, 3)])
    [grown] = jobs_of(home).values()
    assert (first.size, grown.size) == (before, home.at(CLAUDE).stat().st_size - before)


def test_the_damage_of_a_packed_log_is_named_once(home):
    """Behind it nothing goes on: who did would come upon the same damage, and name it again."""
    packed = PATHS["codex"][2] + ".gz"
    home.append(packed, [("count", 0, 1)])
    whole = len(home.at(packed).read_bytes())
    home.append(packed, [("call", 1, 3), ("count", 1, 8), ("call", 2, 8)])
    behind = home.at(packed).read_bytes()[: whole + 60]
    home.put(packed, behind, home.tick())
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    home.append(packed, [("count", 2, 3)])
    assert jobs_of(home)[packed].resume is None
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_where_to_go_on_is_not_kept_of_small_logs(home, monkeypatch):
    """They are read whole again: that costs less."""
    monkeypatch.setattr(scanning, "SMALL_LOG", 64 << 10)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    connection = sqlite3.connect(home.ledger)
    assert connection.execute("SELECT COUNT(*) FROM resumes").fetchone() == (0,)
    connection.close()
    home.append(CLAUDE, [("answer", 2, 3)])
    assert jobs_of(home)[CLAUDE].resume is None


def test_where_to_go_on_is_not_kept_of_logs_that_are_done(home, monkeypatch):
    """Nobody has written to them for a day; one that grows after all is read whole, and is then known."""
    monkeypatch.setattr(scanning, "GROWS_NS", 86_400 * 10**9)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    home.append(CLAUDE, [("answer", 2, 3)])
    assert jobs_of(home)[CLAUDE].resume is None
    for number, is_known in ((3, False), (4, True)):
        home.append(CLAUDE, [("answer", number, 3)], fresh=True)
        assert (jobs_of(home)[CLAUDE].resume is not None) is is_known


def test_a_log_that_has_come_to_be_elsewhere_does_not_count_and_reports_stay_fast(home):
    """What is known of it is kept for when it is looked for again."""
    prices = PriceBook.load()
    there = of_ledger(home, prices)
    elsewhere = {**home.env, "CLAUDE_CONFIG_DIR": str(home.folder / "none")}
    others = of_ledger(home, prices, env=elsewhere)
    assert others == of_scan(home, prices, env=elsewhere) != there
    with open_ledger(home.ledger, write=False) as book:
        assert changed_logs(book, elsewhere) == []
    assert of_ledger(home, prices) == there


def test_a_log_that_has_grown_while_it_was_elsewhere_counts_whole(home):
    """What was read of it before, and what is read now."""
    of_ledger(home, PRICES)
    home.append(CLAUDE, [("answer", 7, 3)])
    of_ledger(home, PRICES, env={**home.env, "CLAUDE_CONFIG_DIR": str(home.folder / "none")})
    assert jobs_of(home)[CLAUDE].resume is not None
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


# --- doubt means reading again


def rewritten(home, path, old, new):
    """Other bytes of the same length in place, with the size and the mtime that there were."""
    before = home.at(path).stat()
    content = home.at(path).read_bytes()
    assert content.count(old) == 1
    assert len(old) == len(new)
    with home.at(path).open("r+b") as file:
        file.write(content.replace(old, new))
    os.utime(home.at(path), ns=(before.st_atime_ns, before.st_mtime_ns))


def made_anew(home, path, old, new):
    """Deleted and written again: the file system may give it the inode that there was."""
    before = home.at(path).stat()
    content = home.at(path).read_bytes().replace(old, new)
    home.at(path).unlink()
    home.at(path).write_bytes(content)
    os.utime(home.at(path), ns=(before.st_atime_ns, before.st_mtime_ns))


def rewritten_in_the_middle(home, path, old, new):
    """And then a row is appended: what was read before is not what is there."""
    rewritten(home, path, old, new)
    home.append(path, [("answer", 99, 1)])


@pytest.mark.parametrize("change", [rewritten, made_anew, rewritten_in_the_middle])
def test_p23_a_log_that_was_rewritten_is_read_again(home, change):
    """Whatever it looks like, the ledger says what a scan of the logs says."""
    home.append(CLAUDE, [("answer", number, 7) for number in range(2, 60)])
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    line = [line for line in home.at(CLAUDE).read_bytes().splitlines() if b'"output_tokens"' in line][30]
    digit = re.search(rb'"output_tokens": ?\d*(\d)', line).start(1)
    change(home, CLAUDE, line, b"%b%d%b" % (line[:digit], 9 - int(line[digit : digit + 1]), line[digit + 1 :]))
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_a_long_log_is_known_by_blocks_of_it(home, monkeypatch):
    """Beyond 16 MiB: here beyond 4 KiB, so that every fourth kilobyte of this one is looked at."""
    monkeypatch.setattr("sessionlog.ledger.scanning._SUMMED_WHOLE", 4096)
    test_p23_a_log_that_was_rewritten_is_read_again(home, rewritten_in_the_middle)


def test_p23_a_log_that_is_back_and_cannot_be_read_counts_as_it_was_read(home):
    """It was elsewhere for a while, and what is known of it did not count then."""
    there = of_ledger(home, PRICES)
    of_ledger(home, PRICES, env=home.env | {"CLAUDE_CONFIG_DIR": str(home.folder / "none")})
    home.stamp(CLAUDE)
    with failing(home.at(CLAUDE), times=9):
        assert counted(of_ledger(home, PRICES)) == counted(there)
