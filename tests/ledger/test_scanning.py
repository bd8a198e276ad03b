"""Where a scan goes on, and how a log is known again."""

import gzip
import os
import time
from zlib import crc32

import pytest
from msgspec.structs import replace

from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.ledger.identity import STABLE_AFTER_NS
from sessionlog.ledger.scanning import PRINT, Ends, Job, head_of, scan_job, tail_of
from sessionlog.sources.registry import load_source, source_of
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import PARENT

CLAUDE = f"c/projects/-w-a/{PARENT}.jsonl"


@pytest.fixture
def home(tmp_path):
    """A home with a log of thirty responses."""
    home = LittleHome(tmp_path)
    home.append(CLAUDE, [("answer", number, 3) for number in range(30)])
    return home


def job(home, scanned=None, **fields):
    """A job for the log; going on from what a scan gave."""
    known = {"number": 7, "source": "claude-code", "path": str(home.at(CLAUDE)), "size": 1}
    if scanned is not None:
        known |= {"resume": scanned.scan.resume, "prefix": scanned.prefix}
    return Job(**known | fields)


def responses(scanned):
    """How many records a scan gave."""
    return sum(len(session.records) for session in scanned.scan.sessions)


def test_a_log_is_read_whole_at_first(home):
    """And known again by its looks, its first bytes and its last."""
    scanned = scan_job(job(home))
    size = home.at(CLAUDE).stat().st_size
    assert (scanned.number, scanned.from_start, scanned.settled, responses(scanned)) == (7, True, True, 30)
    assert (scanned.identity[2], scanned.scan.resume.offset) == (size, size)
    assert scanned.head == head_of(str(home.at(CLAUDE)), PRINT)
    assert scanned.print == tail_of(str(home.at(CLAUDE)), size)


def test_only_what_was_appended_is_read(home):
    """The records of what was there are not given again, unless they have got more rows."""
    first = scan_job(job(home))
    home.append(CLAUDE, [("answer", 40, 3), ("answer", 41, 3)])
    scanned = scan_job(job(home, first))
    assert (scanned.from_start, responses(scanned)) == (False, 2)


def test_a_source_may_read_all_of_a_log_again(home):
    """What was appended changes what it gave before."""
    first = scan_job(job(home))
    source = load_source("claude-code")
    scan = replace(source, scan=lambda path, _: replace(source.scan(path, None), full_rescan=True))
    assert not scan_job(job(home, first)).from_start
    scanned = scan_job(job(home, first), scan)
    assert (scanned.from_start, responses(scanned)) == (True, 30)


@pytest.mark.parametrize("place", [0, 100, 4100, 5000, -5000, -100, -1])
def test_other_bytes_anywhere_are_read_from_the_start(home, place):
    """Not only at the beginning, and where the scan would go on."""
    first = scan_job(job(home))
    content = bytearray(home.at(CLAUDE).read_bytes())
    content[place] ^= 1
    home.at(CLAUDE).write_bytes(content)
    home.append(CLAUDE, [("answer", 41, 3)])
    assert scan_job(job(home, first)).from_start


def test_a_log_of_which_nothing_is_known_is_read_from_the_start(home):
    """Not even its first bytes: it was empty, or could not be read."""
    first = scan_job(job(home))
    assert scan_job(job(home, first, prefix="")).from_start


def test_a_log_written_a_moment_ago_is_not_settled(home):
    """The clock of its file system may not have ticked since."""
    now = time.time_ns()
    path = str(home.at(CLAUDE))
    os.utime(path, ns=(now, now))
    assert not scan_job(job(home)).settled
    os.utime(path, ns=(now, now + 10**12))
    assert not scan_job(job(home)).settled
    os.utime(path, ns=(now, now - STABLE_AFTER_NS - 10**9))
    assert scan_job(job(home)).settled


def test_a_torn_last_line_is_read_again(home):
    """What is known ends before it."""
    size = home.at(CLAUDE).stat().st_size
    home.append(CLAUDE, [("answer", 41, 3)], torn=True)
    first = scan_job(job(home))
    assert (first.scan.resume.offset, first.scan.problems.count) == (size, 1)
    home.append(CLAUDE, [])
    scanned = scan_job(job(home, first))
    assert (scanned.from_start, responses(scanned), scanned.scan.problems.count) == (False, 1, 0)


def test_a_log_that_is_looked_at_once_is_not_made_known(home):
    """Its ends are not read for nothing."""
    scanned = scan_job(job(home, again=False))
    assert (scanned.head, scanned.print, scanned.prefix, responses(scanned)) == ("", "", "", 30)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LogNotReadable("it: is away"), "unreadable"),
        (MissingExtra("needs more"), "unreadable"),
        (ZeroDivisionError("oh"), "source_failed"),
    ],
)
def test_what_cannot_be_scanned_is_a_problem(home, error, kind):
    """Whatever a source raises, the others go on."""

    def scan(path, resume):
        raise error

    scanned = scan_job(job(home), replace(load_source("claude-code"), scan=scan))
    [problem] = scanned.scan.problems.first
    assert (scanned.failed, problem.kind, problem.path) == (True, kind, str(home.at(CLAUDE)))


def test_a_log_that_is_gone_failed(home):
    """It vanished between the listing and the reading."""
    home.delete(CLAUDE)
    scanned = scan_job(job(home))
    assert (scanned.identity, scanned.settled, scanned.failed) == (None, False, True)


def test_our_sources_are_known_by_their_ids():
    """Without asking other packages."""
    assert source_of("codex") is load_source("codex")


def test_a_packed_log_is_known_by_what_it_says(tmp_path):
    """Head and tail are those of the bytes unpacked."""
    content = bytes(range(256)) * 5000
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for end in (0, 1, PRINT, PRINT + 1, 1_200_000, len(content), len(content) + 9):
        assert tail_of(str(plain), end) == tail_of(str(packed), end) or end == 0, end
        assert head_of(str(plain), end) == head_of(str(packed), end)
    for path in plain, packed:
        with Ends(str(path)) as ends:
            ends.head(PRINT)
            assert ends.tail(None) == (len(content), tail_of(str(plain), len(content)))


def test_the_checksum_is_of_every_byte_before_an_offset(tmp_path):
    """Whether it is asked for at once or as a log grows, and in any order."""
    content = bytes(range(256)) * 1024
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    offsets = (len(content) // 2, len(content), len(content) - 1, 70_000)
    expected = [f"{offset}:{crc32(content[:offset]):08x}" for offset in offsets]
    with Ends(str(path)) as ends:
        assert [ends.prefix(offset) for offset in offsets] == expected
        assert ends.prefix(len(content) + 1) == ""


def test_what_cannot_be_read_has_no_ends(tmp_path):
    """No file, a folder, a packed file that is none: nothing is concluded from them."""
    for path in (tmp_path / "none", tmp_path, tmp_path / "none.gz"):
        assert {head_of(str(path), 9), tail_of(str(path), 9)} == {""}
