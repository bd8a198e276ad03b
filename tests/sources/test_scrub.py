"""Secrets in logs: every agent's files, packed ones and databases; copies without them, originals untouched."""

import gzip
import json
import os
import sqlite3
from contextlib import closing

import pytest

from sessionlog import files
from sessionlog.errors import InvalidSettings
from sessionlog.sources import scrub
from sessionlog.sources.scrub import scrub_file, scrub_logs

TOKEN = "ghp_" + "a1B2" * 9
PASSWORD = "s3cr3t" + "-pw9"


def event(text):
    return json.dumps({"session_id": "s", "seq": 1, "type": "note", "ts": "2026-11-22T10:00:00Z", "data": text}) + "\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "logs" / "s.jsonl"
    path.parent.mkdir()
    path.write_text(event("nothing") + event(f"the key is {TOKEN}") + '{"torn": "' + TOKEN)
    return path


def test_findings_name_line_and_place(log):
    """Also in a damaged line; the offset is that in the line."""
    [found] = scrub_logs([str(log)], {})
    assert found.source == "native"
    assert [(f.rule, f.line) for f in found.findings] == [("github-token", 2), ("github-token", 3)]
    line = log.read_bytes().splitlines()[1]
    assert line[found.findings[0].offset :].startswith(b"ghp_")
    assert found.counts == {"github-token": 2}


def test_p17_copies_have_no_secret_and_originals_stay(log, tmp_path):
    """Byte for byte but for what was found; private; a second search finds nothing."""
    before, status = log.read_bytes(), os.stat(log)
    [found] = scrub_logs([str(log.parent)], {}, copies=str(tmp_path / "clean"))
    assert found.copy == str(tmp_path / "clean" / "s.jsonl")
    assert (log.read_bytes(), os.stat(log).st_mtime_ns) == (before, status.st_mtime_ns)
    clean = (tmp_path / "clean" / "s.jsonl").read_bytes()
    assert clean == before.replace(TOKEN.encode(), b"[redacted]")
    assert os.stat(found.copy).st_mode & 0o077 == 0
    [again] = scrub_logs([str(tmp_path / "clean")], {})
    assert again.counts == {}


def test_a_packed_log_is_searched_and_unpacked(log, tmp_path):
    """Its copy is plain."""
    packed = log.with_name("p.jsonl.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    found = scrub_file(str(packed), copy=str(tmp_path / "clean" / "p.jsonl.gz"))
    assert found.counts == {"github-token": 2}
    assert TOKEN.encode() not in (tmp_path / "clean" / "p.jsonl").read_bytes()


def test_a_long_line_is_searched_in_pieces(log, tmp_path, monkeypatch):
    """Cut where no secret can be: none is lost at a cut, and the copy is the same."""
    monkeypatch.setattr(scrub, "_PIECE", 4096)
    monkeypatch.setattr(scrub, "_OVERLAP", 1024)
    parts = [f"word {number} {TOKEN}" if number % 7 == 0 else "some words " * 3 for number in range(600)]
    log.write_text(json.dumps(parts) + "\n" + event(TOKEN))
    found = scrub_file(str(log), copy=str(tmp_path / "clean.jsonl"))
    assert found.counts == {"github-token": 87}
    assert {f.line for f in found.findings} == {1, 2}
    first = log.read_bytes().splitlines()[0]
    for finding in found.findings[:-1]:
        assert first[finding.offset :].startswith(b"ghp_")
    assert (tmp_path / "clean.jsonl").read_text() == log.read_text().replace(TOKEN, "[redacted]")


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "logs.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE responses (id TEXT PRIMARY KEY, prompt TEXT, raw BLOB);"
            "CREATE TABLE plain (k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID;"
            "CREATE VIRTUAL TABLE found_fts USING fts5(prompt, content=responses);"
            "CREATE TRIGGER watch AFTER UPDATE ON responses BEGIN SELECT no_such_function(); END;"
        )
        connection.execute(
            "INSERT INTO responses VALUES ('1', ?, ?)", (f"it is {TOKEN}", f"DB_PASSWORD={PASSWORD}".encode())
        )
        connection.execute("INSERT INTO plain VALUES ('a', ?)", (TOKEN,))
        connection.execute("INSERT INTO found_fts(found_fts) VALUES ('rebuild')")
        connection.commit()
    return path


def test_databases_are_searched_value_by_value(database):
    """The place is the table, the column and the row; a virtual table is made of others."""
    found = scrub_file(str(database))
    assert found.problem == ""
    places = {(f.rule, f.place) for f in found.findings}
    assert ("github-token", "responses.prompt, row 1") in places
    assert ("password-by-name", "responses.raw, row 1") in places
    assert ("github-token", "plain.v, row 1") in places


def test_a_database_s_copy_has_none_of_its_bytes(database, tmp_path):
    """Neither in a free page, nor in the index of its words; triggers are kept and do not run."""
    before = database.read_bytes()
    found = scrub_file(str(database), copy=str(tmp_path / "clean" / "logs.db"))
    assert (found.problem, database.read_bytes()) == ("", before)
    clean = (tmp_path / "clean" / "logs.db").read_bytes()
    assert b"a1B2a1B2" not in clean
    assert b"a1b2a1b2" not in clean
    assert PASSWORD.encode() not in clean
    with closing(sqlite3.connect(found.copy)) as connection:
        assert connection.execute("SELECT prompt, raw FROM responses").fetchall() == [
            ("it is [redacted]", b"DB_PASSWORD=[redacted]")
        ]
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM found_fts WHERE found_fts MATCH 'redacted'").fetchone() == (1,)


def test_a_folder_that_holds_files_is_refused(log, tmp_path):
    """Nothing is ever written over; the next step is named."""
    with pytest.raises(InvalidSettings, match="holds files already; name a new folder"):
        list(scrub_logs([str(log)], {}, copies=str(log.parent)))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidSettings):
        list(scrub_logs([str(log)], {}, copies=str(link)))


def test_what_cannot_be_read_is_named_and_costs_nothing_else(log):
    """A damaged database, a packed file that ends early."""
    (log.parent / "bad.jsonl.gz").write_bytes(gzip.compress(log.read_bytes())[:-20])
    (log.parent / "bad.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    found = {os.path.basename(item.path): item for item in scrub_logs([str(log.parent)], {})}
    assert found["s.jsonl"].counts == {"github-token": 2}
    assert "end early" in found["bad.jsonl.gz"].problem
    assert found["bad.db"].problem


def test_an_interrupt_leaves_no_temporary_file_of_a_copy(log, tmp_path):
    """Ctrl-C ends workers at once: what they were writing has secrets cut off anywhere. Other hidden files stay."""
    (log.parent / ".s.jsonl.12345678").write_bytes(log.read_bytes())
    (log.parent / "packed.jsonl.gz").write_bytes(gzip.compress(log.read_bytes()))
    (log.parent / "[a-z].jsonl").write_bytes(log.read_bytes())
    clean = tmp_path / "clean"

    def interrupted(items, sizes, function):
        yield len(items), function(items)
        for name in ("s.jsonl", "packed.jsonl", "[a-z].jsonl"):
            files.write_temporary(str(clean / name), [b"half"])
        (clean / ".other.jsonl.12345678").write_bytes(b"")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(scrub_logs([str(log.parent / name) for name in os.listdir(log.parent)], {}, copies=str(clean),
                        spread=interrupted))  # fmt: skip
    assert sorted(os.listdir(clean)) == [
        ".other.jsonl.12345678", ".s.jsonl.12345678", "[a-z].jsonl", "packed.jsonl", "s.jsonl"
    ]  # fmt: skip
