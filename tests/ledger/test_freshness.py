"""Nothing has changed: known without any source, and never believed when something has."""

import os
import sqlite3
import subprocess
import sys

import pytest

from sessionlog.ledger.ask import Where, ask
from sessionlog.ledger.freshness import changed_logs
from sessionlog.sources.discover import discover
from sessionlog.sources.names import OURS
from tests.ledger.entries import PRICES
from tests.ledger.little_home import LittleHome
from tests.ledger.little_logs import PATHS, SIDE_FILE
from tests.ledger.little_reports import of_ledger, of_scan

NATIVE = "s/n1.jsonl"
AGENT = PATHS["claude"][1]


@pytest.fixture
def home(tmp_path):
    """A home with a ledger that is up to date."""
    home = LittleHome(tmp_path)
    home.append(NATIVE, [("answer", 1, 1)])
    home.append(AGENT, [("answer", 1, 1)])
    of_ledger(home, PRICES)
    return home


def unchanged(home, **env):
    """Whether the ledger believes that nothing has changed."""
    connection = sqlite3.connect(home.ledger)
    answer = changed_logs(connection, home.env | env, most=0) == []
    connection.close()
    return answer


def test_nothing_has_changed_after_a_sync(home):
    """Also when the same is asked of other books and by other questions."""
    assert unchanged(home)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)
    assert unchanged(home)


def test_a_new_ledger_knows_nothing(tmp_path):
    """All has to be looked at."""
    home = LittleHome(tmp_path)
    ask(Where(ledger=home.ledger, env=home.env, paths=None, prices=PRICES), lambda book: None)
    connection = sqlite3.connect(home.ledger)
    connection.execute("DELETE FROM meta WHERE name = 'snapshot'")
    assert changed_logs(connection, home.env, most=0) != []
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda home: home.append(NATIVE, [("answer", 1, 1)]),
        lambda home: home.stamp(NATIVE),
        lambda home: home.change_digit(NATIVE, 1),
        lambda home: home.delete(NATIVE),
        lambda home: home.append("s/deep/n2.jsonl", [("answer", 1, 1)]),
        lambda home: home.append(PATHS["codex"][0], [("count", 1, 1)]),
        lambda home: home.move(NATIVE, "s/deep/n2.jsonl"),
        lambda home: home.pack(NATIVE),
        lambda home: home.put("s/deeper/still/x.jsonl", b"", 1),
        lambda home: home.tell_kind("Explore"),
    ],
    ids=["grown", "touched", "rewritten", "deleted", "new", "new agent", "moved", "packed", "new folder", "side file"],
)
def test_every_change_is_seen(home, change):
    """Of a log, of a folder, of what is read beside a log."""
    change(home)
    assert not unchanged(home)
    assert of_ledger(home, PRICES, live=True) == of_scan(home, PRICES)


