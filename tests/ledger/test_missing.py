"""Logs that are not listed: only those that were deleted count as deleted; what is out of reach counts as before."""

import errno
import os
import shutil
import time
from contextlib import contextmanager, nullcontext

import pytest

from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.missing import Known, Missing
from sessionlog.ledger.opening import open_ledger
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.schema import ELSEWHERE, GONE, HERE, UNREADABLE
from sessionlog.ledger.upkeep import find_forgettable, rebuild
from sessionlog.ledger.verify import compare_derived, verify_ledger
from sessionlog.pricing.book import PriceBook
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import PARENT
from tests.ledger.little_reports import of_ledger, of_scan
from tests.ledger.test_reading import has_news
from tests.reliability.children import in_child
from tests.reliability.seam import Double
from tests.sources.homes import build_home, environment

NATIVE, DEEP = "s/n1.jsonl", "s/deep/n2.jsonl"
CLAUDE = f"c/projects/-w-a/{PARENT}.jsonl"
SUMS = "SELECT SUM(requests), SUM(input), SUM(output), SUM(cost_nano) FROM records"
REASONS = {errno.EACCES: "permission denied", errno.EIO: "input/output error", errno.ESTALE: "stale file handle"}


@pytest.fixture
def home(tmp_path):
    """A home with three logs, and a ledger that has read them."""
    home = LittleHome(tmp_path)
    for path in (NATIVE, DEEP, CLAUDE):
        home.append(path, [("answer", 1, 3), ("answer", 1, 2)])
    of_ledger(home, PRICES)
    return home


@contextmanager
def failing(folder, number, calls=("stat", "lstat", "scandir", "listdir")):
    """A folder that the system cannot read, nor anything below it."""

    def watch(name, real, args, kwargs):
        path = os.fspath(args[0])
        if f"{path}/".startswith(f"{folder}/"):
            raise OSError(number, os.strerror(number), path)
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        double = Double(os, calls, watch)
        for module in ("files.paths", "files.reading", "reader.walk", "ledger.identity", "ledger.freshness"):
            patch.setattr(f"sessionlog.{module}.os", double)
        yield


def states(home):
    """Path inside the home → why it is missing."""
    book = open_ledger(home.ledger, PRICES)
    rows = book.query("SELECT path, missing FROM files", {})
    book.close()
    return {path.removeprefix(f"{home.folder}/"): missing for path, missing in rows}


def seen(home, **how):
    """What a report counts: requests, sessions of deleted logs, and its problems."""
    report = of_ledger(home, PRICES, **how)["reports"][0]
    first = [one.removeprefix(f"{home.folder}/") for one in report["problems"]["first"]]
    return report["totals"]["requests"], report["archived_sessions"], first


def forgettable(home):
    """How many logs `forget` would delete, and how many it leaves."""
    book = open_ledger(home.ledger, PRICES)
    found = find_forgettable(book)
    book.close()
    return len(found.gone), found.there


@pytest.mark.parametrize("number", REASONS)
@pytest.mark.parametrize(("folder", "lost"), [("s/deep", [DEEP]), ("s", [NATIVE, DEEP]), ("c", [CLAUDE])])
@pytest.mark.parametrize("live", [False, True])
def test_p23_a_folder_that_cannot_be_read_was_not_deleted(home, number, folder, lost, live):
    """Its records count as before, it is named each time, and nothing of it is forgotten."""
    before = seen(home)
    with failing(home.at(folder), number):
        for _ in range(2):
            counted, archived, problems = seen(home, live=live)
            assert (counted, archived) == before[:2]
            assert problems
            assert all(one.startswith(folder) and REASONS[number] in one for one in problems)
        assert {path for path, missing in states(home).items() if missing == UNREADABLE} == set(lost)
        assert forgettable(home) == (0, 3)
    assert seen(home) == before
    assert set(states(home).values()) == {HERE}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody")
