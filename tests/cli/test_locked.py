"""A database that another program has locked is named as such, in every command that reads it."""

import os
import pathlib
import sqlite3

import pytest

from sessionlog import SessionLogger
from sessionlog.cli import main
from tests.sources.homes import build_home

LOCKED = "locked by another program; close it, or try again when it has finished"


@pytest.fixture
def database(home, tmp_path, monkeypatch):
    """The path of a locked database, in the folder where Kilo keeps it; beside it a log of ours."""
    made = build_home("kilo/v1-database", tmp_path / "made")
    path = made / ".local/share/kilo/kilo.db"
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setattr("sessionlog.reader.database.open_database.__kwdefaults__", {"wait_seconds": 0.05})
    with SessionLogger(made / ".sessionlog" / "sessions", "good") as log:
        log.emit("llm.response", {"usage": {"input": 5, "output": 6}, "model": "m-1", "provider": "p"})
    monkeypatch.setenv("SESSIONLOG_DIR", str(made / ".sessionlog" / "sessions"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield str(path)
    connection.close()


@pytest.mark.parametrize(
    "command",
    ["usage", "sessions", "tools", "blocks", "replay", "check", "context", "status", "routing-quality", "diff"],
)
def test_a_locked_database_that_is_named_is_said_to_be_locked(database, capsys, command):
    """The command ends with 3, and the sentence is what to do."""
    arguments = [command, database, database] if command == "diff" else [command, database]
    assert main(arguments) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith(f"kilo.db: {LOCKED}\n")
    assert "no log of a known agent" not in shown.err


@pytest.mark.parametrize("command", [["usage"], ["usage", "--no-ledger"], ["sessions"], ["check"]])
def test_a_locked_database_of_a_home_is_one_place_among_others(database, capsys, command):
    """The other logs are there, and this one is named."""
    assert main(command) == (1 if command == ["check"] else 0)
    shown = capsys.readouterr()
    assert LOCKED in " ".join((shown.out + shown.err).split())
    assert ("m-1" if command[0] == "usage" else "good" if command[0] == "sessions" else "logs") in shown.out


def test_a_search_names_the_place_that_it_leaves_out(database, capsys):
    """Whether something is found, or not."""
    assert main(["find", "good"]) == 1
    assert main(["find", "good"]) == 1
    shown = capsys.readouterr()
    assert shown.err.count(f"1 place could not be read ({database}: {LOCKED})") == 2


@pytest.mark.parametrize("command", [["status"], ["watch", "--once"], ["status", "--no-ledger"]])
def test_what_shows_one_session_names_the_place_too(database, capsys, command):
    """Once, with its path."""
    assert main(command) == 0
    assert main(command) == 0  # nothing has changed since
    shown = capsys.readouterr()
    text = " ".join((shown.out + shown.err).split())
    assert text.count(f"could not be read ({database}") == 2


def test_the_line_names_it_where_there_is_room(database, capsys, monkeypatch):
    """Its path alone."""
    for columns, count in (("200", 1), ("30", 0)):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["status", "--line"]) == 0
        assert capsys.readouterr().out.count("cannot read ") == count


def test_damage_and_places_that_cannot_be_read_are_two_things(database, capsys):
    """A torn line elsewhere does not hide which database is locked."""
    folder = pathlib.Path(os.environ["SESSIONLOG_DIR"])
    log = (folder / "good.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "good.jsonl").write_bytes(b"".join([log[0], b"{torn\n", *log[1:]]))
    assert main(["usage"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"1 place could not be read ({database}" in text
    assert "1 damaged piece skipped (good.jsonl:2)" in text
