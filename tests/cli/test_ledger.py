"""`sessionlog ledger`: what it keeps, whether it is right, and how it is kept."""

import os
import random
import re
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from sessionlog.cli import app
from sessionlog.ledger.schema import VERSION

WHEN = ("--now", "2026-11-21T12:00:00Z", "--tz", "UTC")


@pytest.fixture
def kept(home, record):
    """Our own three logs in the usual place."""
    folder = home / ".local" / "state" / "sessionlog" / "sessions"
    record(folder, "s-first", start="2026-11-19T23:30:00Z")
    record(folder, "s-second", status="error", cost=0.25)
    record(folder, "s-third", start="2026-09-01T10:00:00Z")
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture
def book(home):
    """Where the ledger is unless told otherwise."""
    return home / ".local" / "share" / "sessionlog" / "ledger.sqlite"


def damage(book):
    """Overwrite the middle of a page of records."""
    connection = sqlite3.connect(book)
    [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'responses'")
    connection.close()
    content = bytearray(book.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    book.write_bytes(content)


# --- help


@pytest.mark.parametrize("part", app.SUBCOMMANDS["ledger"])
def test_every_part_has_help_with_an_example(cli, part):
    """And says what it does in one line of the overview."""
    ran = cli("ledger", part, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: sessionlog ledger {part} " in ran.out
    assert re.search(rf"^  Example: sessionlog ledger {part}\b", ran.out, re.MULTILINE)
    assert "--json " in ran.out
    assert "--ledger FILE" in ran.out
    assert re.search(
        rf"^  {part} +{re.escape(app.SUBCOMMANDS['ledger'][part])}$", cli("ledger", "--help").out, re.MULTILINE
    )


@pytest.mark.parametrize("columns", ["80", "60"])
@pytest.mark.parametrize("part", app.SUBCOMMANDS["ledger"])
def test_help_of_parts_fits_the_terminal(cli, monkeypatch, part, columns):
    """Lines fit, and no word is cut."""
    monkeypatch.setenv("COLUMNS", columns)
    text = cli("ledger", part, "--help").out
    assert max(map(len, text.splitlines())) <= int(columns)


def test_options_may_stand_before_a_part(cli, kept):
    """They count as behind it; a value that is called as a part is a value."""
    other = kept / "other.sqlite"
    assert cli("ledger", "--ledger", other, "sync", "--json").json["path"] == str(other)
    assert cli("ledger", "--json", "--ledger", "verify").json["path"].endswith("verify")


def test_a_part_that_does_not_exist(cli):
    """Wrong usage, with the next step."""
    ran = cli("ledger", "verfy")
    assert (ran.code, ran.out) == (2, "")
    assert "'verfy'. Did you mean 'verify'?" in ran.err
    assert "Try: sessionlog ledger --help" in ran.err


# --- ledger, sync


def test_none_yet(cli, home, book):
    """It says where it would be, and makes none."""
    ran = cli("ledger", *WHEN)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Ledger · ~/.local/share/sessionlog/ledger.sqlite\nthere is none yet")
    assert cli("ledger", "--json").json["exists"] is False
    assert not book.exists()


def test_a_sync_says_what_it_read(cli, kept, book):
    """Everything at first, then nothing, then what is new; reports find it done."""
    assert cli("ledger", "sync") == (0, "3 logs: 3 read\n", "")
    assert cli("ledger", "sync") == (0, "3 logs: 0 read\n", "")
    (kept / "s-third.jsonl").unlink()
    assert cli("ledger", "sync", "--jobs", "2") == (0, "2 logs: 0 read, 1 gone since the last time\n", "")
    assert cli("ledger", "sync", "--json").json == {
        "schema": "sessionlog.ledger.sync/1",
        "path": str(book),
        "synced": {"files": 2, "read": 0, "missing": 0, "failed": 0},
    }
    assert cli("usage", "--json").json["totals"]["sessions"] == 3


def test_what_is_kept_and_what_is_remembered_alone(cli, kept):
    """A table by agent, the time of the last sync, and what no log has any more."""
    cli("ledger", "sync")
    (kept / "s-third.jsonl").unlink()
    cli("ledger", "sync")
    ran = cli("ledger", *WHEN)
    assert (ran.code, ran.err) == (0, "")
    assert f"schema version {VERSION}" in ran.out
    assert "oldest record 1 Sep 10:00" in ran.out
    assert re.search(r"^native +3 +3 +3 +1 +1 +1$", ran.out, re.MULTILINE)
    assert "1 record of 1 log that is gone: only the ledger remembers" in ran.out
    document = cli("ledger", "--json").json
    assert (document["schema"], document["totals"]["files"], document["archived_sessions"]) == (
        "sessionlog.ledger/2",
        3,
        1,
    )


def test_another_file(cli, kept, tmp_path, monkeypatch, config):
    """`--ledger` goes before $SESSIONLOG_LEDGER, that before config.toml."""
    config(f'ledger = "{tmp_path}/by-config"')
    assert cli("ledger", "--json").json["path"] == f"{tmp_path}/by-config"
    monkeypatch.setenv("SESSIONLOG_LEDGER", f"{tmp_path}/by-env")
    assert cli("ledger", "--json").json["path"] == f"{tmp_path}/by-env"
    assert cli("ledger", "sync", "--json", "--ledger", f"{tmp_path}/mine").json["path"] == f"{tmp_path}/mine"
    assert stat.S_IMODE(os.stat(tmp_path / "mine").st_mode) == 0o600
    assert not (tmp_path / "by-env").exists()


@pytest.mark.parametrize(
    "part", [(), ("sync",), ("verify",), ("rebuild",), ("backup", "x"), ("forget", "--before", "1d")]
)
def test_a_file_that_is_no_ledger(cli, kept, tmp_path, part):
    """Exit code 3 and a sentence; the file stays as it is."""
    (tmp_path / "odd").write_bytes(b"")
    connection = sqlite3.connect(tmp_path / "odd")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = (tmp_path / "odd").read_bytes()
    ran = cli("ledger", *part, "--ledger", tmp_path / "odd")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"sessionlog: {tmp_path}/odd is another program's database\n"
    assert (tmp_path / "odd").read_bytes() == before


# --- verify, rebuild


def test_a_whole_ledger_verifies(cli, kept):
    """Exit code 0, and what was proved."""
    cli("ledger", "sync")
    ran = cli("ledger", "verify")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "3 sessions compared with the logs: no difference\n"
    document = cli("ledger", "verify", "--json").json
    assert (document["schema"], document["whole"], document["compared_sessions"]) == (
        "sessionlog.ledger.verify/3", True, 3,
    )  # fmt: skip


def test_there_is_nothing_to_verify(cli, kept, book):
    """That is no proof."""
    ran = cli("ledger", "verify")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"sessionlog: {book}: there is no ledger yet\n"


def test_damage_is_found_and_mended(cli, kept, book):
    """Exit code 1 and the next step; a rebuild keeps the damaged file, and then all is right."""
    cli("ledger", "sync")
    right = cli("usage", "--json").json["totals"]
    damage(book)
    ran = cli("ledger", "verify")
    assert (ran.code, ran.err) == (1, "")
    assert "✘ " in ran.out
    assert "`sessionlog ledger rebuild`" in ran.out
    assert cli("ledger", "verify", "--json").json["whole"] is False
    ran = cli("ledger", "rebuild")
    assert (ran.code, ran.err) == (0, "")
    [damaged] = [path for path in book.parent.iterdir() if ".damaged-" in path.name and "-shm" not in path.name]
    assert f"{book} was damaged: it is kept as {damaged}" in ran.out
    assert ran.out.endswith("3 logs: 3 read\n")
    assert cli("ledger", "verify").code == 0
    assert cli("usage", "--json").json["totals"] == right


def test_a_report_on_a_damaged_ledger_scans_the_logs(cli, kept, book):
    """Its numbers are right, and it says why it took longer."""
    cli("ledger", "sync")
    right = cli("usage", "--json").json["totals"]
    book.write_bytes(b"\0" * 100 + book.read_bytes()[100:])
    ran = cli("usage", "--json")
    assert (ran.code, ran.json["totals"]) == (0, right)


def test_no_command_fails_for_a_bit(cli, kept, book):
    """Whatever bit of the file is turned: numbers, or a word about the ledger, and exit codes that are promised."""
    cli("ledger", "sync")
    cli("usage", "--json")
    whole, draw = book.read_bytes(), random.Random(3)
    for _ in range(25):
        content = bytearray(whole)
        bit = draw.randrange(len(content) * 8)
        content[bit // 8] ^= 1 << bit % 8
        Path(f"{book}-wal").unlink(missing_ok=True)
        book.write_bytes(content)
        assert cli("ledger", "verify").code in (0, 1)
        assert cli("ledger").code in (0, 3)
        ran = cli("usage", "--json")
        assert (ran.code, ran.json["schema"]) == (0, "sessionlog.usage/1")


def test_a_whole_ledger_is_rebuilt_in_its_place(cli, kept, book):
    """All logs are read, and logs that are gone stay remembered."""
    cli("ledger", "sync")
    (kept / "s-third.jsonl").unlink()
    assert cli("ledger", "rebuild") == (0, "2 logs: 2 read, 1 gone since the last time\n", "")
    document = cli("ledger", "rebuild", "--json").json
    assert (document["schema"], document["damaged"], document["rescued"]) == ("sessionlog.ledger.rebuild/1", None, None)
    assert document["synced"]["read"] == 2
    assert cli("usage", "--json").json["totals"]["sessions"] == 3
    assert cli("usage", "--json", "--live").json["totals"]["sessions"] == 2


# --- backup


def test_a_backup_is_a_private_copy(cli, kept, tmp_path):
    """It says how large it is, and can be asked."""
    cli("ledger", "sync")
    ran = cli("ledger", "backup", tmp_path / "copy")
    assert (ran.code, ran.out) == (0, "")
    assert re.fullmatch(rf"{re.escape(str(tmp_path))}/copy: \d.* kB\n", ran.err)
    assert stat.S_IMODE(os.stat(tmp_path / "copy").st_mode) == 0o600
    assert cli("ledger", "--json", "--ledger", tmp_path / "copy").json["totals"]["sessions"] == 3
    ran = cli("ledger", "backup", "--json", tmp_path / "copy2")
    assert (ran.json["schema"], ran.json["bytes"]) == (
        "sessionlog.ledger.backup/1",
        os.path.getsize(tmp_path / "copy2"),
    )


def test_a_backup_overwrites_nothing(cli, kept, tmp_path):
    """Exit code 3, and the file stays."""
    cli("ledger", "sync")
    (tmp_path / "copy").write_text("mine")
    ran = cli("ledger", "backup", tmp_path / "copy")
    assert (ran.code, ran.out) == (3, "")
    assert "a backup overwrites nothing" in ran.err
    assert (tmp_path / "copy").read_text() == "mine"


def test_there_is_nothing_to_back_up(cli, home, book, tmp_path):
    """An empty copy would be taken for one."""
    ran = cli("ledger", "backup", tmp_path / "copy")
    assert (ran.code, "there is no ledger yet" in ran.err) == (3, True)
    assert not (tmp_path / "copy").exists()
    assert not book.exists()


# --- forget


@pytest.fixture
def remembered(cli, kept):
    """Two of three logs are gone."""
    cli("ledger", "sync")
    (kept / "s-third.jsonl").unlink()
    (kept / "s-second.jsonl").unlink()
    cli("ledger", "sync")
    return kept


def sessions(cli):
    return sorted(one["session"] for one in cli("sessions", "--json").json["rows"])


def test_old_logs_that_are_gone_are_forgotten(cli, remembered):
    """Only those whose last record is before the day."""
    ran = cli("ledger", "forget", "--before", "2026-10-01", "--yes", *WHEN)
    assert (ran.code, ran.out, ran.err) == (0, "forgotten: 1 log gone (1 record, 1 session)\n", "")
    assert sessions(cli) == ["s-first", "s-second"]
    assert cli("ledger", "verify").code == 0


def test_logs_that_are_there_stay(cli, remembered):
    """They fit, but would be read again."""
    ran = cli("ledger", "forget", "--source", "native", "--yes")
    assert (ran.code, ran.out) == (0, "forgotten: 2 logs gone (2 records, 2 sessions)\n")
    assert ran.err == "1 log that fits was not deleted and will not be forgotten\n"
    assert sessions(cli) == ["s-first"]


def test_nothing_fits(cli, remembered):
    """That is said, and nobody is asked."""
    ran = cli("ledger", "forget", "--source", "codex")
    assert (ran.code, ran.out, ran.err) == (0, "nothing is forgotten: 0 logs gone (0 records, 0 sessions)\n", "")


def test_nobody_agrees_by_silence(cli, remembered, monkeypatch):
    """A program says --yes."""
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    ran = cli("ledger", "forget", "--source", "native")
    assert (ran.code, ran.out) == (2, "")
    assert "2 logs gone (2 records, 2 sessions); add --yes" in ran.err
    assert len(sessions(cli)) == 3


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("n\n", 3), ("\n", 3)])
def test_a_person_is_asked(cli, remembered, monkeypatch, tmp_path, answer, left):
    """What would be lost is in the question."""
    (tmp_path / "answer").write_text(answer)
    with (tmp_path / "answer").open() as words:
        monkeypatch.setattr(sys, "stdin", _Terminal(words))
        ran = cli("ledger", "forget", "--source", "native")
    assert ran.code == 0
    assert "forget 2 logs gone (2 records, 2 sessions)?" in ran.err
    assert len(sessions(cli)) == left


class _Terminal:
    """A file that says it is a terminal."""

    def __init__(self, file):
        self._file = file

    def isatty(self):
        return True

    def __getattr__(self, name):
        return getattr(self._file, name)


def test_forgetting_needs_a_choice(cli, remembered):
    """Everything is too much to forget by a slip."""
    ran = cli("ledger", "forget", "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "--source IDS, --before WHEN, or both" in ran.err
    assert len(sessions(cli)) == 3


def test_what_was_forgotten_as_json(cli, remembered):
    """`sessionlog.ledger.forget/1`."""
    document = cli("ledger", "forget", "--before", "2026-10-01", "--yes", "--json", *WHEN).json
    assert document == {
        "schema": "sessionlog.ledger.forget/1",
        "path": document["path"],
        "forgotten": True,
        "logs": 1,
        "records": 1,
        "sessions": 1,
        "still_there": 0,
    }
    assert Path(document["path"]).exists()


def test_a_time_that_is_none(cli, remembered):
    """The grammar of --since."""
    ran = cli("ledger", "forget", "--before", "whenever", "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert "whenever" in ran.err
