"""A ledger's file that cannot be trusted: the report comes from the logs, one sentence says why, and the file stays."""

import os
import random
import sqlite3
import stat

import pytest

from sessionlog import aggregate_usage
from sessionlog.cli.ledger import usable
from sessionlog.cli.output import Exit
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import APPLICATION, VERSION
from sessionlog.ledger.upkeep import rebuild
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import NOW, PATHS
from tests.ledger.little_reports import counted, of_ledger, of_scan

PAGE = 4096


@pytest.fixture
def home(tmp_path):
    """A home with a ledger of its logs, whose file holds everything."""
    home = LittleHome(tmp_path)
    for paths in PATHS.values():
        for path in paths:
            kind = {"s": "answer", "c": "calls", "x": "count"}[path[0]]
            home.append(path, [(kind, number % 4, 1 + number) for number in range(8)])
    of_ledger(home, PRICES)
    connection = sqlite3.connect(home.ledger)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return home


def asked(home):
    """A usage report of the ledger, in one word for each model, and its notes."""
    report = aggregate_usage(env=home.env, ledger=home.ledger, jobs=1, prices=PRICES, now=NOW)
    return report.to_dict(), report.notes


def of_memory(home):
    """The same of the logs."""
    return aggregate_usage(env=home.env, jobs=1, prices=PRICES, now=NOW).to_dict()


def files_of(home):
    """Name → bytes and mode of all that is in the ledger's folder."""
    folder = os.path.dirname(home.ledger)
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            found[name] = file.read(), os.lstat(path).st_mode
    return found


def check_unused(home, because):
    """The report is that of the logs, it says in one sentence why, and nothing was changed."""
    before = files_of(home)
    report, notes = asked(home)
    assert report == of_memory(home)
    [note] = notes
    assert because in note
    assert "\n" not in note
    assert files_of(home) == before


def write_ledger(home, content):
    """Put other bytes where the ledger was."""
    with open(home.ledger, "wb") as file:
        file.write(content)


def read_ledger(home):
    """The ledger's bytes."""
    with open(home.ledger, "rb") as file:
        return bytearray(file.read())


def test_random_bytes_are_no_ledger(home):
    """Whatever they are, somebody may miss them."""
    write_ledger(home, random.Random(1).randbytes(50_000))
    check_unused(home, "not a database")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_is_left_as_it_is(home, share):
    """What is left may be read by other tools."""
    content = read_ledger(home)
    write_ledger(home, content[: int(len(content) * share)])
    check_unused(home, "malformed")


def test_an_empty_file_becomes_a_ledger(home):
    """There is nothing in it to lose: a crash may have left it."""
    write_ledger(home, b"")
    report, notes = asked(home)
    assert (report, notes) == (of_memory(home), ())
    assert read_ledger(home)[:15] == b"SQLite format 3"


@pytest.mark.parametrize("byte", range(0, 100, 7))
def test_a_damaged_header_is_never_fatal(home, byte):
    """The report is that of the logs, whether SQLite minds the byte or not."""
    content = read_ledger(home)
    content[byte] ^= 0x55
    write_ledger(home, content)
    before = files_of(home)
    report, notes = asked(home)
    assert report == of_memory(home)
    assert len(notes) <= 1
    assert not notes or files_of(home) == before