@pytest.mark.parametrize("mode", [0o000, 0o111, 0o444, 0o333])
def test_a_mode_takes_no_record_away(home, mode):
    """Of a folder as another user sees it: without its names, without what is in it, or without both."""
    before = seen(home)
    top = home.ledger
    while top not in ("/", "/tmp", "/dev/shm"):
        top = os.path.dirname(top)
        os.chmod(top, os.stat(top).st_mode | 0o011)
    for folder, folders, names in os.walk(os.path.dirname(home.folder)):
        for path in (folder, *(os.path.join(folder, name) for name in (*folders, *names))):
            os.chown(path, 65534, 65534)
    os.utime(home.at("s"), ns=(0, home.tick()))  # so that all is listed
    os.chmod(home.at("s/deep"), mode)

    def as_nobody():
        os.setuid(65534)
        return [seen(home), seen(home), seen(home, live=True), states(home)[DEEP], forgettable(home)]

    *answers, state, forgotten = in_child(as_nobody)
    for counted, archived, problems in answers:
        assert [counted, archived, len(problems)] == [*before[:2], 1]
    assert (state, forgotten) == (UNREADABLE, [0, 3])


@pytest.mark.parametrize("is_left", [True, False])
def test_a_disk_that_is_away_was_not_emptied(home, is_left):
    """The place is empty or missing, and on another file system than the logs were."""
    before = seen(home)
    shutil.move(home.at("s"), home.at("disk"))
    if is_left:
        home.at("s").mkdir()
    home.age_folders()
    book = open_ledger(home.ledger, PRICES)
    book.connection.execute("UPDATE files SET device = device + 1 WHERE path LIKE '%/s/%'")
    book.close()
    for _ in range(2):
        counted, archived, [problem] = seen(home)
        assert (counted, archived) == before[:2]
        assert problem == "s unreadable the disk that its logs were on is not there"
        assert forgettable(home) == (0, 3)
    assert states(home) == {NATIVE: UNREADABLE, DEEP: UNREADABLE, CLAUDE: HERE}
    shutil.rmtree(home.at("s"), ignore_errors=True)
    shutil.move(home.at("disk"), home.at("s"))
    home.age_folders()
    assert seen(home) == before


def test_a_device_with_another_number_is_not_away_where_there_are_logs(home):
    """Numbers of devices may change when a machine starts: then one log of the place is enough."""
    home.delete(DEEP)
    book = open_ledger(home.ledger, PRICES)
    book.connection.execute("UPDATE files SET device = device + 1")
    book.close()
    assert seen(home)[1:] == (1, [])
    assert states(home) == {NATIVE: HERE, DEEP: GONE, CLAUDE: HERE}


def test_what_was_deleted_stays_deleted_when_a_disk_goes(home):
    """It was seen before that it is not there."""
    home.delete(NATIVE)
    home.delete(DEEP)
    assert seen(home)[1:] == (2, [])
    book = open_ledger(home.ledger, PRICES)
    book.connection.execute("UPDATE files SET device = device + 1")
    refresh(book, home.env, list_all=True)
    book.close()
    assert states(home) == {NATIVE: GONE, DEEP: GONE, CLAUDE: HERE}
    assert forgettable(home) == (2, 1)


def test_a_place_that_was_emptied_is_empty(home):
    """On the same disk: an agent deletes old logs, and their folders."""
    home.delete(NATIVE)
    shutil.rmtree(home.at("s/deep"))
    home.age_folders()
    assert seen(home)[1:] == (2, [])
    assert states(home) == {NATIVE: GONE, DEEP: GONE, CLAUDE: HERE}
    home.remove_folder()
    assert seen(home)[1:] == (3, [])


def test_a_log_that_was_deleted_is_not_forgotten_while_it_cannot_be_seen(home):
    """An older ledger may have taken it for deleted because of that."""
    home.delete(DEEP)
    seen(home)
    assert forgettable(home) == (1, 2)
    with failing(home.at("s/deep"), errno.EACCES):
        assert forgettable(home) == (0, 3)
        seen(home)
        assert states(home)[DEEP] == UNREADABLE
    seen(home)
    assert states(home)[DEEP] == GONE


def test_what_is_not_looked_for_is_elsewhere_even_if_it_cannot_be_read(home):
    """The place is another one now; where it is searched again, it counts."""
    before = seen(home)
    elsewhere = {**home.env, "SESSIONLOG_DIR": str(home.folder / "none")}
    with failing(home.at("s"), errno.EACCES):
        assert seen(home, env=elsewhere)[0] == of_scan(home, PRICES, env=elsewhere)["reports"][0]["totals"]["requests"]
        assert states(home)[DEEP] == ELSEWHERE
        assert seen(home)[:2] == before[:2]