def test_another_installation_knows_nothing(home, tmp_path, monkeypatch):
    """It may have sources that this one lacks, or lack some."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("sys.path", [*sys.path, str(packages)])
        assert not unchanged(home)
    with monkeypatch.context() as patch:
        patch.setattr("sys.path", [path for path in sys.path if not path.endswith("-packages")])
        assert not unchanged(home)
    assert unchanged(home)


def test_a_variable_that_sources_ask_for_is_part_of_it(home):
    """Set, unset or another; one that nobody asks for is not."""
    assert not unchanged(home, CODEX_HOME="/other")
    assert not unchanged(home, XDG_CONFIG_HOME="/other")
    assert unchanged(home, NOBODY_ASKS="x")


def test_the_folder_we_are_in_matters_only_if_logs_are_in_it(home, tmp_path):
    """Nothing was there, so nothing has changed where nothing is either; and it may be any folder after that."""
    home.env["PWD"] = str(tmp_path)
    home.age_folders()
    of_ledger(home, PRICES)
    assert unchanged(home)
    other = tmp_path / "other"
    assert unchanged(home, PWD=str(other))
    (other / ".fizeau" / "sessions").mkdir(parents=True)
    assert not unchanged(home, PWD=str(other))
    assert unchanged(home)
    home.env["PWD"] = str(other)
    home.age_folders()
    of_ledger(home, PRICES)
    assert not unchanged(home, PWD=str(tmp_path))


def test_a_place_that_was_not_there_is_waited_for(home):
    """The first session of an agent that was installed since."""
    (home.folder / ".gemini" / "tmp").mkdir(parents=True)
    assert not unchanged(home)


def test_a_folder_that_changed_a_moment_ago_is_not_trusted(home):
    """A second change within a tick of its clock would not show."""
    os.utime(home.folder / "s")
    of_ledger(home, PRICES)
    assert not unchanged(home)
    home.age_folders()
    of_ledger(home, PRICES)
    assert unchanged(home)


def test_a_log_written_a_moment_ago_is_not_trusted(home):
    """It is read again until it is settled."""
    home.append(NATIVE, [("answer", 1, 1)], fresh=True)
    of_ledger(home, PRICES)
    assert not unchanged(home)


def test_a_log_that_comes_while_logs_are_listed_is_seen_next_time(home, monkeypatch):
    """Also in a folder that looks as if it had changed long ago, as unpacked and restored ones do."""
    late = PATHS["claude"][0]

    def listing(env, sources):
        yield from discover(env, sources)
        if not home.at(late).exists():
            home.append(late, [("answer", 2, 1)])

    home.append(PATHS["codex"][0], [("count", 0, 1)])
    monkeypatch.setattr("sessionlog.sources.discover.discover", listing)
    of_ledger(home, PRICES)
    assert home.at(late).exists()
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_another_version_lists_everything_anew(home, monkeypatch):
    """It may know more agents, and other places."""
    monkeypatch.setattr("sessionlog.ledger.freshness.__version__", "99")
    assert not unchanged(home)


def test_what_cannot_be_listed_is_said_every_time(home):
    """So nothing is remembered."""
    (home.folder / "s" / "gone.jsonl").symlink_to(home.folder / "s" / "gone.jsonl")
    home.age_folders()
    answer = of_ledger(home, PRICES)
    assert answer == of_scan(home, PRICES)
    assert of_ledger(home, PRICES) == answer


def test_a_side_file_is_watched(home):
    """It tells what kind of agent a log is of: here that it is none any more."""
    home.tell_kind("Explore")
    of_ledger(home, PRICES)
    assert unchanged(home)
    home.at(SIDE_FILE).write_bytes(b'{"agentType":"Plan"}')
    os.utime(home.at(SIDE_FILE), ns=(0, home.tick()))
    assert not unchanged(home)
    assert of_ledger(home, PRICES) == of_scan(home, PRICES)


def test_only_sources_with_a_folder_are_imported(home):
    """And nothing of them when nothing has changed."""
    code = (
        "import os, sys; from sessionlog.ledger.ask import Where, ask; "
        "ask(Where(ledger=sys.argv[1]), lambda book: None); "
        "print(*(name for name in sys.modules if name.startswith('sessionlog.sources.')))"
    )
    os.unlink(home.ledger)
    command = [sys.executable, "-c", code, home.ledger]
    found = []
    for _ in range(2):
        ran = subprocess.run(command, env={**home.env}, capture_output=True, text=True, check=True)
        modules = {f"sessionlog.sources.{source_id.replace('-', '_')}" for source_id in OURS}
        found.append({name.rpartition(".")[2] for name in modules.intersection(ran.stdout.split())})
    assert found == [{"native", "claude_code", "codex"}, set()]


def test_a_new_profile_is_noticed(home):
    """In the home folder, whose own time is not looked at: it may change with every file."""
    (home.folder / "notes.txt").touch()
    assert unchanged(home)
    (home.folder / ".openclaw-work" / "agents" / "main" / "sessions").mkdir(parents=True)
    assert not unchanged(home)