def test_damaged_pages_are_never_fatal(home):
    """Zeros where tables were: the report comes from the logs or is right all the same."""
    content = read_ledger(home)
    expected = of_memory(home)
    for page in range(1, len(content) // PAGE):
        damaged = bytearray(content)
        damaged[page * PAGE : page * PAGE + PAGE] = bytes(PAGE)
        write_ledger(home, damaged)
        report, notes = asked(home)
        assert len(notes) <= 1
        if notes:
            assert report == expected, page
            assert read_ledger(home) == damaged, page


def test_another_programs_database_is_left_alone(home):
    """It is named, and it is not filled with our tables."""
    os.remove(home.ledger)
    connection = sqlite3.connect(home.ledger)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    check_unused(home, "another program's database")


def test_a_newer_ledger_is_left_to_newer_versions(home):
    """An older sessionlog beside a newer one reads the logs."""
    connection = sqlite3.connect(home.ledger)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    check_unused(home, f"newer sessionlog (version {VERSION + 1}, known is {VERSION})")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_p15_a_file_that_others_may_write_to_is_not_believed(home):
    """They could write what they like into our reports."""
    os.chmod(home.ledger, 0o660)
    check_unused(home, "others may write to")


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_p15_a_folder_that_others_may_write_to_is_not_believed(home):
    """They could put another file there."""
    os.chmod(os.path.dirname(home.ledger), 0o770)
    check_unused(home, "others may write to")


def test_p15_a_link_is_not_followed(home):
    """Neither to a ledger nor to anything else."""
    target = f"{home.ledger}.target"
    os.rename(home.ledger, target)
    os.symlink(target, home.ledger)
    check_unused(home, "is a link")


def test_a_link_to_nowhere_makes_no_file(home):
    """What it names is not made."""
    os.remove(home.ledger)
    os.symlink(f"{home.ledger}.nowhere", home.ledger)
    report, notes = asked(home)
    assert report == of_memory(home)
    assert len(notes) == 1
    assert not os.path.exists(f"{home.ledger}.nowhere")


def test_a_folder_in_its_place_is_named(home):
    """A ledger is a file."""
    os.remove(home.ledger)
    os.mkdir(home.ledger)
    report, notes = asked(home)
    assert (report, len(notes)) == (of_memory(home), 1)
    assert os.listdir(home.ledger) == []


def test_a_file_where_its_folder_should_be_is_named(home):
    """It cannot be made there."""
    home.ledger = f"{home.ledger}/deeper/ledger.db"
    report, notes = asked(home)
    assert (report, len(notes)) == (of_memory(home), 1)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody")
def test_a_folder_that_cannot_be_written_to_costs_only_the_ledger(home):
    """A home that is mounted for reading alone still has reports."""
    from tests.reliability.children import in_child

    folder = os.path.dirname(home.ledger)
    os.chmod(folder, 0o555)
    os.chown(home.ledger, 65534, 65534)
    os.chown(folder, 65534, 65534)
    top = os.path.dirname(folder)
    while top not in ("/", "/tmp"):
        os.chmod(top, os.stat(top).st_mode | 0o055)
        top = os.path.dirname(top)
    home.append("s/n1.jsonl", [("answer", 1, 1)])
    before, expected = files_of(home), of_memory(home)

    def as_nobody():
        os.setuid(65534)
        report, notes = asked(home)
        return [report, list(notes)]

    report, notes = in_child(as_nobody)
    assert report == expected
    assert len(notes) == 1
    assert files_of(home) == before


@pytest.mark.skipif(os.name != "posix", reason="only POSIX limits the size of files")
def test_a_full_disk_is_no_damage(home, capsys):
    """The report comes from the logs, and the note names the disk, as `ledger sync` does."""
    import resource

    from tests.reliability.children import in_child

    home.append("s/n1.jsonl", [("answer", 1, 1)])

    def with_a_full_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE, PAGE))
        report, notes = asked(home)
        with pytest.raises(Exit), usable(home.ledger), open_ledger(home.ledger) as book:
            refresh(book, home.env)
        return [report, list(notes), capsys.readouterr().err]

    report, [note], shown = in_child(with_a_full_disk)
    assert report == of_memory(home)
    assert note.startswith(f"the ledger is not used: {home.ledger}: ")
    assert note.endswith("; make sure that its disk has room and can be written to")
    assert shown.endswith("; make sure that its disk has room and can be written to\n")
    assert asked(home) == (report, ())


def test_a_ledger_says_what_it_is(home):
    """So that others, and later versions, can tell."""
    book = open_ledger(home.ledger, PRICES)
    assert book.connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    assert book.connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    book.close()
    assert os.stat(home.ledger).st_mode & 0o077 == 0


def test_what_cannot_be_opened_is_refused_by_name(tmp_path):
    """With its path and what to do."""
    path = tmp_path / "ledger.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(LedgerUnusable, match=r"ledger\.db"):
        open_ledger(str(path), PRICES)


def test_a_ledger_that_is_fine_is_used(home):
    """Else the tests above would show nothing."""
    assert of_ledger(home, PRICES)["notes"] == []
    assert counted(of_ledger(home, PRICES)) == counted(of_scan(home, PRICES))


@pytest.mark.parametrize("place", ["a pipe", "a device"])
def test_p13_what_is_no_regular_file_is_not_opened(home, place):
    """Nobody waits for a writer that never comes."""
    os.unlink(home.ledger)
    if place == "a pipe":
        os.mkfifo(home.ledger, 0o600)
    else:
        make_device(home.ledger)
    report, notes = asked(home)
    assert report == of_memory(home)
    assert notes == (f"the ledger is not used: {home.ledger} is not a regular file",)
    with pytest.raises(LedgerUnusable, match="is not a regular file"):
        open_ledger(home.ledger, write=False)


def make_device(path):
    """The device that every system has."""
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        pytest.skip("devices are made by root")


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("what", ["a link", "a link to nowhere", "a pipe", "a folder"])
def test_p13_what_lies_beside_a_ledger_is_a_file_too(home, tmp_path, suffix, what):
    """Nothing is written through a link there."""
    victim, beside = tmp_path / "victim", home.ledger + suffix
    if what == "a link":
        victim.write_text("mine")
    if "link" in what:
        os.symlink(victim, beside)
    elif what == "a pipe":
        os.mkfifo(beside)
    else:
        os.mkdir(beside)
    report, notes = asked(home)
    assert report == of_memory(home)
    assert notes == (f"the ledger is not used: {beside} is not a regular file of yours; remove it",)
    assert not victim.exists() or victim.read_text() == "mine"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("CREATE TRIGGER later AFTER INSERT ON files BEGIN DELETE FROM log_sessions; END", "the trigger later"),
        ("CREATE VIEW mine AS SELECT 1", "the view mine"),
        ("DROP VIEW records; CREATE VIEW records AS SELECT * FROM responses WHERE 0", "the view records"),
    ],
)
def test_p15_code_in_a_ledger_is_not_run(home, code, name):
    """A trigger or view that we did not make could change every number; a rebuilt ledger is without it."""
    connection = sqlite3.connect(home.ledger)
    connection.executescript(code)
    connection.close()
    report, notes = asked(home)
    assert report == of_memory(home)
    assert notes == (
        f"the ledger is not used: {home.ledger}: {name} is not ours; `sessionlog ledger rebuild` makes a ledger without it",
    )
    with pytest.raises(LedgerUnusable, match=name):
        open_ledger(home.ledger, write=False)
    rebuild(home.ledger, PRICES, home.env)
    assert asked(home) == (of_memory(home), ())