def test_a_rebuild_and_a_verification_keep_what_is_out_of_reach(home):
    """There is no difference with what can be read; a rebuild drops none of the rest."""
    before = seen(home)
    with failing(home.at("s"), errno.EIO):
        assert seen(home)[:2] == before[:2]
        assert verify_ledger(home.ledger, PRICES, home.env).is_whole
        rebuilt = rebuild(home.ledger, PRICES, home.env)
        assert (rebuilt.synced.missing, rebuilt.synced.failed) == (0, 2)
        assert seen(home)[:2] == before[:2]
        assert verify_ledger(home.ledger, PRICES, home.env).is_whole
    assert seen(home) == before
    book = open_ledger(home.ledger, PRICES)
    assert not list(compare_derived(book.copy()))
    book.close()


def test_a_report_without_news_does_not_leave_out_what_is_out_of_reach(home):
    """As long as something is, all is listed, so that it is named."""
    prices = PriceBook.load()
    of_ledger(home, prices)
    assert not has_news(home)
    with failing(home.at("s"), errno.EIO):
        of_ledger(home, prices)
        assert has_news(home)
    of_ledger(home, prices)
    assert not has_news(home)


@pytest.mark.parametrize("calls", [("stat", "scandir", "listdir"), ("scandir",)])
def test_a_log_that_is_a_folder_is_named_too(tmp_path, calls):
    """OpenCode's of old: its sidecars are found by listing it."""
    root = build_home("opencode/legacy-files", tmp_path / "home")
    env = environment("opencode/legacy-files", root)
    [folder, *_] = sorted(path for path in root.rglob("storage/message/*") if path.is_dir())
    path = str(tmp_path / "ledger" / "ledger.db")
    answers = []
    for number in (0, errno.EIO, errno.EIO, 0):
        with failing(folder, number, calls) if number else nullcontext():
            book = open_ledger(path, PRICES)
            refresh(book, env, list_all=True)
            counted = book.query("SELECT SUM(requests) FROM records", {})
            answers.append((counted, book.problem_count > 0))
            book.close()
    [(requests,)] = answers[0][0]
    assert requests
    assert answers == [(answers[0][0], is_named) for is_named in (False, True, True, False)]


def test_many_logs_below_many_folders_that_cannot_be_read():
    """Each log is compared with the folders above it, not with all of those."""
    missing = Missing(["/p"], set(), [f"/p/{number}" for number in range(5_000)])
    before = time.thread_time()
    whys = [missing.why(Known(f"/p/{number}/a/s.jsonl", number, HERE, 0)) for number in range(10_000)]
    assert time.thread_time() - before < 5
    assert whys == [UNREADABLE] * 5_000 + [GONE] * 5_000


def test_a_database_beside_logs_that_is_gone_is_remembered(tmp_path):
    """Copilot's store: the sums of a log count what is beyond its rows, also when it is there no more."""
    case = "copilot/sums-beyond-the-store"
    folder = build_home(case, tmp_path)
    env, ledger = environment(case, folder), str(tmp_path / "ledger.db")

    def totals():
        with open_ledger(ledger, PRICES) as book:
            synced = refresh(book, env)
            return synced, book.query(SUMS, {})

    _, before = totals()
    store = folder / ".copilot" / "session-store.db"
    content = store.read_bytes()
    store.unlink()
    assert totals()[1] == before
    os.utime(store.parent, (1, 1))
    totals()
    assert totals() == (None, before)
    store.write_bytes(content)
    assert totals()[1] == before


def test_a_sub_agents_log_that_comes_late_counts_once(tmp_path):
    """Prime Agent's: a session counts what a sub-agent has used until its log has it, and after it is deleted."""
    case = "pi/prime-children"
    folder = build_home(case, tmp_path)
    env, ledger = environment(case, folder), str(tmp_path / "ledger.db")
    [log] = folder.rglob("01a0a000-8888*.jsonl")
    content = log.read_bytes()

    def check():
        sums, expected = (
            ask(Where(ledger=path, env=env, prices=PRICES, live=True), lambda book: book.query(SUMS, {}))
            for path in (ledger, None)
        )
        assert sums == expected

    for number, some in enumerate((content[: len(content) // 3], content), 2):
        log.write_bytes(some)
        os.utime(log, (number, number))
        check()
    log.unlink()
    os.utime(log.parent, (5, 5))
    check()
